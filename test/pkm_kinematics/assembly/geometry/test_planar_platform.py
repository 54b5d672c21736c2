# SPDX-License-Identifier: Apache-2.0
"""Rigid platforms in the plane: known poses, brute force, degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_kinematics.assembly.geometry.planar_platform import planar_poses
from pkm_kinematics.assembly.result import Array, AssemblyStatus

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])


def measured(base: Array, platform: Array, pose: Array) -> Array:
    """Lengths of the legs at a pose (x, y, phi)."""
    cosine, sine = np.cos(pose[2]), np.sin(pose[2])
    rotation = np.array([[cosine, -sine], [sine, cosine]])
    return np.linalg.norm(pose[:2] + platform @ rotation.T - base, axis=1)


def geometry(rng: np.random.Generator, count: int = 3) -> tuple[Array, Array]:
    """Random points of base and platform."""
    base, platform = rng.normal(size=(2, count, 2))
    return base, platform


def gaps(solutions: Array, pose: Array) -> Array:
    """Distance of each solution to a pose, angles compared on the circle."""
    turns = np.abs(np.exp(1j * solutions[:, 2]) - np.exp(1j * pose[2]))
    return np.maximum(np.linalg.norm(solutions[:, :2] - pose[:2], axis=1), turns)


def brute_force(base: Array, platform: Array, lengths: Array, starts: int, rng: np.random.Generator) -> list[Array]:
    """Distinct poses that Newton's method on three circles reaches from random ones."""
    poses = np.column_stack([rng.uniform(-5, 5, size=(starts, 2)), rng.uniform(-np.pi, np.pi, starts)])
    for _ in range(60):
        cosine, sine = np.cos(poses[:, 2]), np.sin(poses[:, 2])
        rotation = np.moveaxis(np.array([[cosine, -sine], [sine, cosine]]), 2, 0)
        turned = np.einsum("nij,kj->nki", rotation, platform)
        legs = poses[:, None, :2] + turned - base
        jacobian = 2.0 * np.dstack([legs, legs[..., 1] * turned[..., 0] - legs[..., 0] * turned[..., 1]])
        error = np.sum(legs**2, axis=2) - lengths**2
        step = np.linalg.solve(jacobian + 1e-13 * np.eye(3), error[..., None])[..., 0]
        poses = poses - step * np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-9))
    found: list[Array] = []
    for pose in poses[np.max(np.abs(error), axis=1) < 1e-11]:
        if not found or gaps(np.array(found), pose).min() > 1e-5:
            found.append(pose)
    return found


def test_the_pose_is_among_six_complex_ones() -> None:
    rng = np.random.default_rng(0)
    for angle in (*rng.uniform(-np.pi, np.pi, 12), np.pi, np.pi - 1e-9, 0.0):
        base, platform = geometry(rng)
        pose = np.array([*rng.normal(size=2), angle])
        lengths = measured(base, platform, pose)
        modes = planar_poses(base, platform, lengths)
        assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, 6)
        assert gaps(modes.solutions, pose).min() < 1e-9
        for solution in modes.solutions:
            assert measured(base, platform, solution) == pytest.approx(lengths, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_brute_force_finds_the_same_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, platform = geometry(rng)
    lengths = measured(base, platform, np.array([*rng.normal(size=2), rng.uniform(-np.pi, np.pi)]))
    modes = planar_poses(base, platform, lengths)
    expected = brute_force(base, platform, lengths, 1500, rng)
    assert modes.n_real == len(expected)
    assert all(gaps(modes.solutions, pose).min() < 1e-7 for pose in expected)


def test_six_real_solutions_exist() -> None:
    """Among random 3-RPR platforms some have all six solutions real; all closures hold."""
    rng = np.random.default_rng(0)
    most = 0
    for _ in range(150):
        base, platform = geometry(rng)
        lengths = measured(base, platform, np.array([0.1, 0.2, 0.3]))
        modes = planar_poses(base, platform, lengths)
        assert modes.n_real % 2 == 0
        assert np.max(modes.residuals) < 1e-13
        most = max(most, modes.n_real)
    assert most == 6


def test_symmetric_robot_at_its_symmetric_pose() -> None:
    angle = np.deg2rad([90, 210, 330])
    base = np.column_stack([np.cos(angle), np.sin(angle)])
    modes = planar_poses(base, 0.4 * base, [0.6, 0.6, 0.6])  # all limbs radial: singular
    assert (modes.status, modes.n_complex) == (AssemblyStatus.SINGULAR, 6)
    assert np.allclose(modes.solutions, 0.0, atol=1e-7)
    modes = planar_poses(base, 0.4 * base, [0.9, 0.9, 0.9])
    assert modes.status == AssemblyStatus.COMPLETE
    expected = np.arccos((1 + 0.4**2 - 0.9**2) / (2 * 0.4))
    assert np.allclose(modes.solutions, [[0, 0, -expected], [0, 0, expected]], atol=1e-12)


def test_limbs_through_one_point_are_a_double_solution() -> None:
    base = np.array([[0.0, 0.0], [2.0, 0.1], [0.7, 1.9]])
    centre = np.array([0.8, 0.6])
    points = centre + np.array([[0.3], [0.4], [-0.35]]) * (base - centre)  # every limb points at the centre
    pose = np.array([0.9, 0.5, 0.2])
    rotation = np.array([[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]])
    platform = (points - pose[:2]) @ rotation
    modes = planar_poses(base, platform, measured(base, platform, pose))
    assert (modes.status, modes.n_complex) == (AssemblyStatus.SINGULAR, 6)
    gap = gaps(modes.solutions, pose)
    assert gap.min() < 1e-6
    assert modes.multiplicity[gap.argmin()] == 2


def test_parallelogram_moves_by_itself() -> None:
    lengths = measured(TRIANGLE, TRIANGLE, np.array([0.2, 0.5, 0.0]))
    modes = planar_poses(TRIANGLE, TRIANGLE, lengths)
    assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL
    assert np.any((modes.multiplicity == 0) & (np.abs(modes.solutions[:, 2]) < 1e-6))
    assert np.max(modes.residuals) < 1e-12
    # the same platform, limbs of other lengths: an ordinary robot, though phi = 0 is lost to four of its six roots
    pose = np.array([0.2, 0.5, 0.4])
    modes = planar_poses(TRIANGLE, TRIANGLE, measured(TRIANGLE, TRIANGLE, pose))
    assert modes.status == AssemblyStatus.COMPLETE
    assert gaps(modes.solutions, pose).min() < 1e-9


def test_fourth_limb_selects_and_invalid_input_is_refused() -> None:
    rng = np.random.default_rng(3)
    base, platform = geometry(rng, 4)
    pose = np.array([0.3, -0.2, 2.0])
    lengths = measured(base, platform, pose)
    modes = planar_poses(base, platform, lengths)
    assert modes.n_real == 1
    assert gaps(modes.solutions, pose).max() < 1e-9
    assert planar_poses(base, platform, lengths * [1, 1, 1, 1.01]).status == AssemblyStatus.INCONSISTENT
    assert planar_poses(base, platform, lengths * np.nan).status == AssemblyStatus.INVALID_INPUT
    assert planar_poses(base[:2], platform[:2], lengths[:2]).status == AssemblyStatus.INVALID_INPUT
