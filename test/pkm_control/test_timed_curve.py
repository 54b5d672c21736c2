# SPDX-License-Identifier: Apache-2.0
"""Curves through poses at given times."""

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_control.motion.trajectory import TimedCurve

RANDOM = np.random.default_rng(3)
TIMES = np.array([1.0, 1.3, 1.4, 2.0, 2.5])
TURNS = np.cumsum(RANDOM.normal(scale=0.4, size=(5, 3)), axis=0)
POSES = np.hstack([RANDOM.normal(size=(5, 3)), Rotation.from_rotvec(TURNS).as_quat() * [[1], [1], [-1], [1], [-1]]])
CURVE = TimedCurve(TIMES, POSES)


def test_every_pose_is_met_at_its_time() -> None:
    pose, _, _ = CURVE.sample(TIMES - TIMES[0])
    np.testing.assert_allclose(pose[:, :3], POSES[:, :3], atol=1e-12)
    turn = Rotation.from_quat(pose[:, 3:]).inv() * Rotation.from_quat(POSES[:, 3:])
    assert turn.magnitude().max() < 1e-12


def test_it_begins_and_ends_at_rest() -> None:
    _, twist, acceleration = CURVE.sample(np.array([0.0, CURVE.duration]))
    assert np.abs(twist).max() < 1e-10
    assert np.abs(acceleration).max() < 1e-9


def test_derivatives_are_those_of_the_values() -> None:
    h = 1e-5
    t = np.linspace(2 * h, CURVE.duration - 2 * h, 1001)
    pose0, twist0, _ = CURVE.sample(t - h)
    pose1, twist1, _ = CURVE.sample(t + h)
    _, twist, acceleration = CURVE.sample(t)
    scale = np.abs(acceleration).max()
    np.testing.assert_allclose(twist[:, :3], (pose1[:, :3] - pose0[:, :3]) / (2 * h), atol=1e-6 * scale)
    turn = Rotation.from_quat(pose1[:, 3:]) * Rotation.from_quat(pose0[:, 3:]).inv()
    np.testing.assert_allclose(twist[:, 3:], turn.as_rotvec() / (2 * h), atol=1e-6 * scale)
    np.testing.assert_allclose(acceleration, (twist1 - twist0) / (2 * h), atol=1e-6 * scale)


def test_a_densely_recorded_turn_is_reproduced() -> None:
    """A smooth turn about a fixed axis, recorded every 10 ms, is a case with a known answer between the samples."""
    axis = np.array([1.0, 2.0, 2.0]) / 3.0

    def angle(t):
        u = t / 2.0
        return 3.0 * u**3 * (10 - 15 * u + 6 * u**2)  # at rest at both ends

    def rate(t):
        u = t / 2.0
        return 45.0 * u**2 * (1 - u) ** 2

    t = np.linspace(0, 2, 201)
    poses = np.hstack([np.zeros((201, 3)), Rotation.from_rotvec(np.outer(angle(t), axis)).as_quat()])
    curve = TimedCurve(t, poses)
    between = np.linspace(0, 2, 1777)
    pose, twist, _ = curve.sample(between)
    true = Rotation.from_rotvec(np.outer(angle(between), axis))
    assert (true.inv() * Rotation.from_quat(pose[:, 3:])).magnitude().max() < 1e-9
    np.testing.assert_allclose(twist[:, 3:], np.outer(rate(between), axis), atol=1e-6)
