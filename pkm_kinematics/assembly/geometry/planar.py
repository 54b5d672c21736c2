# SPDX-License-Identifier: Apache-2.0
"""All points, at most two, at given distances from centres in a plane: forward kinematics of a five-bar and its kin."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pkm_kinematics.assembly.geometry.translation import fitted
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions
from pkm_kinematics.kernels.position.three_spheres import APART, COLLINEAR, TANGENCY, TANGENT, TWO
from pkm_runtime.kernels.compiled import plain


@plain
def two_circles(centres: Array, radii: Array, points: Array) -> int:
    """Both points at distances radii (2,) from two centres (2, 2), written to `points` (2, 2), all in m.

    Point 0 is to the left of the direction from centre 0 to centre 1, point 1 to its right. TWO; TANGENT where both are
    the same point (a type 2 singularity: both limbs are in line); APART where there is no real point, with both on the
    line of the centres; COLLINEAR where the centres coincide.
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
    """All points (n, 2), n <= 2, at distances radii (k,) from centres (k, 2), k >= 2, in m.

    With more than two circles (redundant actuation) the two farthest centres give the candidates, and a point may miss
    any by `consistency` of the largest radius. Coincident centres and equal radii leave a circle of points:
    POSITIVE_DIMENSIONAL, with two samples.
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
