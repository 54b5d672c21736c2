# SPDX-License-Identifier: Apache-2.0
"""Clearance between a tool and keep-out places, both made of rounded boxes.

Float arrays: a box `a`, `b`, `box`, `moved` (COLUMNS,) [m]; `parts` (m, COLUMNS) of the tool in the platform's
frame; `places` (k, COLUMNS) and `poses` (n, 7) in the base frame; `found` (n,) [m]; `rotation` (3, 3) scratch.
"""

from math import sqrt

from pkm_kinematics.kernels.compiled_rotations import write_rotation
from pkm_runtime.kernels.compiled import compiled

# columns of a rounded box: centre, axes (rows of the rotation transposed), half sizes, radius
CENTRE, AXES, HALF, RADIUS = 0, 3, 12, 15
COLUMNS = 16
_ROUNDS = 40  # of projections from one box to the other
_TINY = 1e-12


@compiled
def extent(box, x, y, z):
    """Half the length of a box without its rounding along a unit direction."""
    total = 0.0
    for k in range(3):
        a = AXES + 3 * k
        total += box[HALF + k] * abs(x * box[a] + y * box[a + 1] + z * box[a + 2])
    return total


@compiled
def gap_along(a, b, x, y, z):
    """Gap between two boxes without their rounding along a direction; less than zero where they overlap."""
    length = sqrt(x * x + y * y + z * z)
    if length < _TINY:
        return -1e300
    x, y, z = x / length, y / length, z / length
    apart = abs((b[0] - a[0]) * x + (b[1] - a[1]) * y + (b[2] - a[2]) * z)
    return apart - extent(a, x, y, z) - extent(b, x, y, z)


@compiled
def nearest_in(box, x, y, z):
    """The point of a box without its rounding that is nearest to a point."""
    u, v, w = x - box[0], y - box[1], z - box[2]
    px, py, pz = box[0], box[1], box[2]
    for k in range(3):
        a = AXES + 3 * k
        along = u * box[a] + v * box[a + 1] + w * box[a + 2]
        along = min(box[HALF + k], max(-box[HALF + k], along))
        px += along * box[a]
        py += along * box[a + 1]
        pz += along * box[a + 2]
    return px, py, pz


@compiled
def clearance_between(a, b):
    """Lower bound on the distance of two rounded boxes; less than zero where they overlap.

    The largest gap along the axes on which boxes can be separated tells whether they overlap, and how deep. Where they
    do not, points are projected from one to the other until they are nearest; what counts is the gap between the planes
    across the line that joins them, which is a bound whether the projections have converged or not.
    """
    gap = -1e300
    for i in range(3):
        p, q = AXES + 3 * i, AXES + 3 * i
        gap = max(gap, gap_along(a, b, a[p], a[p + 1], a[p + 2]), gap_along(a, b, b[q], b[q + 1], b[q + 2]))
        for j in range(3):
            q = AXES + 3 * j
            x = a[p + 1] * b[q + 2] - a[p + 2] * b[q + 1]
            y = a[p + 2] * b[q] - a[p] * b[q + 2]
            z = a[p] * b[q + 1] - a[p + 1] * b[q]
            if x * x + y * y + z * z > 1e-8:
                gap = max(gap, gap_along(a, b, x, y, z))
    if gap > 0.0:
        x, y, z = nearest_in(a, b[0], b[1], b[2])
        for _ in range(_ROUNDS):
            u, v, w = nearest_in(b, x, y, z)
            gap = max(gap, gap_along(a, b, u - x, v - y, w - z))
            if gap * gap >= (1.0 - 1e-9) * ((u - x) ** 2 + (v - y) ** 2 + (w - z) ** 2):
                break
            x, y, z = nearest_in(a, u, v, w)
    return gap - a[RADIUS] - b[RADIUS]


@compiled
def clearances(parts, places, poses, rotation, moved, found, which):
    """Write the least clearance `found` at each pose, and the number of the nearest place (integers (n,), -1: none)."""
    R = rotation
    for n in range(poses.shape[0]):
        pose = poses[n]
        write_rotation(pose[3], pose[4], pose[5], pose[6], R)
        found[n] = 1e300
        which[n] = -1
        for i in range(parts.shape[0]):
            part = parts[i]
            for r in range(3):
                moved[r] = pose[r] + R[r, 0] * part[0] + R[r, 1] * part[1] + R[r, 2] * part[2]
                for k in range(3):
                    a = AXES + 3 * k
                    moved[a + r] = R[r, 0] * part[a] + R[r, 1] * part[a + 1] + R[r, 2] * part[a + 2]
            for c in range(HALF, COLUMNS):
                moved[c] = part[c]
            for j in range(places.shape[0]):
                clear = clearance_between(moved, places[j])
                if clear < found[n]:
                    found[n] = clear
                    which[n] = j
