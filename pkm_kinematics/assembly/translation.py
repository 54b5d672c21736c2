# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of translational robots: the points at given distances from three or more centres, at most two.

A platform that keeps its orientation and is held by limbs of fixed length beyond the actuators (Delta, linear delta,
orthoglide) satisfies |p - c_i| = l_i with centres c_i = a_i - R b_i that the locked actuators fix.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from pkm_kinematics.assembly.modes import Array, AssemblyModes, AssemblyStatus, no_modes

TWO, TANGENT, APART, COLLINEAR = 2, 1, 0, -1  # answers of `three_spheres`
TANGENCY = 1e-14  # squared height over squared size below which two points count as one: lengths then err by as little
COLLINEARITY = 1e-12  # sine of the angle at the first centre
GAUSS_NEWTON_STEPS = 10


@njit(cache=True)
def three_spheres(centres: Array, radii: Array, points: Array) -> int:
    """Points (2, 3), written in place, at distances radii (3,) from centres (3, 3), all in m.

    Returns TWO; TANGENT where both are the same point (a type 2 singularity of the robot: the three limbs lie in one
    plane); APART where there is no real point, with both points in the plane of the centres, where the spheres come
    closest in the sense of their powers; COLLINEAR where the centres lie on a line, with points undefined. Point 0 is
    on the side from which the centres run counter-clockwise, point 1 its mirror image in their plane.
    """
    ux, uy, uz = centres[1, 0] - centres[0, 0], centres[1, 1] - centres[0, 1], centres[1, 2] - centres[0, 2]
    vx, vy, vz = centres[2, 0] - centres[0, 0], centres[2, 1] - centres[0, 1], centres[2, 2] - centres[0, 2]
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    nn = nx * nx + ny * ny + nz * nz
    if not nn > COLLINEARITY**2 * uu * vv:
        return COLLINEAR
    r = radii[0]
    ku = 0.5 * ((r - radii[1]) * (r + radii[1]) + uu) / nn  # u . p = ku nn for p seen from the first centre
    kv = 0.5 * ((r - radii[2]) * (r + radii[2]) + vv) / nn
    # foot of p in the plane of the centres: ku (v x n) + kv (n x u)
    fx = ku * (vy * nz - vz * ny) + kv * (ny * uz - nz * uy)
    fy = ku * (vz * nx - vx * nz) + kv * (nz * ux - nx * uz)
    fz = ku * (vx * ny - vy * nx) + kv * (nx * uy - ny * ux)
    ff = fx * fx + fy * fy + fz * fz
    square = r * r - ff
    answer = TWO
    if abs(square) <= TANGENCY * (r * r + ff):
        answer, square = TANGENT, 0.0
    elif square < 0.0:
        answer, square = APART, 0.0
    lift = np.sqrt(square / nn)
    x, y, z = centres[0, 0] + fx, centres[0, 1] + fy, centres[0, 2] + fz
    points[0, 0], points[0, 1], points[0, 2] = x + lift * nx, y + lift * ny, z + lift * nz
    points[1, 0], points[1, 1], points[1, 2] = x - lift * nx, y - lift * ny, z - lift * nz
    return answer


@njit(cache=True)
def three_spheres_batch(centres: Array, radii: Array, points: Array, answers: NDArray[np.int64]) -> None:
    """`three_spheres` for centres (n, 3, 3) and radii (n, 3) into points (n, 2, 3) and answers (n,)."""
    for k in range(len(centres)):
        answers[k] = three_spheres(centres[k], radii[k], points[k])


def point_on_spheres(centres: ArrayLike, radii: ArrayLike, consistency: float = 1e-7) -> AssemblyModes:
    """All points at distances radii (k,) from centres (k, 3), k >= 3, in m. Solutions are points (n, 3), n <= 2.

    With more than three centres the three of the widest triangle make the candidates, which least squares over all
    distances then corrects; those that miss any distance by more than `consistency` times the largest are dropped.
    Collinear centres leave a circle of points: POSITIVE_DIMENSIONAL, with two samples, or no point at all.
    """
    centre, radius = np.asarray(centres, dtype=np.float64), np.asarray(radii, dtype=np.float64)
    if not (centre.ndim == 2 and centre.shape[1] == 3 and len(centre) >= 3 and radius.shape == centre.shape[:1]):
        return no_modes((3,), AssemblyStatus.INVALID_INPUT)
    if not (np.isfinite(centre).all() and np.isfinite(radius).all() and np.all(radius >= 0.0)):
        return no_modes((3,), AssemblyStatus.INVALID_INPUT)
    chosen = _widest(centre) if len(centre) > 3 else np.arange(3)
    points = np.empty((2, 3))
    answer = three_spheres(centre[chosen], radius[chosen], points)
    if answer == COLLINEAR:
        return _circle(centre, radius, consistency)
    redundant = len(centre) > 3
    if answer == APART and redundant:
        answer = TANGENT  # rounded data of a tangent pose may just miss: least squares decides
    if answer == APART:
        return no_modes((3,), AssemblyStatus.COMPLETE, n_complex=2)
    found = points[:1] if answer == TANGENT else points
    if redundant:
        found = np.array([_least_squares(centre, radius, point) for point in found])
    residuals = np.max(np.abs(np.linalg.norm(found[:, None] - centre, axis=2) - radius), axis=1)
    multiplicity = np.full(len(found), 2 if answer == TANGENT else 1)
    if redundant:
        good = residuals <= consistency * np.max(radius)
        if not good.any():
            return no_modes((3,), AssemblyStatus.INCONSISTENT)
        found, residuals = found[good], residuals[good]
        if len(found) == 2 and np.linalg.norm(found[1] - found[0]) < np.sqrt(TANGENCY) * np.max(radius):
            found, residuals = found[:1], residuals[:1]
        singular = not _regular(centre, found)
        multiplicity = np.full(len(found), 2 if singular else 1)
        status = AssemblyStatus.SINGULAR if singular else AssemblyStatus.COMPLETE
        return AssemblyModes(found, residuals, multiplicity, int(multiplicity.sum()), status)
    status = AssemblyStatus.SINGULAR if answer == TANGENT else AssemblyStatus.COMPLETE
    return AssemblyModes(found.copy(), residuals, multiplicity, 2, status)


def _widest(centre: Array) -> NDArray[np.int64]:
    """The three centres, one of them the first, that span the largest triangle."""
    legs = centre[1:] - centre[0]
    areas = np.linalg.norm(np.cross(legs[:, None], legs[None]), axis=2)
    second, third = np.unravel_index(np.argmax(areas), areas.shape)
    return np.array([0, *sorted((int(second) + 1, int(third) + 1))])


def _least_squares(centre: Array, radius: Array, point: Array) -> Array:
    """Gauss-Newton on all distances."""
    for _ in range(GAUSS_NEWTON_STEPS):
        legs = point - centre
        lengths = np.linalg.norm(legs, axis=1)
        directions = legs / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        step = np.linalg.lstsq(directions, radius - lengths, rcond=1e-9)[0]
        point = point + step
        if np.linalg.norm(step) < 1e-15 * np.max(radius):
            break
    return point


def _regular(centre: Array, points: Array) -> bool:
    """Whether at each point the directions to the centres span space."""
    legs = points[:, None] - centre
    directions = legs / np.maximum(np.linalg.norm(legs, axis=2, keepdims=True), 1e-300)
    return bool(np.linalg.svd(directions, compute_uv=False)[:, -1].min() > 1e-7)


def _circle(centre: Array, radius: Array, consistency: float) -> AssemblyModes:
    """Collinear centres: the spheres share a circle, a point of their common line, or nothing."""
    legs = centre - centre[0]
    far = int(np.argmax(np.linalg.norm(legs, axis=1)))
    span = float(np.linalg.norm(legs[far]))
    size = float(np.max(radius))
    axis = legs[far] / span if span > 0.0 else np.array([0.0, 0.0, 1.0])
    along = 0.5 * (span + (radius[0] - radius[far]) * (radius[0] + radius[far]) / span) if span > 0.0 else 0.0
    square = radius[0] ** 2 - along**2
    if square < -TANGENCY * size**2:
        return no_modes((3,), AssemblyStatus.COMPLETE)
    across = np.linalg.svd(axis[None])[2][1] * np.sqrt(max(square, 0.0))
    samples = centre[0] + along * axis + np.array([across, -across])
    residuals = np.max(np.abs(np.linalg.norm(samples[:, None] - centre, axis=2) - radius), axis=1)
    if residuals.max() > consistency * size:
        return no_modes((3,), AssemblyStatus.COMPLETE if len(centre) == 3 else AssemblyStatus.INCONSISTENT)
    if square <= TANGENCY * size**2:
        return AssemblyModes(samples[:1], residuals[:1], np.array([2]), 2, AssemblyStatus.SINGULAR)
    return AssemblyModes(samples, residuals, np.zeros(2, dtype=np.int64), 0, AssemblyStatus.POSITIVE_DIMENSIONAL)
