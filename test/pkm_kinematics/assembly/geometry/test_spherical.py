# SPDX-License-Identifier: Apache-2.0
"""Rotations with three given angles: the forward kinematics of spherical robots."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_kinematics.assembly.geometry.rigid_body import three_angles
from pkm_kinematics.assembly.result import Array, AssemblyStatus


def unit(rng: np.random.Generator, count: int) -> Array:
    vectors = rng.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(base: Array, platform: Array, rotation: Rotation) -> Array:
    """Cosines of the angles between base and turned platform directions."""
    return np.sum(base * rotation.apply(platform), axis=1)


def gaps(solutions: Array, rotation: Rotation) -> Array:
    return (Rotation.from_quat(solutions) * rotation.inv()).magnitude()


@pytest.mark.parametrize("seed", range(20))
def test_generic_geometry_has_eight_solutions_among_them_the_known_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, platform, rotation = unit(rng, 3), unit(rng, 3), Rotation.random(None, rng)
    given = cosines(base, platform, rotation)
    modes = three_angles(base, platform, given)
    assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, 8)
    assert gaps(modes.solutions, rotation).min() < 1e-9
    for solution in modes.solutions:
        assert np.allclose(cosines(base, platform, Rotation.from_quat(solution)), given, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_brute_force_finds_the_same_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, platform = unit(rng, 3), unit(rng, 3)
    given = cosines(base, platform, Rotation.random(None, rng))
    rotation = Rotation.random(600, rng)
    for _ in range(60):
        turned = np.einsum("nij,kj->nki", rotation.as_matrix(), platform)
        error = np.sum(turned * base, axis=2) - given
        step = np.linalg.solve(np.cross(turned, base) + 1e-13 * np.eye(3), error[..., None])[..., 0]
        step *= np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-9))
        rotation = Rotation.from_rotvec(-step) * rotation
    found: list[Array] = []
    for candidate in rotation[np.max(np.abs(error), axis=1) < 1e-12]:
        if not found or gaps(np.array(found), candidate).min() > 1e-5:
            found.append(candidate.as_quat())
    modes = three_angles(base, platform, given)
    assert modes.n_real == len(found)
    assert all(gaps(modes.solutions, Rotation.from_quat(other)).min() < 1e-7 for other in found)


def agile_eye(inputs: Array) -> tuple[Array, Array]:
    """Intermediate axes and platform axes of the orthogonal 3-RRR: right angles everywhere."""
    axes, start = np.eye(3), -np.roll(np.eye(3), 1, axis=1)[[1, 2, 0]]
    base = np.array([Rotation.from_rotvec(t * u).apply(w) for t, u, w in zip(inputs, axes, start, strict=True)])
    return base, np.roll(np.eye(3), 1, axis=1)


def test_agile_eye_has_four_trivial_orientations() -> None:
    """Four of its eight solutions do not depend on the inputs (Bonev, Chablat, Wenger 2006)."""
    rng = np.random.default_rng(0)
    trivial = None
    for inputs in rng.uniform(-0.7, 0.7, size=(6, 3)):
        base, platform = agile_eye(inputs)
        assert np.allclose(np.sum(base * np.eye(3), axis=1), 0.0, atol=1e-15)  # proximal right angles
        modes = three_angles(base, platform, np.zeros(3))
        assert (modes.status, modes.n_complex, modes.n_real) == (AssemblyStatus.COMPLETE, 8, 8)
        turned = np.einsum("nij,kj->nki", Rotation.from_quat(modes.solutions).as_matrix(), platform)
        locked = np.all(np.abs(np.abs(np.einsum("nki,ki->nk", turned, np.eye(3))) - 1.0) < 1e-9, axis=1)
        assert locked.sum() == 4  # platform axes along the actuated ones, whatever the inputs
        fixed = np.round(modes.solutions[locked], 9)
        assert trivial is None or np.allclose(fixed, trivial)
        trivial = fixed


@pytest.mark.parametrize("seed", range(4))
def test_dependent_axes_are_a_double_solution(seed: int) -> None:
    """Where the constraint axes w x R v lie in a plane the pose is singular."""
    rng = np.random.default_rng(seed)
    rotation = Rotation.random(None, rng)
    base, platform = unit(rng, 3), unit(rng, 3)
    axes = np.cross(base, rotation.apply(platform))
    normal = np.cross(axes[0], axes[1])
    direction = rotation.apply(platform[2])
    base[2] = np.cross(direction, np.cross(normal, direction)) + 0.4 * direction  # makes w x R v orthogonal to normal
    axis = np.cross(base[2], direction)
    base[2] = np.cross(direction, np.cross(normal, axis)) if abs(axis @ normal) > 1e-12 else base[2]
    base[2] /= np.linalg.norm(base[2])
    assert abs(np.linalg.det(np.cross(base, rotation.apply(platform)))) < 1e-12
    modes = three_angles(base, platform, cosines(base, platform, rotation))
    assert (modes.status, modes.n_complex) == (AssemblyStatus.SINGULAR, 8)
    gap = gaps(modes.solutions, rotation)
    assert gap.min() < 1e-6
    assert modes.multiplicity[gap.argmin()] == 2


def test_one_platform_axis_for_all_limbs_spins_freely() -> None:
    rng = np.random.default_rng(2)
    base, platform = unit(rng, 3), np.repeat(unit(rng, 1), 3, axis=0)
    rotation = Rotation.random(None, rng)
    modes = three_angles(base, platform, cosines(base, platform, rotation))
    assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL
    assert modes.n_real > 0
    assert np.max(modes.residuals) < 1e-12


def test_impossible_angles_and_invalid_input() -> None:
    base = np.array([[1.0, 0, 0], [1.0, 0.01, 0] / np.linalg.norm([1.0, 0.01, 0]), [0, 1, 0]])
    platform = base.copy()
    modes = three_angles(base, platform, [1.0, -1.0, 0.0])
    assert modes.status in (AssemblyStatus.COMPLETE, AssemblyStatus.SINGULAR)
    assert modes.n_real == 0
    assert three_angles(base, platform, [2.0, 0, 0]).status == AssemblyStatus.INVALID_INPUT
    assert three_angles(2 * base, platform, [0.0, 0, 0]).status == AssemblyStatus.INVALID_INPUT
    assert three_angles(base, platform, [np.nan, 0, 0]).status == AssemblyStatus.INVALID_INPUT
