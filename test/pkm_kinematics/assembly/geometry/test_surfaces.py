# SPDX-License-Identifier: Apache-2.0
"""Points on quadrics and tori, against intersections that are known and against points that are given."""

from __future__ import annotations

from itertools import product

import numpy as np

from pkm_kinematics.assembly.geometry.surfaces import normals, point_on_surfaces
from pkm_kinematics.assembly.result import Array, AssemblyStatus

NONE = np.zeros((0, 5, 5))


def cylinder(axis: Array, through: Array, radius: float) -> Array:
    across = (np.eye(3) - np.outer(axis, axis)) @ np.column_stack([-through, np.eye(3), np.zeros(3)])
    return across.T @ across - radius**2 * np.diag([1.0, 0.0, 0.0, 0.0, 0.0])


def torus(axis: Array, centre: Array, ring: float, tube: float) -> Array:
    """(|d|^2 + ring^2 - tube^2)^2 = 4 ring^2 (|d|^2 - (axis.d)^2), d = p - centre."""
    square = np.array([centre @ centre, *(-2.0 * centre), 1.0])
    height = np.array([-axis @ centre, *axis, 0.0])
    one = np.eye(5)[0]
    rest = square + (ring**2 - tube**2) * one
    lifted = 0.5 * (np.outer(square, one) + np.outer(one, square))
    return np.outer(rest, rest) - 4.0 * ring**2 * (lifted - np.outer(height, height))


def sphere(centre: Array, radius: float) -> Array:
    return np.array([centre @ centre - radius**2, *(-2.0 * centre), 1.0])


def test_three_cylinders_across_each_other() -> None:
    """Steinmetz: three unit cylinders along the axes meet in the eight points of coordinates +-1/sqrt(2)."""
    surfaces = [cylinder(axis, np.zeros(3), 1.0) for axis in np.eye(3)]
    found = point_on_surfaces(np.zeros((0, 5)), surfaces, np.array([0.3, -0.2, 0.1]), 1.5)
    assert (found.status, found.n_complex, found.n_real) == (AssemblyStatus.COMPLETE, 8, 8)
    expected = np.array(list(product((1.0, -1.0), repeat=3))) / np.sqrt(2.0)
    gaps = np.linalg.norm(found.solutions[:, None] - expected, axis=2)
    assert gaps.min(axis=0).max() < 1e-14
    assert found.residuals.max() < 1e-14


def test_surfaces_through_a_given_point() -> None:
    """That point is among the solutions, and each of these lies on every surface by its definition."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        point, axes = rng.normal(size=3), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        centres, tubes = rng.normal(size=(3, 3)), []
        for axis, centre in zip(axes, centres, strict=True):
            d = point - centre
            tubes.append(float(np.hypot(axis @ d, np.sqrt(d @ d - (axis @ d) ** 2) - 0.4)))
        tori = [torus(axis, centre, 0.4, tube) for axis, centre, tube in zip(axes, centres, tubes, strict=True)]
        found = point_on_surfaces(np.zeros((0, 5)), tori, np.zeros(3), 1.0)
        assert (found.status, found.n_complex) == (AssemblyStatus.COMPLETE, 16)
        assert found.n_real % 2 == 0
        assert np.linalg.norm(found.solutions - point, axis=1).min() < 1e-10
        for p in found.solutions:
            for axis, centre, tube in zip(axes, centres, tubes, strict=True):
                d = p - centre
                height, radius = axis @ d, np.sqrt(max(d @ d - (axis @ d) ** 2, 0.0))
                assert min(abs(np.hypot(height, radius + sign * 0.4) - tube) for sign in (1.0, -1.0)) < 1e-9


def test_linear_equations_are_eliminated_and_may_repeat_each_other() -> None:
    rng = np.random.default_rng(2)
    point, centres = rng.normal(size=3), rng.normal(size=(5, 3))
    spheres = [sphere(c, float(np.linalg.norm(point - c))) for c in centres]
    three = point_on_surfaces(spheres[:3], NONE, np.zeros(3), 1.0)
    assert (three.status, three.n_complex, three.n_real) == (AssemblyStatus.COMPLETE, 2, 2)
    assert np.linalg.norm(three.solutions - point, axis=1).min() < 1e-12
    five = point_on_surfaces(spheres, NONE, np.zeros(3), 1.0)
    assert five.n_real == 1
    assert np.linalg.norm(five.solutions[0] - point) < 1e-12
    planes = [[-n @ point, *n, 0.0] for n in np.eye(3)]
    assert np.allclose(point_on_surfaces(planes, NONE, np.zeros(3), 1.0).solutions, point, atol=1e-14)
    mixed = point_on_surfaces(planes[:1], [cylinder(np.eye(3)[2], centres[0], 2.0)], np.zeros(3), 1.0)
    assert mixed.status == AssemblyStatus.POSITIVE_DIMENSIONAL  # a curve
    assert mixed.n_real == 0


def test_touching_and_missing() -> None:
    """Spheres that touch have one double point; ones that miss each other two complex points, and no real one."""
    centres = np.array([[1.0, 0.0, 0.0], [-0.5, 0.8, 0.0], [-0.5, -0.8, 0.0]])
    inside = np.array([0.1, 0.2, 0.0])
    radii = np.linalg.norm(centres - inside, axis=1)
    touching = point_on_surfaces([sphere(c, r) for c, r in zip(centres, radii, strict=True)], NONE, np.zeros(3), 1.0)
    assert touching.status == AssemblyStatus.SINGULAR
    assert touching.multiplicity.tolist() == [2]
    assert np.linalg.norm(touching.solutions[0] - inside) < 1e-6
    missing = point_on_surfaces([sphere(c, 0.1) for c in centres], NONE, np.zeros(3), 1.0)
    assert (missing.status, missing.n_complex, missing.n_real) == (AssemblyStatus.COMPLETE, 2, 0)
    contradiction = [sphere(c, r) for c, r in zip([*centres, centres[0]], [*radii, 0.3], strict=True)]
    assert point_on_surfaces(contradiction, NONE, np.zeros(3), 1.0).status == AssemblyStatus.INCONSISTENT


def test_normals_are_gradients() -> None:
    rng = np.random.default_rng(3)
    linear, quadrics, p = rng.normal(size=(2, 5)), rng.normal(size=(2, 5, 5)), rng.normal(size=3)
    quadrics += np.swapaxes(quadrics, 1, 2)

    def values(p: Array) -> Array:
        z = np.array([1.0, *p, p @ p])
        return np.concatenate([linear @ z, np.einsum("kab,a,b->k", quadrics, z, z)])

    step = 1e-6 * np.eye(3)
    slopes = np.array([(values(p + h) - values(p - h)) / 2e-6 for h in step]).T
    assert np.abs(slopes - normals(linear, quadrics, p)).max() < 1e-7
