# SPDX-License-Identifier: Apache-2.0
"""Wrench of solids on a platform that touches them: penalty contact with damping and dry friction."""

from math import sqrt

from pkm_kinematics.kernels.compiled_rotations import product
from pkm_runtime.kernels.compiled import compiled

# columns of a solid: a half-space, with a bore where its radius is not zero
POINT, NORMAL, MOUTH, RADIUS, DEPTH = 0, 3, 6, 9, 10
STIFFNESS, DAMPING, FRICTION, CREEP = 11, 12, 13, 14
COLUMNS = 15


@compiled
def penetration(solid, x, y, z):
    """Depth of a point in a solid, and the unit direction out of it; not positive outside.

    Beside the mouth of a bore the way out is the shorter one: up through the surface, or into the bore.
    """
    a, b, c = solid[NORMAL], solid[NORMAL + 1], solid[NORMAL + 2]
    deep = -((x - solid[POINT]) * a + (y - solid[POINT + 1]) * b + (z - solid[POINT + 2]) * c)
    if deep <= 0.0 or solid[RADIUS] <= 0.0:
        return deep, a, b, c
    u, v, w = x - solid[MOUTH], y - solid[MOUTH + 1], z - solid[MOUTH + 2]
    along = u * a + v * b + w * c
    u, v, w = u - along * a, v - along * b, w - along * c
    off = sqrt(u * u + v * v + w * w)
    wall = off - solid[RADIUS]
    if wall <= 0.0:
        return deep - solid[DEPTH], a, b, c
    if wall < deep:
        return wall, -u / off, -v / off, -w / off
    return deep, a, b, c


@compiled
def contact_wrench(solids, points, motion, wrench):
    """Wrench (6,) of solids (m, COLUMNS) on a platform, about its origin, base axes, in its motion (pose, twist, ...).

    `points` (n, 3) of the platform, in its frame, may touch. The normal force is k p (1 + d p'), never a pull (Hunt and
    Crossley, "Coefficient of restitution interpreted as damping in vibroimpact", 1975): it begins and ends at zero, so
    an impact only takes energy. Friction opposes sliding, and is proportional to its speed below `CREEP`.
    """
    for k in range(6):
        wrench[k] = 0.0
    qx, qy, qz, qw = motion[3], motion[4], motion[5], motion[6]
    for i in range(points.shape[0]):
        tx, ty, tz, tw = product(qx, qy, qz, qw, points[i, 0], points[i, 1], points[i, 2], 0.0)
        rx, ry, rz, _ = product(tx, ty, tz, tw, -qx, -qy, -qz, qw)
        vx = motion[7] + motion[11] * rz - motion[12] * ry
        vy = motion[8] + motion[12] * rx - motion[10] * rz
        vz = motion[9] + motion[10] * ry - motion[11] * rx
        for j in range(solids.shape[0]):
            solid = solids[j]
            deep, a, b, c = penetration(solid, motion[0] + rx, motion[1] + ry, motion[2] + rz)
            if deep <= 0.0:
                continue
            leaving = vx * a + vy * b + vz * c
            press = max(0.0, solid[STIFFNESS] * deep * (1.0 - solid[DAMPING] * leaving))
            ux, uy, uz = vx - leaving * a, vy - leaving * b, vz - leaving * c
            drag = solid[FRICTION] * press / max(sqrt(ux * ux + uy * uy + uz * uz), solid[CREEP])
            fx, fy, fz = press * a - drag * ux, press * b - drag * uy, press * c - drag * uz
            wrench[0] += fx
            wrench[1] += fy
            wrench[2] += fz
            wrench[3] += ry * fz - rz * fy
            wrench[4] += rz * fx - rx * fz
            wrench[5] += rx * fy - ry * fx
