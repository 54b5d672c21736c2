# SPDX-License-Identifier: Apache-2.0
"""Quintic motion between points: it meets its points, and its rates are the derivatives of its poses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError


def random_points(n: int = 6, seed: int = 3) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.1, 0.4, n))
    attitudes = Rotation.from_rotvec(rng.normal(0.0, 0.3, (n, 3))).as_quat()
    poses = np.hstack([rng.normal(0.0, 0.2, (n, 3)), attitudes])
    return times, poses, rng.normal(0.0, 1.0, (n, 6)), rng.normal(0.0, 5.0, (n, 6))


def test_meets_every_point() -> None:
    times, poses, twists, accelerations = random_points()
    trajectory = PointTrajectory(times, poses, twists, accelerations)
    for k in range(1, len(times) - 1):
        for side in (-1e-9, 1e-9):
            at = trajectory.at(times[k] + side)
            np.testing.assert_allclose(at.pose[:3], poses[k, :3], atol=1e-7)
            assert abs(abs(at.pose[3:] @ poses[k, 3:]) - 1.0) < 1e-12
            np.testing.assert_allclose(at.twist, twists[k], atol=1e-5)
            np.testing.assert_allclose(at.acceleration, accelerations[k], atol=1e-3)


def test_rates_are_derivatives() -> None:
    times, poses, twists, accelerations = random_points()
    trajectory = PointTrajectory(times, poses, twists, accelerations)
    h = 1e-5
    for time in np.linspace(times[0] + 0.01, times[-1] - 0.01, 60):
        if np.abs(times - time).min() < 2 * h:
            continue
        before, at, after = (trajectory.at(time + s) for s in (-h, 0.0, h))
        velocity = (after.pose[:3] - before.pose[:3]) / (2 * h)
        turn = (Rotation.from_quat(after.pose[3:]) * Rotation.from_quat(before.pose[3:]).inv()).as_rotvec() / (2 * h)
        acceleration = (after.twist - before.twist) / (2 * h)
        # central differences: error h^2/6 times the third derivative, which is some 1e3 here
        np.testing.assert_allclose(at.twist, np.concatenate([velocity, turn]), atol=1e-6)
        np.testing.assert_allclose(at.acceleration, acceleration, atol=1e-5)


def test_rests_before_and_after() -> None:
    times, poses, twists, accelerations = random_points()
    trajectory = PointTrajectory(times, poses, twists, accelerations)
    for time, pose in ((times[0] - 1.0, poses[0]), (times[-1] + 1.0, poses[-1])):
        at = trajectory.at(time)
        np.testing.assert_array_equal(at.pose, pose)
        assert not at.twist.any()
        assert not at.acceleration.any()


def test_bad_points_are_named() -> None:
    times, poses, twists, accelerations = random_points()
    with pytest.raises(PointTrajectoryError, match="no points"):
        PointTrajectory(np.empty(0), np.empty((0, 7)), np.empty((0, 6)), np.empty((0, 6)))
    broken = twists.copy()
    broken[2, 1] = np.nan
    with pytest.raises(PointTrajectoryError, match="point 2: its twist"):
        PointTrajectory(times, poses, broken, accelerations)
    stretched = poses.copy()
    stretched[4, 3:] *= 1.01
    with pytest.raises(PointTrajectoryError, match="point 4: its quaternion"):
        PointTrajectory(times, stretched, twists, accelerations)
    backwards = times.copy()
    backwards[3] = backwards[2]
    with pytest.raises(PointTrajectoryError, match="point 3: its time"):
        PointTrajectory(backwards, poses, twists, accelerations)
    turned = poses.copy()
    turned[1:, 3:] = (Rotation.from_rotvec([3.0, 0, 0]) * Rotation.from_quat(poses[0, 3:])).as_quat()
    with pytest.raises(PointTrajectoryError, match="point 1: it turns"):
        PointTrajectory(times, turned, twists, accelerations)


def test_repeats_what_ends_as_it_begins() -> None:
    times, poses, twists, accelerations = random_points()
    times -= times[0]
    for values in (poses, twists, accelerations):
        values[-1] = values[0]
    trajectory = PointTrajectory(times, poses, twists, accelerations, 3)
    cycle = times[-1]
    assert trajectory.duration == pytest.approx(3 * cycle)
    for time in np.linspace(0.01, 0.99, 20) * cycle:
        for k in (1, 2):
            np.testing.assert_allclose(trajectory.at(time + k * cycle).pose, trajectory.at(time).pose, atol=1e-9)
    poses[-1, 0] += 0.01
    with pytest.raises(PointTrajectoryError, match="end as it begins"):
        PointTrajectory(times, poses, twists, accelerations, 2)
