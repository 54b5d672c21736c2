# SPDX-License-Identifier: Apache-2.0
"""All points of space on given spheres, planes, cylinders, tori and their kin, and of a plane on given circles.

A platform that keeps its orientation and is held by limbs of fixed length beyond the actuators (Delta, linear delta,
orthoglide) satisfies |p - c_i| = l_i with centres c_i = a_i - R b_i that the locked actuators fix: at most two points.

Any surface is an equation in the five numbers (1, p, p.p) of a point p, either linear (planes and spheres) or
quadratic (cylinders, cones, hyperboloids, tori, and all that the end point of two bars on two hinges can reach). Linear
equations are eliminated; what remains, with p.p written as a quadric where it is needed, is a system of n quadrics in
P^n, of which Bezout's theorem gives 2^n solutions: 8 for three cylinders, 16 for three tori.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_kinematics.assembly.quadrics import start_system
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions, polished, status_of
from pkm_kinematics.assembly.roots import NOWHERE, all_roots
from pkm_kinematics.batch import all_finite
from pkm_kinematics.kernels.path.assembled import APART, COLLINEAR, TANGENCY, TANGENT, TWO, three_spheres
from pkm_runtime.kernels.compiled import plain

GAUSS_NEWTON_STEPS = 10


@plain
def largest_errors(centres: Array, radii: Array, points: Array) -> Array:
    """Largest errors (n,) [m] of the distances radii (k,) of points (n, 3) from centres (k, 3)."""
    errors = np.zeros(len(points))
    for n in range(len(points)):
        for k in range(len(centres)):
            x, y, z = points[n, 0] - centres[k, 0], points[n, 1] - centres[k, 1], points[n, 2] - centres[k, 2]
            errors[n] = max(errors[n], abs(np.sqrt(x * x + y * y + z * z) - radii[k]))
    return errors


def point_on_spheres(centres: ArrayLike, radii: ArrayLike, consistency: float = 1e-7) -> SolutionSet:
    """All points (n, 3), n <= 2, at distances radii (k,) from centres (k, 3), k >= 3, all in m.

    With more than three centres the widest triangle gives the candidates, which least squares over all distances
    corrects; a point may miss any by `consistency` of the largest. Collinear centres leave a circle:
    POSITIVE_DIMENSIONAL, with two samples, or no point at all.
    """
    centre, radius = np.ascontiguousarray(centres, dtype=np.float64), np.ascontiguousarray(radii, dtype=np.float64)
    if not (centre.ndim == 2 and centre.shape[1] == 3 and len(centre) >= 3 and radius.shape == centre.shape[:1]):
        return no_solutions((3,), AssemblyStatus.INVALID_INPUT)
    if not (all_finite(centre) and all_finite(radius) and min(radius.tolist()) >= 0.0):
        return no_solutions((3,), AssemblyStatus.INVALID_INPUT)
    if len(centre) > 3:
        return _point_on_many_spheres(centre, radius, consistency)
    points = np.empty((2, 3))
    answer = three_spheres(centre, radius, points)
    if answer == COLLINEAR:
        return _circle(centre, radius, consistency)
    if answer == APART:
        return no_solutions((3,), AssemblyStatus.COMPLETE, n_complex=2)
    if answer == TANGENT:
        points = points[:1]
        return SolutionSet(points, largest_errors(centre, radius, points), np.array([2]), 2, AssemblyStatus.SINGULAR)
    return SolutionSet(points, largest_errors(centre, radius, points), np.array([1, 1]), 2, AssemblyStatus.COMPLETE)


def _point_on_many_spheres(centre: Array, radius: Array, consistency: float) -> SolutionSet:
    chosen, points = _widest(centre), np.empty((2, 3))
    answer = three_spheres(centre[chosen], radius[chosen], points)
    if answer == COLLINEAR:
        return _circle(centre, radius, consistency)
    return fitted(centre, radius, points if answer == TWO else points[:1], consistency)


def fitted(centre: Array, radius: Array, candidates: Array, consistency: float) -> SolutionSet:
    """Points (n, d) near candidates that fit more distances than d best, and miss none by more than `consistency`."""
    found = np.array([polished(partial(_errors, centre, radius), point, GAUSS_NEWTON_STEPS)[0] for point in candidates])
    residuals = np.max(np.abs(np.linalg.norm(found[:, None] - centre, axis=2) - radius), axis=1)
    good = residuals <= consistency * np.max(radius)
    if not good.any():
        return no_solutions(centre.shape[1:], AssemblyStatus.INCONSISTENT)
    found, residuals = found[good], residuals[good]
    if len(found) == 2 and np.linalg.norm(found[1] - found[0]) < np.sqrt(TANGENCY) * np.max(radius):
        found, residuals = found[:1], residuals[:1]
    singular = not _regular(centre, found)
    multiplicity = np.full(len(found), 2 if singular else 1)
    status = AssemblyStatus.SINGULAR if singular else AssemblyStatus.COMPLETE
    return SolutionSet(found, residuals, multiplicity, int(multiplicity.sum()), status)


def _widest(centre: Array) -> NDArray[np.int64]:
    legs = centre[1:] - centre[0]
    areas = np.linalg.norm(np.cross(legs[:, None], legs[None]), axis=2)
    second, third = np.unravel_index(np.argmax(areas), areas.shape)
    return np.array([0, *sorted((int(second) + 1, int(third) + 1))])


def _errors(centre: Array, radius: Array, point: Array) -> tuple[Array, Array]:
    legs = point - centre
    lengths = np.linalg.norm(legs, axis=1)
    return lengths - radius, legs / np.where(lengths > 0.0, lengths, 1.0)[:, None]


def _regular(centre: Array, points: Array) -> bool:
    legs = points[:, None] - centre
    directions = legs / np.maximum(np.linalg.norm(legs, axis=2, keepdims=True), 1e-300)
    return bool(np.linalg.svd(directions, compute_uv=False)[:, -1].min() > 1e-7)


def _circle(centre: Array, radius: Array, consistency: float) -> SolutionSet:
    """Collinear centres: the spheres share a circle, a point of their common line, or nothing."""
    legs = centre - centre[0]
    far = int(np.argmax(np.linalg.norm(legs, axis=1)))
    span = float(np.linalg.norm(legs[far]))
    size = float(np.max(radius))
    axis = legs[far] / span if span > 0.0 else np.array([0.0, 0.0, 1.0])
    along = 0.5 * (span + (radius[0] - radius[far]) * (radius[0] + radius[far]) / span) if span > 0.0 else 0.0
    square = radius[0] ** 2 - along**2
    if square < -TANGENCY * size**2:
        return no_solutions((3,), AssemblyStatus.COMPLETE)
    across = np.linalg.svd(axis[None])[2][1] * np.sqrt(max(square, 0.0))
    samples = centre[0] + along * axis + np.array([across, -across])
    residuals = np.max(np.abs(np.linalg.norm(samples[:, None] - centre, axis=2) - radius), axis=1)
    if residuals.max() > consistency * size:
        return no_solutions((3,), AssemblyStatus.COMPLETE if len(centre) == 3 else AssemblyStatus.INCONSISTENT)
    if square <= TANGENCY * size**2:
        return SolutionSet(samples[:1], residuals[:1], np.array([2]), 2, AssemblyStatus.SINGULAR)
    return SolutionSet(samples, residuals, np.zeros(2, dtype=np.int64), 0, AssemblyStatus.POSITIVE_DIMENSIONAL)


@plain
def two_circles(centres: Array, radii: Array, points: Array) -> int:
    """Both points at distances radii (2,) from two centres (2, 2), written to `points` (2, 2), all in m.

    Point 0 is to the left of the direction from centre 0 to centre 1. TWO; TANGENT where both are the same point (a
    type 2 singularity); APART where there is none, both on the line of centres; COLLINEAR where the centres coincide.
    """
    dx, dy = centres[1, 0] - centres[0, 0], centres[1, 1] - centres[0, 1]
    dd = dx * dx + dy * dy
    size = max(radii[0], radii[1])
    if not dd > TANGENCY * size * size:
        return COLLINEAR
    along = 0.5 * (1.0 + (radii[0] - radii[1]) * (radii[0] + radii[1]) / dd)
    square = radii[0] * radii[0] / dd - along * along
    answer = TWO
    if abs(square) * dd <= TANGENCY * (radii[0] * radii[0] + along * along * dd):
        answer, square = TANGENT, 0.0
    elif square < 0.0:
        answer, square = APART, 0.0
    across = np.sqrt(square)
    x, y = centres[0, 0] + along * dx, centres[0, 1] + along * dy
    points[0, 0], points[0, 1] = x - across * dy, y + across * dx
    points[1, 0], points[1, 1] = x + across * dy, y - across * dx
    return answer


def point_on_circles(centres: ArrayLike, radii: ArrayLike, consistency: float = 1e-7) -> SolutionSet:
    """All points (n, 2), n <= 2, at distances radii (k,) from centres (k, 2), k >= 2, in m; else as `point_on_spheres`.

    With more than two circles (redundant actuation) the two farthest centres give the candidates.
    """
    centre, radius = np.asarray(centres, dtype=np.float64), np.asarray(radii, dtype=np.float64)
    if not (centre.ndim == 2 and centre.shape[1] == 2 and len(centre) >= 2 and radius.shape == centre.shape[:1]):
        return no_solutions((2,), AssemblyStatus.INVALID_INPUT)
    if not (np.isfinite(centre).all() and np.isfinite(radius).all() and np.all(radius >= 0.0)):
        return no_solutions((2,), AssemblyStatus.INVALID_INPUT)
    spans = np.linalg.norm(centre[:, None] - centre, axis=2)
    pair = np.sort(np.array(np.unravel_index(np.argmax(spans), spans.shape))) if len(centre) > 2 else np.arange(2)
    points = np.empty((2, 2))
    answer = two_circles(centre[pair], radius[pair], points)
    if answer == COLLINEAR:
        if np.ptp(radius) > consistency * np.max(radius):
            return no_solutions((2,), AssemblyStatus.COMPLETE if len(centre) == 2 else AssemblyStatus.INCONSISTENT)
        points = centre[0] + radius[0] * np.array([[1.0, 0.0], [-1.0, 0.0]])
        return SolutionSet(
            points, np.full(2, np.ptp(radius)), np.zeros(2, dtype=np.int64), 0, AssemblyStatus.POSITIVE_DIMENSIONAL
        )
    candidates = points if answer == TWO else points[:1]
    if len(centre) > 2:
        return fitted(centre, radius, candidates, consistency)
    if answer == APART:
        return no_solutions((2,), AssemblyStatus.COMPLETE, n_complex=2)
    residuals = np.max(np.abs(np.linalg.norm(candidates[:, None] - centre, axis=2) - radius), axis=1)
    status = AssemblyStatus.COMPLETE if answer == TWO else AssemblyStatus.SINGULAR
    return SolutionSet(candidates, residuals, np.full(len(candidates), 1 if answer == TWO else 2), 2, status)


RANK = 1e-9  # relative singular value below which a linear equation repeats others
REPEATED = 1e-9  # singular value below which quadrics, on what the linear equations leave, repeat others

_NORM = np.diag([0.0, 1.0, 1.0, 1.0, 0.0])  # p.p = 1 w
_NORM[0, 4] = _NORM[4, 0] = -0.5


def point_on_surfaces(
    linear: ArrayLike, quadrics: ArrayLike, centre: ArrayLike, size: float, consistency: float = 1e-7
) -> SolutionSet:
    """All points p (n, 3) [m], in order of falling height, on surfaces in z = (1, p, p.p).

    Residuals are errors of equations scaled to unit coefficients at the robot's size, times the size; any of more
    equations than needed may be violated by `consistency` of the size. Equations that leave a curve:
    POSITIVE_DIMENSIONAL.

    Args:
        linear: (k, 5) with linear @ z = 0.
        quadrics: (r, 5, 5), symmetric, with z^T quadrics z = 0.
        centre: (3,) [m] of the robot.
        size: of the robot [m].
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
    """What linear equations leave: z = y @ left, with (n + 1, 4 or 5) rows, and the quadrics (r, n + 1, n + 1) in y."""
    bent = bool(np.abs(planes[:, 4]).max(initial=0.0) + np.abs(surfaces[:, 4]).max(initial=0.0) > 0.0)
    width = 5 if bent else 4
    _, sizes, right = np.linalg.svd(planes[:, :width]) if len(planes) else (None, np.zeros(0), np.eye(width))
    rank = int(np.sum(sizes > RANK * sizes[0])) if len(sizes) else 0
    left = right[rank:]
    forms = [*surfaces[:, :width, :width], *([_NORM] if bent else [])]
    reduced = np.array([left @ form @ left.T for form in forms]).reshape(-1, len(left), len(left))
    return left, _independent(reduced) if len(left) else reduced


def _as_many(system: Array, n: int) -> Array:
    if len(system) <= n:
        return system
    mixing = np.linalg.qr(np.random.default_rng(1876).normal(size=(len(system), n)))[0].T
    mixed = np.einsum("ij,jab->iab", mixing, system)
    return np.asarray(mixed / np.linalg.norm(mixed, axis=(1, 2))[:, None, None])


def _independent(forms: Array) -> Array:
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
    z = np.array([1.0, *p, p @ p])
    slope = np.vstack([np.zeros(3), np.eye(3), 2.0 * p])
    image = quadrics.reshape(-1, 5, 5) @ z
    error = np.concatenate([linear.reshape(-1, 5) @ z, image @ z])
    return error, np.vstack([linear.reshape(-1, 5) @ slope, 2.0 * image @ slope])
