# SPDX-License-Identifier: Apache-2.0
"""Readings followed on the whole graph give the motion that forward kinematics, Jacobian and `motion` give together."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.rotations import quaternion_from_rotation, rotation_from_quaternion
from pkm_kinematics.forward.tracker import Tracker
from pkm_kinematics.kernels.compiled_rotations import write_quaternion
from pkm_kinematics.status import Status, closes
from test.conftest import KINDS

TURNING = KINDS["turning space"]
SAME = 1e-11  # of Jacobians' largest element, m and rad: two solves, each exact to 1e-13 of the robot's size


@pytest.mark.parametrize("name", TURNING)
def test_the_graph_gives_what_the_general_calls_give(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    assert not k.constant_space
    quick, slow = Tracker(k), Tracker(k)
    slow.__dict__["_graph"] = None  # all readings by the general calls
    random = np.random.default_rng(3)
    home = k.home_joints[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.characteristic_length)
    phase, swing = random.uniform(0.0, 6.0, len(home)), 0.03 * unit * random.uniform(0.5, 1.0, len(home))
    for i in range(20):
        angle = 0.2 * i + phase
        q, u = home + swing * (np.sin(angle) - np.sin(phase)), 5.0 * swing * np.cos(angle)
        found, expected = quick.observe(q, u), slow.observe(q, u)
        assert closes(found.status)
        assert found.status == expected.status
        assert abs(abs(found.pose[3:] @ expected.pose[3:]) - 1.0) < SAME
        scale = np.abs(expected.jacobian).max()
        np.testing.assert_allclose(found.pose[:3], expected.pose[:3], rtol=0.0, atol=SAME)
        np.testing.assert_allclose(found.joints, expected.joints, rtol=0.0, atol=SAME)
        np.testing.assert_allclose(found.twist, expected.twist, rtol=0.0, atol=SAME * scale)
        np.testing.assert_allclose(found.velocities, expected.velocities, rtol=0.0, atol=SAME * scale)
        np.testing.assert_allclose(found.jacobian, expected.jacobian, rtol=0.0, atol=SAME * scale)


@pytest.mark.parametrize("name", ["tripod_3prs", "tricept"])
def test_refused_readings_leave_the_configuration_alone(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    tracker, home = Tracker(k), np.array(k.home_joints[k.engine.actuated_column])
    rest = np.zeros_like(home)
    assert tracker.observe(home, rest).status is Status.CONVERGED
    for bad in (np.nan, np.inf, 1e9):
        q = home.copy()
        q[-1] = bad
        assert not closes(tracker.observe(q, rest).status)
        assert not closes(tracker.observe(home, rest + 1e308).status)
    again = tracker.observe(home, rest)
    assert again.status is Status.CONVERGED
    np.testing.assert_allclose(again.pose, k.home, atol=1e-9)


@pytest.mark.parametrize("name", TURNING)
def test_lean_tracking(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    call, pose = k.lean_track(), np.array(k.home)
    home = k.home_joints[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.characteristic_length)
    q = np.array(home)
    for i in range(5):
        q += 0.004 * unit * (1 + i % 2)
        status, gap, iterations = call(q, pose)
        assert status == Status.CONVERGED
        assert gap < 1e-10
        assert iterations < 5
    expected = k.forward(q, near=k.home, seed=k.home_joints).pose
    np.testing.assert_allclose(pose, expected, rtol=0.0, atol=SAME)
    before = pose.copy()
    assert call(q * np.nan, pose)[0] == Status.INVALID_INPUT
    np.testing.assert_array_equal(pose, before)


def test_quaternions_of_rotations() -> None:
    random = np.random.default_rng(4)
    quaternions = random.normal(size=(500, 4))
    quaternions[:4], quaternions[4:8] = np.eye(4), np.eye(4)[::-1] + 1e-9  # half turns about the axes, and nearly
    out = np.empty(4)
    for quaternion in quaternions:
        R = rotation_from_quaternion(quaternion)
        write_quaternion(R, out)
        np.testing.assert_allclose(out, quaternion_from_rotation(R), rtol=0.0, atol=1e-14)
