# SPDX-License-Identifier: Apache-2.0
"""Rounded paths: they pass where they should, and their derivatives are those of their values."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_control.motion.rounded_path import RoundedPath

RANDOM = np.random.default_rng(1)
POSES = np.hstack([RANDOM.normal(size=(6, 3)), Rotation.random(6, rng=2).as_quat()])
PATHS = {
    "rounded": RoundedPath(POSES, np.array([0.3, 0.1, 0.5, 0.2])),
    "blends that meet": RoundedPath(POSES, np.full(4, 100.0)),
    "one step": RoundedPath(POSES[:2], np.empty(0)),
    "turn on the spot": RoundedPath(np.hstack([np.tile(POSES[0, :3], (3, 1)), POSES[:3, 3:]]), np.array([0.05])),
}


@pytest.mark.parametrize("name", PATHS)
def test_derivatives_are_those_of_the_values(name: str) -> None:
    path = PATHS[name]
    h = 1e-5 * path.length
    s = np.linspace(2 * h, path.length - 2 * h, 2001)
    here, before, after = path.sample(s), path.sample(s - h), path.sample(s + h)
    scale = np.abs(here.second).max() + np.abs(here.first).max()
    # central differences: truncation of order h^2 times the third derivative, rounding of order 1e-16 / h
    linear = (after.pose[:, :3] - before.pose[:, :3]) / (2 * h)
    np.testing.assert_allclose(here.first[:, :3], linear, atol=1e-6 * scale)
    turn = Rotation.from_quat(after.pose[:, 3:]) * Rotation.from_quat(before.pose[:, 3:]).inv()
    np.testing.assert_allclose(here.first[:, 3:], turn.as_rotvec() / (2 * h), atol=1e-6 * scale)
    # the third derivative has kinks where roundings begin: there the difference is off by h times its jump
    np.testing.assert_allclose(here.second, (after.first - before.first) / (2 * h), atol=1e-3 * scale)


@pytest.mark.parametrize("name", PATHS)
def test_second_derivative_is_continuous(name: str) -> None:
    path = PATHS[name]
    borders = path.breaks()[1:-1]
    d = 1e-9 * path.length
    jump = np.abs(path.sample(borders + d).second - path.sample(borders - d).second)
    assert jump.size == 0 or jump.max() < 1e-5 * np.abs(path.sample(np.linspace(0, path.length, 999)).second).max()


def test_ends_are_met_and_corners_are_cut_as_stated() -> None:
    path = PATHS["rounded"]
    ends = path.sample(np.array([0.0, path.length])).pose
    np.testing.assert_allclose(ends[:, :3], POSES[[0, -1], :3], atol=1e-14)
    turn = Rotation.from_quat(ends[:, 3:]).inv() * Rotation.from_quat(POSES[[0, -1], 3:])
    assert turn.magnitude().max() < 1e-14
    at = path.sample(path.corners[1:-1]).pose[:, :3]
    steps = np.diff(POSES[:, :3], axis=0) / np.diff(path.corners)[:, None]
    cut = 0.15625 * path.radii[1:-1] * np.linalg.norm(np.diff(steps, axis=0), axis=1)
    np.testing.assert_allclose(np.linalg.norm(at - POSES[1:-1, :3], axis=1), cut, rtol=1e-12)


def test_without_blends_the_waypoints_are_met() -> None:
    path = RoundedPath(POSES, np.zeros(4))
    sample = path.sample(path.corners)
    np.testing.assert_allclose(sample.pose[:, :3], POSES[:, :3], atol=1e-14)
    turn = Rotation.from_quat(sample.pose[:, 3:]).inv() * Rotation.from_quat(POSES[:, 3:])
    assert turn.magnitude().max() < 1e-13


def test_the_path_does_not_depend_on_the_frame() -> None:
    move, shift = Rotation.random(rng=9), np.array([1.0, -2.0, 0.5])
    moved = np.hstack([move.apply(POSES[:, :3]) + shift, (move * Rotation.from_quat(POSES[:, 3:])).as_quat()])
    blends = np.array([0.3, 0.1, 0.5, 0.2])
    there = RoundedPath(moved, blends)
    s = np.linspace(0, there.length, 301)
    here, other = PATHS["rounded"].sample(s), there.sample(s)
    np.testing.assert_allclose(other.pose[:, :3], move.apply(here.pose[:, :3]) + shift, atol=1e-12)
    np.testing.assert_allclose(other.second[:, 3:], move.apply(here.second[:, 3:]), atol=1e-9)


def test_a_step_without_length_is_refused() -> None:
    with pytest.raises(ValueError, match="step 1"):
        RoundedPath(POSES[[0, 1, 1, 2]], np.zeros(2))
