# SPDX-License-Identifier: Apache-2.0
"""A rigid platform on spheres, planes and directions: counts of the literature and a known pose among the answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_kinematics.assembly.geometry.rigid_body import ConstraintKind, poses
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet

SPHERE, PLANE, MOVING_PLANE, DIRECTION = ConstraintKind


def measured(kinds: list[ConstraintKind], base: Array, platform: Array, rotation: Array, translation: Array) -> Array:
    """Values of the constraints at a pose, by their definitions."""
    values = []
    for kind, a, b in zip(kinds, base, platform, strict=True):
        values.append(
            {
                SPHERE: np.linalg.norm(translation + rotation @ b - a),
                PLANE: a @ (translation + rotation @ b),
                MOVING_PLANE: b @ (rotation.T @ (a - translation)),
                DIRECTION: a @ rotation @ b,
            }[kind]
        )
    return np.array(values)


def check(modes: SolutionSet, kinds: list[ConstraintKind], base: Array, platform: Array, values: Array) -> None:
    """Every listed pose satisfies every constraint."""
    for pose in modes.solutions:
        found = measured(kinds, base, platform, Rotation.from_quat(pose[3:]).as_matrix(), pose[:3])
        assert np.allclose(found, values, atol=1e-12)


def unit(rng: np.random.Generator, count: int) -> Array:
    vectors = rng.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("kinds", "count", "trials"),
    [
        ([SPHERE] * 2 + [PLANE] * 2 + [MOVING_PLANE, DIRECTION], 40, 1),
        ([PLANE] * 6, 8, 1),
        ([SPHERE] * 3 + [DIRECTION] * 3, 16, 1),  # eight orientations, and a point on three spheres for each
        pytest.param([PLANE] * 6, 8, 3, marks=pytest.mark.slow),
        pytest.param([SPHERE] * 3 + [DIRECTION] * 3, 16, 3, marks=pytest.mark.slow),
    ],
)
def test_generic_constraints(kinds: list[ConstraintKind], count: int, trials: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(trials):
        base, platform = unit(rng, 6), unit(rng, 6)
        rotation, translation = Rotation.random(None, rng), rng.normal(size=3)
        values = measured(kinds, base, platform, rotation.as_matrix(), translation)
        modes = poses(kinds, base, platform, values)
        assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, count)
        check(modes, kinds, base, platform, values)
        gap = np.abs(modes.solutions[:, :3] - translation).max(axis=1)
        assert gap.min() < 1e-9
        assert (Rotation.from_quat(modes.solutions[gap.argmin(), 3:]) * rotation.inv()).magnitude() < 1e-9


def triangle(radius: float) -> Array:
    """Three points at equal angles about z."""
    angle = np.deg2rad([90, 210, 330])
    return radius * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)


def test_three_rps_has_sixteen_solutions_in_mirror_pairs() -> None:
    """Platform vertices on spheres and in vertical planes: the 3-RPS robot (Tsai 1999: 8 and 8 mirrored)."""
    kinds = [SPHERE] * 3 + [PLANE] * 3
    base = np.vstack([triangle(1.0), np.cross(triangle(1.0), [0, 0, 1])])
    platform = np.vstack([triangle(0.5), triangle(0.5)])
    values = np.array([0.9, 0.95, 1.02, 0, 0, 0])
    modes = poses(kinds, base, platform, values)
    assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, 16)
    check(modes, kinds, base, platform, values)
    assert np.allclose(modes.solutions[:, 2], -modes.solutions[::-1, 2], atol=1e-9)


def test_tricept_is_closed_by_its_passive_leg() -> None:
    """Three legs and a passive universal joint with a slide: two platform planes through a point, one right angle."""
    kinds = [SPHERE] * 3 + [MOVING_PLANE] * 2 + [DIRECTION]
    base = np.vstack([triangle(0.5), [[0, 0, 0], [0, 0, 0], [0, 1, 0]]])
    platform = np.vstack([triangle(0.2), [[1, 0, 0], [0, 1, 0], [1, 0, 0]]])
    rotation = Rotation.from_euler("YX", [0.3, 0.2])
    values = measured(kinds, base, platform, rotation.as_matrix(), rotation.apply([0, 0, 1.2]))
    assert np.allclose(values[3:], 0.0, atol=1e-15)
    modes = poses(kinds, base, platform, values)
    assert modes.status == AssemblyStatus.COMPLETE
    check(modes, kinds, base, platform, values)
    assert np.abs(modes.solutions - [*rotation.apply([0, 0, 1.2]), *rotation.as_quat()]).max(axis=1).min() < 1e-9


def test_one_constraint_twice_leaves_a_motion() -> None:
    rng = np.random.default_rng(2)
    rows = [0, 1, 2, 3, 4, 4]
    base, platform = rng.normal(size=(6, 3))[rows], rng.normal(size=(6, 3))[rows]
    values = measured([SPHERE] * 6, base, platform, np.eye(3), np.ones(3))
    assert poses([SPHERE] * 6, base, platform, values).status == AssemblyStatus.POSITIVE_DIMENSIONAL
