# SPDX-License-Identifier: Apache-2.0
"""Legal but strange descriptions are solved, or refused with an error that says why."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.strange_robots import PLAIN, REFUSED, SOLVED, robot
from pkm_description import DescriptionError, load_mechanism
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, Mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.model import recognition
from pkm_kinematics.solve import working_modes
from pkm_runtime.errors import PkmError

# Homes at which an actuator is at its dead point or the platform is loose: poses are tried away from them, inside.
SINGULAR_HOMES = {"home with stretched limbs": (0.0, -0.1), "home with forearms in line": (0.0, 0.1)}


def poses(kinematics: Kinematics, name: str) -> list[Array]:
    """Three poses near home that the platform can take."""
    random = np.random.default_rng(2)
    k = kinematics
    length = size(k.mechanism)
    centre = k.home.copy()
    centre[:2] += SINGULAR_HOMES.get(name, (0.0, 0.0))
    found = []
    for _ in range(3):
        if k.constant_space:
            step = k.subspace(k.home) @ random.uniform(-0.1, 0.1, k.mobility)
            turned = Rotation.from_rotvec(step[3:]) * Rotation.from_quat(centre[3:])
            found.append(np.concatenate([centre[:3] + 0.3 * length * step[:3], turned.as_quat()]))
        else:
            q = k.home_joints[k.engine.actuated_column] + random.uniform(-0.05, 0.05, len(k.actuated_names))
            answer = k.forward(q)
            assert answer.status == Status.CONVERGED
            found.append(answer.pose)
    return found


def size(mechanism: Mechanism) -> float:
    return ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link).length


@pytest.mark.parametrize("name", SOLVED)
def test_solved(name: str) -> None:
    """Positions there and back, and efforts there and back (ID = FD^-1), with their statuses."""
    mechanism = load_mechanism(SOLVED[name])
    dynamics = Dynamics(mechanism)
    k = dynamics.kinematics
    length = size(mechanism)
    random = np.random.default_rng(4)
    assert k.inverse(k.home).status == Status.CONVERGED
    for pose in poses(k, name):
        ik = k.inverse(pose)
        assert ik.status == Status.CONVERGED, ik.reason()
        assert ik.residual < 1e-12 * max(1.0, length)
        fk = k.forward(ik.actuated, near=pose)
        assert fk.status == Status.CONVERGED, fk.reason()
        np.testing.assert_allclose(fk.pose, pose, atol=1e-9 * max(1.0, length))
        S = k.subspace(pose)
        twist = S @ random.uniform(-1.0, 1.0, k.mobility)
        # where the motion space turns with the pose, an acceleration has a part that the twist imposes
        bias = np.zeros(6) if k.constant_space else k.engine.spaces.at_one(pose, ik.joints, twist)[1]
        acceleration = S @ random.uniform(-1.0, 1.0, k.mobility) + bias
        efforts = dynamics.inverse(pose, twist, acceleration)
        assert efforts.status == Status.CONVERGED
        back = dynamics.direct(pose, twist, efforts.effort)
        assert back.status == Status.CONVERGED
        np.testing.assert_allclose(back.acceleration, acceleration, atol=1e-9 * (1.0 + np.abs(acceleration).max()))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, words = REFUSED[name]
    with pytest.raises(DescriptionError) as refusal:
        Kinematics(load_mechanism(text))
    error = refusal.value
    assert re.search(words, str(error)), str(error)
    assert error.element
    assert error.remedy


def test_strange_parts_do_not_change_the_robot() -> None:
    """The five-bar with its oddities has the joint angles and gravity efforts of the plain one."""
    plain = Dynamics(load_mechanism(robot(PLAIN)))
    pose = plain.kinematics.home.copy()
    pose[:2] += (0.03, 0.02)
    joints = dict(zip(plain.kinematics.joint_names, plain.kinematics.inverse(pose).joints, strict=True))
    same = ("loop turned round", "base below a world", "spherical pins in a plane", "a loop from base to platform")
    for name in same:
        odd = Dynamics(load_mechanism(SOLVED[name]))
        found = dict(zip(odd.kinematics.joint_names, odd.kinematics.inverse(pose).joints, strict=True))
        for joint, value in joints.items():
            assert abs(found[joint] - value) < 1e-9, (name, joint)
        np.testing.assert_allclose(odd.gravity(pose).effort, plain.gravity(pose).effort, atol=1e-9, err_msg=name)


def test_singular_homes_are_told() -> None:
    """Positions are known there; what is not, velocities or the platform's hold, is said."""
    stretched, in_line = (Kinematics(load_mechanism(SOLVED[name])) for name in SINGULAR_HOMES)
    for k in (stretched, in_line):
        assert k.mechanism.mobility.singular_home
        at_home = k.inverse(k.home)
        assert at_home.status == Status.CONVERGED
        np.testing.assert_allclose(at_home.joints, k.home_joints, atol=1e-7)  # of a double root: sqrt of rounding
    sideways = 0.1 * stretched.subspace(stretched.home)[:, 0]
    assert stretched.motion(stretched.home, sideways).status == Status.SINGULAR
    assert not stretched.singularity(stretched.home).type1 > 1e-6  # NaN: no regular solution
    assert in_line.singularity(in_line.home).type2 < 1e-6
    assert in_line.forward(in_line.home_joints[in_line.engine.actuated_column]).status == Status.SINGULAR


def test_more_working_modes_than_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many limbs of two branches as a description may have are numbered; the bound is lowered to meet it."""
    assert Kinematics(load_mechanism("delta")).n_modes == 8
    monkeypatch.setattr(recognition, "MOST_MODES", 4)
    with pytest.raises(PkmError, match="fewer limbs"):
        Kinematics(load_mechanism("delta"))


def test_more_working_modes_than_can_be_listed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    k = Kinematics(load_mechanism("delta"))
    monkeypatch.setattr(working_modes, "MOST", 7)
    with pytest.raises(PkmError, match="8 working modes, but at most 7 are listed"):
        k.inverse_all(k.home)
    assert k.inverse(k.home, mode=7).joints.shape == k.home_joints.shape


def test_gears_that_loops_do_not_imply_are_refused() -> None:
    """A screw that spins a rod moves no platform; a gear between the arms takes a motion from it."""
    spin = (
        '<link name="limb1_nut"/><joint name="limb1_spin" type="continuous"><parent link="limb1_nut"/>'
        '<child link="limb1_rod"/><axis xyz="0 0 1"/><mimic joint="limb1_leg" multiplier="200"/></joint></robot>'
    )
    hexapod = load_mechanism("gough_stewart").urdf.replace('<child link="limb1_rod"/>', '<child link="limb1_nut"/>')
    with pytest.raises(DescriptionError, match=r"1 more joint\(s\) would move without the platform.*make such joints"):
        Kinematics(load_mechanism(hexapod.replace("</robot>", spin)))
    text = load_mechanism("five_bar").urdf
    arms = text.partition('<joint name="right_arm" type="revolute">')
    driven = re.sub(r'<joint name="right_arm">\s*<command.*?</joint>', "", arms[2], flags=re.DOTALL)
    with pytest.raises(DescriptionError, match=r"would have 2 degrees of freedom instead of 1.*drive both joints"):
        Kinematics(
            load_mechanism(
                f'{arms[0]}{arms[1]}<mimic joint="left_arm" multiplier="-1" offset="3.141592653589793"/>{driven}'
            )
        )


def moved(name: str, joint: str, at: str) -> str:
    """A robot of the gallery whose branch has a joint elsewhere."""
    first, found, rest = re.split(rf'(<joint name="{joint}".*?</joint>)', load_mechanism(name).urdf, flags=re.DOTALL)
    assert 'xyz="0 0 0"' in found
    return first + found.replace('xyz="0 0 0"', f'xyz="{at}"') + rest


def test_axes_of_a_branch_that_meet_but_for_rounding_meet() -> None:
    """Their distance, computed by a xacro file, is 1e-17 m; the motion space does not turn for that."""
    assert Kinematics(load_mechanism(moved("agile_eye", "platform_pitch", "0 -9.4e-18 1.6e-17"))).constant_space


def test_six_degrees_of_freedom_are_all_motions_wherever_the_axes_are() -> None:
    k = Kinematics(load_mechanism(moved("gough_stewart", "platform_pitch", "0.05 0.03 -0.04")))
    assert k.constant_space
    pose = k.home.copy()
    pose[:3] += (0.02, -0.03, 0.01)
    pose[3:] = Rotation.from_euler("zyx", [0.2, -0.1, 0.15]).as_quat()
    names = k.joint_names[:6]
    values = k.inverse(pose).by_name("joints")
    x, y, z, yaw, pitch, roll = (values[name] for name in names)
    turned = Rotation.from_euler("z", yaw)
    np.testing.assert_allclose(np.array([x, y, z]) + turned.apply([0.05, 0.03, -0.04]), pose[:3], atol=1e-12)
    assert (turned * Rotation.from_euler("y", pitch) * Rotation.from_euler("x", roll)).as_quat() == pytest.approx(
        pose[3:]
    )
