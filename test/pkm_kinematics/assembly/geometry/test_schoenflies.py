# SPDX-License-Identifier: Apache-2.0
"""Three translations and an angle on four or more spheres: H4, Par4 and rigid Schoenflies platforms."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_kinematics.assembly.geometry.schoenflies import positions_and_angle
from pkm_kinematics.assembly.result import Array, AssemblyStatus

Platform = tuple[Array, Array, Array]


def general(rng: np.random.Generator, count: int = 4) -> Platform:
    """Points that move on ellipses of no particular kind."""
    fixed, cosine, sine = rng.normal(size=(3, count, 3))
    return fixed, cosine, sine


def rigid(rng: np.random.Generator, count: int = 4) -> Platform:
    """Points of a body that turns about z."""
    points = rng.normal(size=(count, 3))
    x, y, z = points.T
    zero = np.zeros(count)
    return np.column_stack([zero, zero, z]), np.column_stack([x, y, zero]), np.column_stack([-y, x, zero])


def articulated(rng: np.random.Generator) -> Platform:
    """Two half plates, two limbs each, that keep their orientation while the bar between them turns."""
    sides = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    return rng.normal(size=(4, 3)) * [1, 1, 0], 0.2 * sides * [1, 0, 0], 0.2 * sides * [0, 1, 0]


def distances(base: Array, platform: Platform, pose: Array) -> Array:
    """Lengths of the limbs at a pose (x, y, z, phi)."""
    fixed, cosine, sine = platform
    points = pose[:3] + fixed + np.cos(pose[3]) * cosine + np.sin(pose[3]) * sine
    return np.linalg.norm(points - base, axis=1)


def gaps(solutions: Array, pose: Array) -> Array:
    """Distance of each solution to a pose, angles compared on the circle."""
    turns = np.abs(np.exp(1j * solutions[:, 3]) - np.exp(1j * pose[3]))
    return np.maximum(np.linalg.norm(solutions[:, :3] - pose[:3], axis=1), turns)


@pytest.mark.parametrize(("make", "count"), [(general, 16), (rigid, 8), (articulated, 8)])
def test_counts_and_the_known_pose(make: object, count: int) -> None:
    rng = np.random.default_rng(count)
    for angle in (*rng.uniform(-np.pi, np.pi, 6), np.pi):
        base, platform = rng.normal(size=(4, 3)), make(rng)  # type: ignore[operator]
        pose = np.array([*rng.normal(size=3), angle])
        lengths = distances(base, platform, pose)
        modes = positions_and_angle(base, *platform, lengths)
        assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, count)
        assert modes.n_real % 2 == 0
        assert gaps(modes.solutions, pose).min() < 1e-9
        for solution in modes.solutions:
            assert np.allclose(distances(base, platform, solution), lengths, atol=1e-12)


def brute_force(base: Array, platform: Platform, lengths: Array, rng: np.random.Generator) -> list[Array]:
    """Distinct poses that Newton's method reaches from random ones."""
    fixed, cosine, sine = platform
    poses = np.column_stack([rng.uniform(-6, 6, size=(4000, 3)), rng.uniform(-np.pi, np.pi, 4000)])
    for _ in range(60):
        c, s = np.cos(poses[:, 3])[:, None, None], np.sin(poses[:, 3])[:, None, None]
        legs = poses[:, None, :3] + fixed + c * cosine + s * sine - base
        jacobian = 2.0 * np.dstack([legs, np.sum(legs * (c * sine - s * cosine), axis=2)])
        error = np.sum(legs**2, axis=2) - lengths**2
        step = np.linalg.solve(jacobian + 1e-13 * np.eye(4), error[..., None])[..., 0]
        poses = poses - step * np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-9))
    found: list[Array] = []
    for pose in poses[np.max(np.abs(error), axis=1) < 1e-10]:
        if not found or gaps(np.array(found), pose).min() > 1e-5:
            found.append(pose)
    return found


@pytest.mark.parametrize("make", [general, rigid, articulated])
def test_brute_force_finds_the_same_set(make: object) -> None:
    rng = np.random.default_rng(7)
    base, platform = rng.normal(size=(4, 3)), make(rng)  # type: ignore[operator]
    lengths = distances(base, platform, np.array([*rng.normal(size=3), 0.7]))
    modes = positions_and_angle(base, *platform, lengths)
    expected = brute_force(base, platform, lengths, rng)
    assert modes.n_real == len(expected)
    assert all(gaps(modes.solutions, pose).min() < 1e-6 for pose in expected)


def test_fifth_limb_selects_and_contradiction_is_noticed() -> None:
    rng = np.random.default_rng(3)
    base, platform, pose = rng.normal(size=(5, 3)), rigid(rng, 5), np.array([0.1, 0.2, -0.8, 2.5])
    lengths = distances(base, platform, pose)
    modes = positions_and_angle(base, *platform, lengths)
    assert modes.n_real == 1
    assert gaps(modes.solutions, pose).max() < 1e-9
    lengths[4] += 0.01
    assert positions_and_angle(base, *platform, lengths).status == AssemblyStatus.INCONSISTENT


def test_equal_and_parallel_limbs_move_by_themselves() -> None:
    rng = np.random.default_rng(4)
    platform = rigid(rng)
    base = platform[0] + platform[1]  # congruent to the platform at phi = 0
    lengths = distances(base, platform, np.array([0.3, 0.1, 0.9, 0.0]))
    assert positions_and_angle(base, *platform, lengths).status == AssemblyStatus.POSITIVE_DIMENSIONAL


def test_invalid_input() -> None:
    rng = np.random.default_rng(5)
    base, platform = rng.normal(size=(4, 3)), rigid(rng)
    assert positions_and_angle(base, *platform, [1, 1, 1, np.nan]).status == AssemblyStatus.INVALID_INPUT
    assert positions_and_angle(base, *platform, [1, 1, 1, -1]).status == AssemblyStatus.INVALID_INPUT
    three = positions_and_angle(base[:3], *(x[:3] for x in platform), [1, 1, 1])
    assert three.status == AssemblyStatus.INVALID_INPUT
