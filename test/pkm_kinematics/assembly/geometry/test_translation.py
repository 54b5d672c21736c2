# SPDX-License-Identifier: Apache-2.0
"""Points on spheres: the forward kinematics of translational robots."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_kinematics.assembly.geometry.surfaces import point_on_spheres
from pkm_kinematics.assembly.result import AssemblyStatus
from pkm_kinematics.kernels.path.assembled import APART, TWO, three_spheres


@pytest.mark.parametrize("seed", range(30))
def test_known_point_and_its_mirror_image(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, point = rng.normal(size=(3, 3)), rng.normal(size=3)
    modes = point_on_spheres(centres, np.linalg.norm(point - centres, axis=1))
    assert (modes.status, modes.n_complex, modes.n_real) == (AssemblyStatus.COMPLETE, 2, 2)
    assert np.abs(modes.solutions - point).max(axis=1).min() < 1e-10  # rounding, magnified close to tangency
    assert np.max(modes.residuals) < 1e-13
    normal = np.cross(centres[1] - centres[0], centres[2] - centres[0])
    heights = (modes.solutions - centres[0]) @ normal
    assert heights[0] > 0
    assert heights[1] == pytest.approx(-heights[0])


def test_orthogonal_slides_meet_on_the_diagonal() -> None:
    """Spheres about (a, 0, 0), (0, a, 0), (0, 0, a): both points are on the line x = y = z."""
    a, length = 0.2, 0.450
    modes = point_on_spheres(a * np.eye(3), np.full(3, length))
    roots = np.roots([3.0, -2.0 * a, a * a - length**2])
    assert np.allclose(np.sort(modes.solutions[:, 0]), np.sort(roots), atol=1e-15)
    assert np.allclose(modes.solutions, modes.solutions[:, :1], atol=1e-15)


def test_orthoglide_at_its_corner() -> None:
    """Bars of 0.310583 m; the far corner of the prescribed cube is at -126.795 mm on the diagonal."""
    length, s = 0.310582854, -0.126794919
    slides = s + np.sqrt(length**2 - 2 * s**2)
    modes = point_on_spheres(slides * np.eye(3), np.full(3, length))
    assert np.abs(modes.solutions - s).max(axis=1).min() < 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_tangent_spheres_are_one_double_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 3))
    weights = rng.random(3)
    point = weights / weights.sum() @ centres  # in the plane of the centres
    modes = point_on_spheres(centres, np.linalg.norm(point - centres, axis=1))
    assert (modes.status, modes.n_complex) == (AssemblyStatus.SINGULAR, 2)
    assert modes.multiplicity.tolist() == [2]
    assert np.max(modes.residuals) < 1e-12
    assert np.allclose(modes.solutions, point, atol=1e-9)


def test_spheres_apart_have_no_real_point() -> None:
    modes = point_on_spheres(np.eye(3), [0.1, 0.1, 0.1])
    assert (modes.status, modes.n_complex, modes.n_real) == (AssemblyStatus.COMPLETE, 2, 0)


def test_collinear_centres_leave_a_circle_or_nothing() -> None:
    line = np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]])
    point = np.array([0.5, 0.3, -0.4])
    modes = point_on_spheres(line, np.linalg.norm(point - line, axis=1))
    assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL
    assert np.max(modes.residuals) < 1e-14
    assert point_on_spheres(line, [1.0, 1.0, 1.0]).n_real == 0
    assert point_on_spheres(np.zeros((3, 3)), [1.0, 1.0, 1.0]).status == AssemblyStatus.POSITIVE_DIMENSIONAL


def test_redundant_limb_selects_confirms_or_contradicts() -> None:
    rng = np.random.default_rng(1)
    centres, point = rng.normal(size=(4, 3)), rng.normal(size=3)
    radii = np.linalg.norm(point - centres, axis=1)
    modes = point_on_spheres(centres, radii)
    assert modes.status == AssemblyStatus.COMPLETE
    assert np.allclose(modes.solutions, [point], atol=1e-12)
    centres[:, 2] = 0.0  # a flat base keeps the mirror image
    assert point_on_spheres(centres, np.linalg.norm(point - centres, axis=1)).n_real == 2
    point[2] = 0.0
    assert point_on_spheres(centres, np.linalg.norm(point - centres, axis=1)).status == AssemblyStatus.SINGULAR
    assert point_on_spheres(centres, radii * [1, 1, 1, 1.01]).status == AssemblyStatus.INCONSISTENT


def test_invalid_input() -> None:
    assert point_on_spheres(np.eye(3), [1, np.nan, 1]).status == AssemblyStatus.INVALID_INPUT
    assert point_on_spheres(np.eye(3), [1, -1, 1]).status == AssemblyStatus.INVALID_INPUT
    assert point_on_spheres(np.eye(3)[:2], [1, 1]).status == AssemblyStatus.INVALID_INPUT


def test_every_answer_is_what_the_distances_say() -> None:
    """Random centres and radii: two points at those distances, or none, as the best of many points tells."""
    rng = np.random.default_rng(2)
    points, answers = np.empty((2, 3)), []
    for k in range(200):
        centres = rng.normal(size=(3, 3))
        radii = np.linalg.norm(rng.normal(size=(1, 3)) - centres, axis=1) * (0.3 if k % 2 else 1.0)
        answers.append(three_spheres(centres, radii, points))
        away = np.linalg.norm(points[:, None] - centres, axis=2)
        if answers[-1] == TWO:
            assert np.abs(away - radii).max() < 1e-9 * radii.max()
            continue
        assert answers[-1] == APART
        assert np.array_equal(points[0], points[1])
        # powers are equal there, and positive: no point is on all three spheres
        power = away[0] ** 2 - radii**2
        assert np.ptp(power) < 1e-9
        assert power.min() > 0.0
    assert set(answers) == {TWO, APART}
