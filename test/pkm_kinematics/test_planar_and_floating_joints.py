# SPDX-License-Identifier: Apache-2.0
"""A planar and a floating joint have the same coordinates in the description, in the solvers and in MuJoCo.

Each carries a massless plate that is welded to the platform of a robot: its coordinates are those of the platform in
the joint's frame, which the tests compute by themselves.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import Mechanism, load_mechanism
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.load import expand
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status

AXES = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.8, 0.6, 0.0), (0.6, 0.8, 0.0), (1.0, 1.0, 1.0), (0.2, -0.5, -1.0))
OFFSET = np.array([0.3, -0.2, 0.0])


def with_plate(robot: str, kind: str, axis: Array, attitude: Rotation, home_rpy: str = "") -> Mechanism:
    """A robot of the gallery with a plate on a joint of the given kind and axis, whose frame stands at `attitude`.

    The frame in the plate that is welded to the platform is parallel to the base where the joint is at zero.
    """
    text, _ = expand(robot)
    if home_rpy:
        text = re.sub(r'<home rpy="[^"]*"', f'<home rpy="{home_rpy}"', text)
    plate = (
        f'<link name="plate"/><joint name="plate" type="{kind}"><parent link="base_link"/><child link="plate"/>'
        f'<origin xyz="{row(OFFSET)}" rpy="{row(attitude.as_euler("xyz"))}"/><axis xyz="{row(axis)}"/></joint>'
        f'<loop name="weld" type="fixed"><predecessor link="plate">'
        f'<origin rpy="{row(attitude.inv().as_euler("xyz"))}"/></predecessor><successor link="platform"/></loop>'
    )
    return load_mechanism(text.replace("</robot>", plate + "</robot>"))


def row(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)


def plate_coordinates(kinematics: Kinematics, joints: Array, suffixes: tuple[str, ...]) -> Array:
    column = {name: k for k, name in enumerate(kinematics.joint_names)}
    return np.array([joints[column[f"plate/{suffix}"]] for suffix in suffixes])


def described(mechanism: Mechanism) -> Array:
    """The plate's coordinates in `home_joints`."""
    at = 0
    for name in mechanism.moving_joints:
        dof = mechanism.joint_named[name].type.dof
        if name == "plate":
            return mechanism.home_joints[at : at + dof]
        at += dof
    raise AssertionError


def check_in_mujoco(mechanism: Mechanism, attitude: Rotation) -> None:
    """At the keyframe of the exported model, the plate stands at the platform's home pose."""
    model = mujoco.MjModel.from_xml_string(export_mjcf(mechanism))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.body("plate").xpos, mechanism.home[:3, 3], atol=1e-9)
    turned = data.body("plate").xmat.reshape(3, 3)
    np.testing.assert_allclose(turned, mechanism.home[:3, :3] @ attitude.as_matrix(), atol=1e-9)


def moved(kinematics: Kinematics, turn: Array) -> Array:
    """A pose beside home."""
    pose = kinematics.home.copy()
    pose[:2] += (0.02, -0.03)
    pose[3:] = (Rotation.from_rotvec(turn) * Rotation.from_quat(pose[3:])).as_quat()
    return pose


@pytest.mark.parametrize("axis", AXES)
def test_planar(axis: tuple[float, float, float]) -> None:
    """x along the projection of the joint frame's x axis onto the plane (of its y axis, where x is the normal)."""
    normal = np.array(axis) / np.linalg.norm(axis)
    x = np.eye(3)[1 if normal[0] > 0.9 else 0]
    x = x - normal * (normal @ x)
    x /= np.linalg.norm(x)
    y = np.cross(normal, x)
    # the plane of motion is the base's xy plane: the joint frame turns its axis there, and x by 0.4 rad besides
    attitude = Rotation.from_euler("z", 0.4) * Rotation.from_matrix(np.column_stack([x, y, normal])).inv()
    mechanism = with_plate("planar_3rpr", "planar", normal, attitude)
    kinematics = Kinematics(mechanism)

    def expected(pose: Array) -> Array:
        p = attitude.inv().apply(pose[:3] - OFFSET)
        return np.array([p @ x, p @ y, Rotation.from_quat(pose[3:]).as_rotvec()[2]])

    home = expected(kinematics.home)
    assert abs(home[2]) > 0.1
    np.testing.assert_allclose(described(mechanism), home, atol=1e-9)
    for pose in (kinematics.home, moved(kinematics, np.array([0.0, 0.0, 0.2]))):
        ik = kinematics.inverse(pose)
        assert ik.status == Status.CONVERGED
        np.testing.assert_allclose(
            plate_coordinates(kinematics, ik.joints, ("x", "y", "angle")), expected(pose), atol=1e-9
        )
    check_in_mujoco(mechanism, attitude)


def test_floating() -> None:
    """x, y, z in the joint frame, then yaw, pitch and roll: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    attitude = Rotation.from_euler("xyz", [0.5, -0.3, 0.7])
    mechanism = with_plate("gough_stewart", "floating", np.array([0.0, 0.0, 1.0]), attitude, "0.3 -0.4 0.5")
    kinematics = Kinematics(mechanism)

    def expected(pose: Array) -> Array:
        turn = attitude.inv() * Rotation.from_quat(pose[3:]) * attitude
        return np.concatenate([attitude.inv().apply(pose[:3] - OFFSET), turn.as_euler("ZYX")])

    assert np.abs(expected(kinematics.home)[3:]).min() > 0.1
    np.testing.assert_allclose(described(mechanism), expected(kinematics.home), atol=1e-9)
    for pose in (kinematics.home, moved(kinematics, np.array([0.05, 0.1, -0.1]))):
        ik = kinematics.inverse(pose)
        assert ik.status == Status.CONVERGED
        found = plate_coordinates(kinematics, ik.joints, ("x", "y", "z", "yaw", "pitch", "roll"))
        np.testing.assert_allclose(found, expected(pose), atol=1e-9)
    check_in_mujoco(mechanism, attitude)


def test_mujoco_names_the_coordinates_of_a_planar_joint() -> None:
    mechanism = with_plate("planar_3rpr", "planar", np.array([0.0, 0.0, 1.0]), Rotation.identity())
    names = [joint.get("name") for joint in ET.fromstring(export_mjcf(mechanism)).iter("joint")]
    assert [name for name in names if name and name.startswith("plate/")] == ["plate/x", "plate/y", "plate/angle"]
