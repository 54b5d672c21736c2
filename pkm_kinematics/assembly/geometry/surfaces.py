# SPDX-License-Identifier: Apache-2.0
"""All points of space on given planes, spheres, cylinders, tori and their kin.

A surface is an equation in the five numbers (1, p, p.p) of a point p, either linear (planes and spheres) or
quadratic (cylinders, cones, hyperboloids, tori, and all that the end point of two bars on two hinges can reach). Linear
equations are eliminated; what remains, with p.p written as a quadric where it is needed, is a system of n quadrics in
P^n, of which Bezout's theorem gives 2^n solutions: 2 for three spheres, 8 for three cylinders, 16 for three tori.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pkm_kinematics.assembly.geometry.candidates import polished, status_of
from pkm_kinematics.assembly.homotopy.roots import NOWHERE, all_roots
from pkm_kinematics.assembly.homotopy.start_systems import start_system
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions

RANK = 1e-9  # relative singular value below which a linear equation repeats others
REPEATED = 1e-9  # singular value below which quadrics, on what the linear equations leave, repeat others

_NORM = np.diag([0.0, 1.0, 1.0, 1.0, 0.0])  # p.p = 1 w
_NORM[0, 4] = _NORM[4, 0] = -0.5


def point_on_surfaces(
    linear: ArrayLike, quadrics: ArrayLike, centre: ArrayLike, size: float, consistency: float = 1e-7
) -> SolutionSet:
    """All points p (n, 3) [m], in order of falling height, on surfaces in z = (1, p, p.p).

    Residuals are errors of equations scaled to unit coefficients at the robot's size, times the size. More equations
    than needed are combined at random (always the same). Equations that leave a curve: POSITIVE_DIMENSIONAL and no
    point.

    Args:
        linear: (k, 5) with linear @ z = 0.
        quadrics: (r, 5, 5), symmetric, with z^T quadrics z = 0.
        centre: (3,) [m] of the robot.
        size: of the robot [m].
        consistency: share of the size by which a point may violate any of more equations than needed.
    """
    planes, surfaces = _scaled(np.asarray(linear), np.asarray(quadrics), np.asarray(centre), size)
    left, system = _eliminated(planes, surfaces)
    n = len(left) - 1
    if n < 0:
        return no_solutions((3,), AssemblyStatus.INCONSISTENT)
    if len(system) < n:
        return no_solutions((3,), AssemblyStatus.POSITIVE_DIMENSIONAL)
    redundant = len(system) > n or len(planes) > left.shape[1] - len(left)
    if n == 0:  # planes alone
        points, multiplicity, count, lost = left.astype(np.complex128), np.ones(1, dtype=np.int64), 1, 0
        if abs(points[0, 0]) ** 2 < NOWHERE[1]:
            return no_solutions((3,), AssemblyStatus.INCONSISTENT if redundant else AssemblyStatus.COMPLETE)
    else:
        roots = all_roots(_as_many(system, n), partial(start_system, n), lambda y: (y @ left[:, 0]) ** 2)
        if roots.on_component.any():
            return no_solutions((3,), AssemblyStatus.POSITIVE_DIMENSIONAL)
        points, multiplicity = roots.points[roots.real] @ left, roots.multiplicity[roots.real]
        count, lost = int(roots.multiplicity.sum()), roots.lost
    found = [polished(partial(_closure, planes, surfaces), (z[1:4] / z[0]).real) for z in points]
    solutions, residuals = np.array([p for p, _ in found]).reshape(-1, 3), np.array([error for _, error in found])
    if redundant:
        good = residuals < consistency
        solutions, residuals, multiplicity = solutions[good], residuals[good], multiplicity[good]
    order = np.lexsort(np.round(solutions * [1.0, 1.0, -1.0], 6).T)
    placed = np.asarray(centre) + size * solutions[order]
    status = status_of(multiplicity, False, lost, redundant)
    return SolutionSet(placed, size * residuals[order], multiplicity[order], count, status)


def _eliminated(planes: Array, surfaces: Array) -> tuple[Array, Array]:
    """What linear equations leave: z = y @ left, with (n + 1, 4 or 5) rows, and the quadrics (r, n + 1, n + 1) in y.

    The fifth number, p.p, is left out where no equation contains it.
    """
    bent = bool(np.abs(planes[:, 4]).max(initial=0.0) + np.abs(surfaces[:, 4]).max(initial=0.0) > 0.0)
    width = 5 if bent else 4
    _, sizes, right = np.linalg.svd(planes[:, :width]) if len(planes) else (None, np.zeros(0), np.eye(width))
    rank = int(np.sum(sizes > RANK * sizes[0])) if len(sizes) else 0
    left = right[rank:]
    forms = [*surfaces[:, :width, :width], *([_NORM] if bent else [])]
    reduced = np.array([left @ form @ left.T for form in forms]).reshape(-1, len(left), len(left))
    return left, _independent(reduced) if len(left) else reduced


def _as_many(system: Array, n: int) -> Array:
    """n combinations of the quadrics if there are more."""
    if len(system) <= n:
        return system
    mixing = np.linalg.qr(np.random.default_rng(1876).normal(size=(len(system), n)))[0].T
    mixed = np.einsum("ij,jab->iab", mixing, system)
    return np.asarray(mixed / np.linalg.norm(mixed, axis=(1, 2))[:, None, None])


def _independent(forms: Array) -> Array:
    """Quadrics of unit norm that span the same as `forms` (k, n, n)."""
    if not len(forms):
        return forms
    _, sizes, right = np.linalg.svd(forms.reshape(len(forms), -1), full_matrices=False)
    spanned: Array = right[sizes > REPEATED].reshape(-1, *forms.shape[1:])
    return spanned


def normals(linear: ArrayLike, quadrics: ArrayLike, point: ArrayLike) -> Array:
    """Gradients (k + r, 3) of the equations at a point (3,), those of the linear ones first."""
    p = np.asarray(point, dtype=np.float64)
    return _closure(np.asarray(linear), np.asarray(quadrics), p)[1]


def _scaled(linear: Array, quadrics: Array, centre: Array, size: float) -> tuple[Array, Array]:
    """The equations, of unit norm, for points seen from `centre` in units of `size`."""
    change = np.zeros((5, 5))
    change[0, 0], change[1:4, 1:4], change[4, 4] = 1.0, size * np.eye(3), size**2
    change[1:4, 0], change[4, 0], change[4, 1:4] = centre, centre @ centre, 2.0 * size * centre
    planes, surfaces = linear.reshape(-1, 5) @ change, change.T @ quadrics.reshape(-1, 5, 5) @ change
    norms = np.linalg.norm(planes, axis=1), np.linalg.norm(surfaces, axis=(1, 2))
    return planes / norms[0][:, None], surfaces / norms[1][:, None, None]


def _closure(linear: Array, quadrics: Array, p: Array) -> tuple[Array, Array]:
    """Errors (k + r,) and their gradients (k + r, 3)."""
    z = np.array([1.0, *p, p @ p])
    slope = np.vstack([np.zeros(3), np.eye(3), 2.0 * p])
    image = quadrics.reshape(-1, 5, 5) @ z
    error = np.concatenate([linear.reshape(-1, 5) @ z, image @ z])
    return error, np.vstack([linear.reshape(-1, 5) @ slope, 2.0 * image @ slope])
