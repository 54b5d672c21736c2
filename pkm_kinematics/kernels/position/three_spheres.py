# SPDX-License-Identifier: Apache-2.0
"""The two points at given distances from three centres, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_runtime.kernels.compiled import plain

Array = NDArray[np.float64]

TWO, TANGENT, APART, COLLINEAR = 2, 1, 0, -1  # answers of `three_spheres`
TANGENCY = 1e-14  # squared height over squared size below which two points count as one: lengths then err by as little
COLLINEARITY = 1e-12  # sine of the angle at the first centre


@plain
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
