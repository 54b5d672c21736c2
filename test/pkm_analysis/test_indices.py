# SPDX-License-Identifier: Apache-2.0
"""Indices beside published figures, closed forms and brute force."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import nnls

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.indices import (
    ForcePolytope,
    Limits,
    VelocityPolytope,
    largest_ellipsoid,
    performance_indices,
    polytopes,
    zonotope_faces,
)
from pkm_description import load_mechanism
from pkm_kinematics.kinematics import Kinematics

RNG = np.random.default_rng(3)


def test_three_drives_for_two_translations_in_line():
    # Krut, Company, Pierrot 2002: the condition number says sqrt(2), the velocities are a square
    K = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    square = VelocityPolytope(K, np.ones(3))
    assert square.fastest == pytest.approx(np.sqrt(2.0))
    assert square.slowest == pytest.approx(1.0)
    assert len(square.vertices) == 4
    axes, _ = largest_ellipsoid(square.rows)
    np.testing.assert_allclose(axes, [1.0, 1.0], rtol=1e-6)
    assert np.linalg.cond(K) == pytest.approx(np.sqrt(2.0))


def test_three_sliders_at_120_degrees_have_the_published_indices():
    kinematics = Kinematics(load_mechanism("planar_redundant"))
    found = performance_indices(kinematics, kinematics.home, Limits(speed=(1.0,)))
    assert 1.0 / found.isotropy[0] == pytest.approx(1.49, rel=0.01)
    assert found.ellipsoid_ratio[0] == pytest.approx(1.08, rel=0.01)
    assert found.fastest[0] == pytest.approx(1.35, rel=0.01)
    assert found.speed_ratio[0] == pytest.approx(1.48, rel=0.01)
    assert found.slowest[0] == pytest.approx(0.917, rel=0.01)  # the 0.97 in print goes with neither 1.35 nor 1.48


def test_the_orthoglide_has_its_transmission_factors_at_its_corners():
    kinematics = Kinematics(load_mechanism("orthoglide"))
    length = 0.310583
    corners = [[-length / np.sqrt(6.0)] * 3, [length / np.sqrt(18.0)] * 3, [0.0] * 3]
    found = performance_indices(kinematics, corners, ellipsoids=False)
    expected = [[2.0, 2.0, 0.5], [2.0, 0.8, 0.8], [1.0, 1.0, 1.0]]
    np.testing.assert_allclose(found.transmission, expected, rtol=1e-3)
    np.testing.assert_allclose(found.isotropy, [0.25, 0.4, 1.0], rtol=1e-3)
    worst, where, mean = found.worst()["isotropy"]
    assert worst == found.isotropy.min()
    np.testing.assert_array_equal(where, corners[0])
    assert mean == pytest.approx(found.isotropy.mean())


def _refined(function, directions: np.ndarray) -> float:
    """The least value over directions, and over others ever nearer to the best of them."""
    best = directions[function(directions).argmin()]
    for size in (0.1, 0.03, 0.01, 0.003):
        near = best + size * RNG.standard_normal((5000, len(best)))
        near = np.vstack([best, near / np.linalg.norm(near, axis=1)[:, None]])
        best = near[function(near).argmin()]
    return float(function(best[None])[0])


@pytest.mark.parametrize(("m", "f"), [(2, 2), (3, 2), (3, 3), (5, 3), (7, 6)])
def test_extremes_are_those_of_a_search_over_directions(m, f):
    K, limits = RNG.standard_normal((m, f)), RNG.uniform(0.5, 2.0, m)
    velocity, force = VelocityPolytope(K, limits), ForcePolytope(K, limits)
    directions = RNG.standard_normal((100_000, f))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    speeds = 1.0 / np.abs(directions @ velocity.rows.T).max(axis=1)  # as far as the polytope goes in each
    far = np.abs(directions @ force.generators.T).sum(axis=1)  # the supporting plane in each
    slack = 1.0 + 1e-9
    assert velocity.slowest <= speeds.min() * slack
    assert velocity.fastest >= speeds.max() / slack
    assert force.weakest <= far.min() * slack
    assert force.strongest >= far.max() / slack
    if f < 4:
        assert _refined(lambda d: -1.0 / np.abs(d @ velocity.rows.T).max(axis=1), directions) < -0.99 * velocity.fastest
        assert _refined(lambda d: 1.0 / np.abs(d @ velocity.rows.T).max(axis=1), directions) < 1.01 * velocity.slowest
        assert _refined(lambda d: np.abs(d @ force.generators.T).sum(axis=1), directions) < 1.01 * force.weakest
        assert _refined(lambda d: -np.abs(d @ force.generators.T).sum(axis=1), directions) < -0.99 * force.strongest
    assert (np.abs(velocity.vertices @ velocity.rows.T) <= 1.0 + 1e-9).all()
    efforts = RNG.uniform(-1.0, 1.0, (2000, m)) * limits
    assert (np.abs(efforts @ K @ force.rows.T) <= 1.0 + 1e-9).all()


@pytest.mark.parametrize(("m", "f"), [(3, 2), (6, 3), (7, 6)])
def test_no_ellipsoid_inside_is_larger(m, f):
    rows = RNG.standard_normal((m, f))
    axes, directions = largest_ellipsoid(rows)
    M = directions @ np.diag(axes**2) @ directions.T
    touch = np.einsum("ij,jk,ik->i", rows, M, rows)
    assert touch.max() <= 1.0 + 1e-12
    # the optimum's condition: a weighted sum of the faces that it touches is the inverse of M, weights not negative
    faces = np.einsum("ij,ik->ijk", rows, rows).reshape(m, -1).T
    weights, rest = nnls(faces, np.linalg.inv(M).ravel())
    assert rest < 1e-4 * np.linalg.norm(np.linalg.inv(M))
    assert weights.sum() == pytest.approx(f, rel=1e-4)
    assert (np.abs(weights * (1.0 - touch)) < 1e-4).all()


def test_hay_and_snymans_condition():
    # their optimum: 0.901 is the least over a region that lies within the one reached at all three angles
    kinematics = Kinematics(load_mechanism("hay_snyman"))
    x, y, phi = np.meshgrid(np.linspace(0.7, 1.3, 7), np.linspace(1.3, 1.57, 7), np.deg2rad([-5.0, 0.0, 5.0]))
    coordinates = np.stack([x.ravel(), y.ravel(), phi.ravel()], axis=1)
    found = performance_indices(kinematics, coordinates, length=0.8553, ellipsoids=False)
    assert 0.88 < np.nanmin(found.condition) < 0.95


def test_parts_of_a_motion():
    kinematics = Kinematics(load_mechanism("gough_stewart"))
    whole = performance_indices(kinematics, kinematics.home)
    moving = performance_indices(kinematics, kinematics.home, part="translation")
    assert whole.transmission.shape == (1, 6)
    assert moving.transmission.shape == (1, 3)
    assert moving.fastest[0] <= whole.fastest[0]
    assert moving.weakest[0] >= whole.weakest[0]
    longer = performance_indices(kinematics, kinematics.home, part="translation", length=1.0)
    np.testing.assert_allclose(moving.transmission, longer.transmission)
    assert "rotations at" in repr(whole)
    with pytest.raises(AnalysisError, match="no such degree of freedom"):
        performance_indices(Kinematics(load_mechanism("delta")), [[0.0, 0.0, -0.85]], part="rotation")
    with pytest.raises(AnalysisError, match="not positive"):
        performance_indices(kinematics, kinematics.home, length=0.0)
    with pytest.raises(AnalysisError, match="positive number"):
        performance_indices(kinematics, kinematics.home, Limits(speed=(1.0, 2.0)))


def test_a_singular_pose_holds_nothing():
    flat = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert VelocityPolytope(flat, np.ones(2)).fastest == np.inf
    assert ForcePolytope(flat, np.ones(2)).weakest == 0.0
    with pytest.raises(AnalysisError, match="not bounded"):
        largest_ellipsoid(flat)


def test_polytopes_of_a_pose_are_those_of_its_indices(tmp_path):
    kinematics = Kinematics(load_mechanism("delta"))
    at = np.array([0.2, 0.1, -0.9])
    velocity, force = polytopes(kinematics, at)
    found = performance_indices(kinematics, at)
    assert (velocity.fastest, velocity.slowest) == (found.fastest[0], found.slowest[0])
    assert (force.strongest, force.weakest) == (found.strongest[0], found.weakest[0])
    outline = velocity.plot(tmp_path / "velocity.png").axes[0].patches[0].get_xy()
    shadow = velocity.vertices[:, :2]
    np.testing.assert_allclose([outline.min(0), outline.max(0)], [shadow.min(0), shadow.max(0)])
    assert len(force.plot().axes) == 3
    with pytest.raises(AnalysisError, match="that the limbs reach"):
        polytopes(kinematics, [5.0, 0.0, 0.0])
    with pytest.raises(AnalysisError, match="no end"):
        VelocityPolytope(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2)).plot()


def test_indices_are_drawn_over_what_varies():
    kinematics = Kinematics(load_mechanism("planar_redundant"))
    x, y = np.meshgrid(np.linspace(-0.05, -0.02, 4), np.linspace(-0.02, 0.02, 3))
    found = performance_indices(kinematics, np.stack([x.ravel(), y.ravel()], axis=1), ellipsoids=False)
    panel = found.plot().axes[0]
    worst, at, mean = found.worst()["isotropy"]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("x [m]", "y [m]")
    np.testing.assert_allclose(np.ravel(panel.lines[0].get_xydata()), at)
    numbers = found.to_dict()["indices"]["isotropy"]
    assert (numbers["worst"], numbers["mean"]) == (worst, mean)
    line = performance_indices(kinematics, [[-0.05, 0.0], [-0.02, 0.0]], ellipsoids=False).plot().axes[0]
    assert (line.get_xlabel(), line.get_ylabel()) == ("x [m]", "")


@pytest.mark.parametrize("f", [2, 3, 4, 6])
def test_faces_of_zonotopes_touch_them_and_are_all_that_there_are(f: int) -> None:
    rng = np.random.default_rng(f)
    m = f + 2
    generators = rng.normal(size=(20, m, f)) * 10.0 ** rng.uniform(-3.0, 3.0, (20, m, 1))
    generators[5:, 1] = generators[5:, 0] * 2.0  # two that are parallel
    generators[10:, 2] = 0.0
    rows = zonotope_faces(generators)
    chosen = list(combinations(range(m), f - 1))
    signs = np.array(list(product((-1.0, 1.0), repeat=m)))
    for G, faces in zip(generators, rows, strict=True):
        units = G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300)
        spans = [np.linalg.matrix_rank(units[list(one)], tol=1e-10) == f - 1 for one in chosen]
        there = faces.any(axis=1)
        assert there.tolist() == spans
        flat = np.linalg.matrix_rank(units, tol=1e-10) < f
        reached = (signs @ G @ faces[there].T).max(axis=0)
        if not flat:
            np.testing.assert_allclose(reached, 1.0, rtol=1e-9)
        for normal, one in zip(faces, chosen, strict=True):
            assert np.abs(units[list(one)] @ normal).max() <= 1e-9 * max(np.linalg.norm(normal), 1.0)
