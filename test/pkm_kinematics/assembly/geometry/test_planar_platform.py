# SPDX-License-Identifier: Apache-2.0
"""Rigid platforms in the plane: a published example, every mixture of limbs, brute force, degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_kinematics.assembly.geometry.planar_platform import PlanarKind, planar_poses
from pkm_kinematics.assembly.result import Array, AssemblyStatus

CIRCLE, LINE, MOVING_LINE, ANGLE = PlanarKind
# finite complex solutions of three limbs of these kinds, in general
COUNTS = {
    (CIRCLE, CIRCLE, CIRCLE): 6,
    (CIRCLE, CIRCLE, LINE): 6,
    (CIRCLE, CIRCLE, MOVING_LINE): 6,
    (CIRCLE, CIRCLE, ANGLE): 2,
    (CIRCLE, LINE, LINE): 4,
    (CIRCLE, LINE, MOVING_LINE): 6,
    (CIRCLE, LINE, ANGLE): 2,
    (CIRCLE, MOVING_LINE, MOVING_LINE): 4,
    (CIRCLE, MOVING_LINE, ANGLE): 2,
    (LINE, LINE, LINE): 2,
    (LINE, LINE, MOVING_LINE): 4,
    (LINE, LINE, ANGLE): 1,
    (LINE, MOVING_LINE, MOVING_LINE): 4,
    (LINE, MOVING_LINE, ANGLE): 1,
    (MOVING_LINE, MOVING_LINE, MOVING_LINE): 2,
    (MOVING_LINE, MOVING_LINE, ANGLE): 1,
}
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])


def measured(kinds: tuple[PlanarKind, ...], base: Array, platform: Array, pose: Array) -> Array:
    """Values of the constraints at a pose (x, y, phi), by their definitions."""
    cosine, sine = np.cos(pose[2]), np.sin(pose[2])
    rotation = np.array([[cosine, -sine], [sine, cosine]])
    values = []
    for kind, a, b in zip(kinds, base, platform, strict=True):
        values.append(
            {
                CIRCLE: np.linalg.norm(pose[:2] + rotation @ b - a),
                LINE: a @ (pose[:2] + rotation @ b),
                MOVING_LINE: b @ (rotation.T @ (a - pose[:2])),
                ANGLE: pose[2],
            }[kind]
        )
    return np.array(values)


def geometry(kinds: tuple[PlanarKind, ...], rng: np.random.Generator) -> tuple[Array, Array]:
    """Random points, and unit normals where a kind wants them."""
    base, platform = rng.normal(size=(2, len(kinds), 2))
    for i, kind in enumerate(kinds):
        if kind == LINE:
            base[i] /= np.linalg.norm(base[i])
        if kind == MOVING_LINE:
            platform[i] /= np.linalg.norm(platform[i])
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


def test_published_mixed_limbs() -> None:
    """One circle, one line, one platform line (Hayes and Husty 2002): two real solutions, printed to four digits."""
    half = np.sqrt(0.5)
    modes = planar_poses(
        [CIRCLE, LINE, MOVING_LINE],
        [[0, 0], [half, half], [3, 6]],
        [[0, 0], [2, 0], [-half, half]],
        [2.5, 6 * half, half],
    )
    assert modes.status == AssemblyStatus.COMPLETE
    printed = [[1.5837, 1.9344, 16.3404], [2.2993, 0.9814, 29.0303]]
    assert np.allclose(modes.solutions * [1, 1, 180 / np.pi], printed, atol=6e-5)
    # their quintic in tan(phi / 2) has these roots, and -1, where the two lines coincide off the circle
    roots = np.roots([45, -77, 56, 120, -53, 5])
    real = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
    assert np.allclose(real, [-1.0, *np.tan(modes.solutions[:, 2] / 2)], atol=1e-9)
    assert modes.n_complex == 6  # with the complex pair, and two complex positions at tan(phi / 2) = -1


@pytest.mark.parametrize("kinds", list(COUNTS))
def test_every_mixture_of_limbs(kinds: tuple[PlanarKind, ...]) -> None:
    rng = np.random.default_rng(sum(kinds))
    for angle in (*rng.uniform(-np.pi, np.pi, 4), np.pi, np.pi - 1e-9, 0.0):
        base, platform = geometry(kinds, rng)
        pose = np.array([*rng.normal(size=2), angle])
        order = rng.permutation(3)
        shuffled = tuple(kinds[i] for i in order)
        values = measured(shuffled, base[order], platform[order], pose)
        modes = planar_poses(shuffled, base[order], platform[order], values)
        assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, COUNTS[kinds])
        assert gaps(modes.solutions, pose).min() < 1e-9
        for solution in modes.solutions:
            found = measured(shuffled, base[order], platform[order], solution)
            turns = np.where(np.array(shuffled) == ANGLE, 2 * np.pi, np.inf)
            assert np.all(np.minimum(np.abs(found - values), np.abs(turns - np.abs(found - values))) < 1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_brute_force_finds_the_same_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = (CIRCLE,) * 3
    base, platform = geometry(kinds, rng)
    lengths = measured(kinds, base, platform, np.array([*rng.normal(size=2), rng.uniform(-np.pi, np.pi)]))
    modes = planar_poses(kinds, base, platform, lengths)
    expected = brute_force(base, platform, lengths, 1500, rng)
    assert modes.n_real == len(expected)
    assert all(gaps(modes.solutions, pose).min() < 1e-7 for pose in expected)


def test_six_real_solutions_exist() -> None:
    """Among random 3-RPR platforms some have all six solutions real; all closures hold."""
    rng = np.random.default_rng(0)
    most = 0
    for _ in range(150):
        base, platform = geometry((CIRCLE,) * 3, rng)
        lengths = measured((CIRCLE,) * 3, base, platform, np.array([0.1, 0.2, 0.3]))
        modes = planar_poses([CIRCLE] * 3, base, platform, lengths)
        assert modes.n_real % 2 == 0
        assert np.max(modes.residuals) < 1e-13
        most = max(most, modes.n_real)
    assert most == 6


def test_symmetric_robot_at_its_symmetric_pose() -> None:
    angle = np.deg2rad([90, 210, 330])
    base = np.column_stack([np.cos(angle), np.sin(angle)])
    modes = planar_poses([CIRCLE] * 3, base, 0.4 * base, [0.6, 0.6, 0.6])  # all limbs radial: singular
    assert (modes.status, modes.n_complex) == (AssemblyStatus.SINGULAR, 6)
    assert np.allclose(modes.solutions, 0.0, atol=1e-7)
    modes = planar_poses([CIRCLE] * 3, base, 0.4 * base, [0.9, 0.9, 0.9])
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
    modes = planar_poses([CIRCLE] * 3, base, platform, measured((CIRCLE,) * 3, base, platform, pose))
    assert (modes.status, modes.n_complex) == (AssemblyStatus.SINGULAR, 6)
    gap = gaps(modes.solutions, pose)
    assert gap.min() < 1e-6
    assert modes.multiplicity[gap.argmin()] == 2


def test_parallelogram_moves_by_itself() -> None:
    lengths = measured((CIRCLE,) * 3, TRIANGLE, TRIANGLE, np.array([0.2, 0.5, 0.0]))
    modes = planar_poses([CIRCLE] * 3, TRIANGLE, TRIANGLE, lengths)
    assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL
    assert np.any((modes.multiplicity == 0) & (np.abs(modes.solutions[:, 2]) < 1e-6))
    assert np.max(modes.residuals) < 1e-12
    # the same platform, limbs of other lengths: an ordinary robot, though phi = 0 is lost to four of its six roots
    pose = np.array([0.2, 0.5, 0.4])
    modes = planar_poses([CIRCLE] * 3, TRIANGLE, TRIANGLE, measured((CIRCLE,) * 3, TRIANGLE, TRIANGLE, pose))
    assert modes.status == AssemblyStatus.COMPLETE
    assert gaps(modes.solutions, pose).min() < 1e-9


def test_two_angles_leave_a_motion_or_contradict() -> None:
    kinds, zeros = [CIRCLE, ANGLE, ANGLE], np.zeros((3, 2))
    assert planar_poses(kinds, zeros, zeros, [1, 0.2, 0.2]).status == AssemblyStatus.POSITIVE_DIMENSIONAL
    four = [CIRCLE, CIRCLE, ANGLE, ANGLE]
    base = np.array([[0, 0], [1, 0], [0, 0], [0, 0]])
    assert planar_poses(four, base, np.zeros((4, 2)), [1, 1, 0.2, 0.2]).n_real == 2
    assert planar_poses(four, base, np.zeros((4, 2)), [1, 1, 0.2, 0.3]).status == AssemblyStatus.INCONSISTENT


def test_fourth_limb_selects_and_invalid_input_is_refused() -> None:
    rng = np.random.default_rng(3)
    kinds = (CIRCLE,) * 4
    base, platform = geometry(kinds, rng)
    pose = np.array([0.3, -0.2, 2.0])
    lengths = measured(kinds, base, platform, pose)
    modes = planar_poses(kinds, base, platform, lengths)
    assert modes.n_real == 1
    assert gaps(modes.solutions, pose).max() < 1e-9
    assert planar_poses(kinds, base, platform, lengths * [1, 1, 1, 1.01]).status == AssemblyStatus.INCONSISTENT
    assert planar_poses(kinds, base, platform, lengths * np.nan).status == AssemblyStatus.INVALID_INPUT
    assert planar_poses(kinds[:2], base[:2], platform[:2], lengths[:2]).status == AssemblyStatus.INVALID_INPUT
