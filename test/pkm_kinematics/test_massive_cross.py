# SPDX-License-Identifier: Apache-2.0
"""A universal cross with a mass, as CAD writes it: the ankle keeps its task coordinates, verdicts and stops."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.load import expand
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics
from pkm_kinematics.check import examine

PLAIN = expand("docs/examples/ankle.urdf.xacro")[0]
INERTIA = 3e-5  # kg m^2, about the pitch axis
MOMENTS = f'ixx="2e-5" iyy="{INERTIA}" izz="2.5e-5" ixy="0" ixz="0" iyz="0"'
BODY = f'<inertial><mass value="0.08"/><inertia {MOMENTS}/></inertial>'
CROSS = PLAIN.replace('<link name="ankle_cross"/>', f'<link name="ankle_cross">{BODY}</link>')
X, RATES, ACCELERATIONS = np.array([0.2, 0.1]), np.array([0.7, -0.3]), np.array([2.0, 1.5])


@pytest.fixture(scope="module")
def both() -> tuple[Dynamics, Dynamics]:
    assert CROSS != PLAIN
    return Dynamics(load_mechanism(PLAIN)), Dynamics(load_mechanism(CROSS))


def test_task_coordinates_and_configurations_stay(both: tuple[Dynamics, Dynamics]) -> None:
    plain, cross = (one.kinematics for one in both)
    assert cross.task.names == plain.task.names == ("ankle_pitch", "ankle_roll")
    assert cross.joint_names == plain.joint_names
    assert cross.characteristic_length == plain.characteristic_length
    rows = X * np.array([[1.0, 1.0], [-2.0, 3.0], [0.0, 0.0], [-1.0, -3.5]])
    np.testing.assert_allclose(cross.inverse(rows).joints, plain.inverse(rows).joints, atol=1e-12)
    q = plain.inverse(X).actuated
    np.testing.assert_allclose(cross.forward(q).pose, plain.forward(q).pose, atol=1e-10)
    assert cross.mechanism.limbs[0].actuated == ()  # it is built, and guides the foot


def test_verdicts_stay(both: tuple[Dynamics, Dynamics]) -> None:
    plain, cross = (examine(text, modes=False) for text in (PLAIN, CROSS))
    assert cross.usable
    for one, other in zip(plain.verdicts, cross.verdicts, strict=True):
        assert (one.level, one.about) == (other.level, other.about)
        assert other.number == pytest.approx(one.number, rel=1e-9), one.about  # its centre of mass is on both axes
    assert not any("the platform's own branch" in remark for remark in cross.remarks)  # the branch is a limb


def test_its_inertia_counts(both: tuple[Dynamics, Dynamics]) -> None:
    """The power that the drives give beyond those of a massless cross is that of the cross, which only pitches."""
    pitch, (dp, dr), (ddp, ddr) = X[0], RATES, ACCELERATIONS
    roll_axis, turned = np.array([np.cos(pitch), 0, -np.sin(pitch)]), np.array([-np.sin(pitch), 0, -np.cos(pitch)])
    twist = np.r_[np.zeros(3), [0, dp, 0] + dr * roll_axis]
    acceleration = np.r_[np.zeros(3), [0, ddp, 0] + ddr * roll_axis + dr * dp * turned]
    efforts = [one.inverse(X, twist, acceleration).effort for one in both]
    k = both[0].kinematics
    speeds = k.at(X).motion(twist).velocities[[k.joint_names.index(name) for name in k.actuated_names]]
    assert (efforts[1] - efforts[0]) @ speeds == pytest.approx(INERTIA * ddp * dp, rel=1e-6)


@pytest.mark.parametrize("text", [PLAIN, CROSS], ids=["massless", "massive"])
def test_mujoco_gets_the_stops_of_the_ankle(text: str) -> None:
    joints = {joint.get("name"): joint for joint in ET.fromstring(export_mjcf(load_mechanism(text))).iter("joint")}
    for name, ends in (("ankle_pitch", [-0.7, 0.7]), ("ankle_roll", [-0.4, 0.4])):
        assert [float(end) for end in joints[name].get("range").split()] == pytest.approx(ends)


def test_mujoco_gets_no_stops_of_coordinates_alone() -> None:
    joints = {joint.get("name"): joint for joint in ET.fromstring(export_mjcf(load_mechanism("delta"))).iter("joint")}
    assert joints["platform_x"].get("range") is None
    assert joints["limb1_arm"].get("range") is not None


FRICTION, SPRING = 0.3, 2.0  # N m s/rad, N m/rad


def test_friction_and_springs_of_a_cross_count() -> None:
    """The power of a damper and a spring about the pitch axis, which is part of the robot then."""
    pitch = '<joint name="ankle_pitch" type="revolute">'
    dynamics = f'<dynamics damping="{FRICTION}" spring_stiffness="{SPRING}"/>'
    assert pitch in PLAIN
    plain, resisting = (Dynamics(load_mechanism(text)) for text in (PLAIN, PLAIN.replace(pitch, pitch + dynamics)))
    k = resisting.kinematics
    assert k.task.names == ("ankle_pitch", "ankle_roll")
    twist = np.array([0.0, 0.0, 0.0, 0.0, 0.7, 0.0])
    more = resisting.inverse(X, twist).effort - plain.inverse(X, twist).effort
    speeds = k.at(X).motion(twist).velocities[[k.joint_names.index(name) for name in k.actuated_names]]
    assert more @ speeds == pytest.approx((FRICTION * 0.7 + SPRING * X[0]) * 0.7, rel=1e-6)


def test_bars_in_a_row_are_no_task_coordinates() -> None:
    """A limb without a drive that carries the platform: its turns are parallel, so an attitude does not give them."""
    text = load_mechanism("planar_3rpr").urdf
    for name, at in (("x", "-0.3 0 0"), ("y", "0.5 0 0"), ("yaw", "0.5 0 0")):
        first, joint, rest = re.split(rf'(<joint name="platform_{name}".*?</joint>)', text, flags=re.DOTALL)
        joint = joint.replace('xyz="0 0 0"', f'xyz="{at}"', 1).replace("prismatic", "continuous")
        text = first + re.sub('<axis xyz="[^"]*"', '<axis xyz="0 0 1"', joint) + rest
    mechanism = load_mechanism(text)
    assert mechanism.platform_chain == ()
    k = Kinematics(mechanism)
    q = k.at(k.home).actuated + np.array([0.02, -0.03, 0.01])
    pose = k.forward(q).pose
    assert np.abs(pose[:2] - k.home[:2]).max() > 1e-3
    np.testing.assert_allclose(k.inverse(pose).actuated, q, atol=1e-10)
