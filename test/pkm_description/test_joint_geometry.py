# SPDX-License-Identifier: Apache-2.0
"""Degrees of freedom of every type of joint: their names, their axes, and the frames they lead to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description.joint_geometry import child_frame, frame_along, freedoms, position_at
from pkm_description.mechanism import Array, Joint, JointType, frozen

AXES = [np.array(axis) / np.linalg.norm(axis) for axis in ([0, 0, 1], [0, 0, -1], [1, 0, 0], [0.8, 0.6, 0], [1, 1, 1])]
SUFFIXES = {JointType.PLANAR: ("/x", "/y", "/angle"), JointType.FLOATING: ("/x", "/y", "/z", "/yaw", "/pitch", "/roll")}


def joint(kind: JointType, axis: Array) -> Joint:
    return Joint("joint", kind, "a", "b", frozen(np.eye(4)), frozen(axis))


def chain(kind: JointType, axis: Array, position: Array) -> Array:
    """Frame of the child by scipy's rotations, from what the documentation says of each type."""
    frame = np.eye(4)
    if kind in (JointType.REVOLUTE, JointType.CONTINUOUS):
        frame[:3, :3] = Rotation.from_rotvec(position[0] * axis).as_matrix()
    elif kind is JointType.PRISMATIC:
        frame[:3, 3] = position[0] * axis
    elif kind is JointType.PLANAR:
        frame[:3, 3] = frame_along(axis)[:, :2] @ position[:2]
        frame[:3, :3] = Rotation.from_rotvec(position[2] * axis).as_matrix()
    elif kind is JointType.FLOATING:
        frame[:3, 3] = position[:3]
        frame[:3, :3] = Rotation.from_euler("ZYX", position[3:]).as_matrix()
    return frame


@pytest.mark.parametrize("kind", JointType)
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_position_and_frame_there_and_back(kind: JointType, axis: Array) -> None:
    moving = joint(kind, axis)
    assert [f.name for f in freedoms(moving)] == [f"joint{s}" for s in SUFFIXES.get(kind, ("",) * kind.dof)]
    random = np.random.default_rng(5)
    for _ in range(20):
        position = random.uniform(-1.5, 1.5, kind.dof)
        frame = child_frame(moving, position)
        np.testing.assert_allclose(frame, chain(kind, axis, position), atol=1e-14)
        np.testing.assert_allclose(position_at(moving, frame), position, atol=1e-14)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_frame_along_an_axis(axis: Array) -> None:
    frame = frame_along(axis)
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(frame[:, 2], axis, atol=1e-15)


def test_frame_along_z_is_the_identity() -> None:
    assert np.array_equal(frame_along(np.array([0.0, 0.0, 1.0])), np.eye(3))


def test_frame_along_an_axis_does_not_jump_where_its_elements_are_equal() -> None:
    """Rounding must not decide what a planar joint calls x."""
    beside = [frame_along(np.array([1.0, 1.0 + e, 1.0 - e])) for e in (-1e-15, 0.0, 1e-15)]
    np.testing.assert_allclose(beside, [beside[1]] * 3, atol=1e-14)


@pytest.mark.parametrize("below", [0.0, 1e-14, 1e-9, 1e-6])
def test_a_floating_joint_takes_an_attitude_without_yaw_and_roll_of_its_own(below: float) -> None:
    """At a pitch of a right angle the position is one of many, but leads to the frame."""
    frame = np.eye(4)
    for pitch in (0.5 * np.pi - below, below - 0.5 * np.pi):
        frame[:3, :3] = Rotation.from_euler("ZYX", [0.7, pitch, -0.4]).as_matrix()
        floating = joint(JointType.FLOATING, AXES[0])
        np.testing.assert_allclose(child_frame(floating, position_at(floating, frame)), frame, atol=1e-15)
