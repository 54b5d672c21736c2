# SPDX-License-Identifier: Apache-2.0
"""Compiled rotations and poses; a quaternion is x y z w, of unit length, a pose (7,) is x y z qx qy qz qw.

The conventions are those of `pkm_description/rotations.py`. Rotation vectors (3,) [rad] are in the base frame:
`multiply(exponential(v), q)` turns the attitude q by v about base axes. A displacement (6,) is a translation [m] and a
rotation vector. The scalar functions at the top are for kernels and allocate nothing. The others are for one pose at a
time in a control period; planning works on arrays, with `scipy.spatial.transform.Rotation`.
"""

from __future__ import annotations

from math import atan2, cos, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from pkm_runtime.kernels.compiled import allocating, compiled

Array = NDArray[np.float64]


@compiled
def product(x, y, z, w, a, b, c, d):
    """Quaternion x y z w times a b c d: the second rotation, then the first."""
    return (
        w * a + x * d + y * c - z * b,
        w * b + y * d + z * a - x * c,
        w * c + z * d + x * b - y * a,
        w * d - x * a - y * b - z * c,
    )


@compiled
def quaternion_of(x, y, z):
    """Unit quaternion of a rotation vector."""
    angle = sqrt(x * x + y * y + z * z)
    half = 0.5 * angle
    k = sin(half) / max(angle, 1e-300)  # at rest x, y and z are zero, whatever k is
    return k * x, k * y, k * z, cos(half)


@compiled
def vector_of(x, y, z, w):
    """Rotation vector of a unit quaternion of either sign, of length at most pi."""
    sine = sqrt(x * x + y * y + z * z)
    cosine = abs(w)
    k = 2.0 / cosine if sine < 1e-9 else 2.0 * atan2(sine, cosine) / sine
    if w < 0.0:
        k = -k
    return k * x, k * y, k * z


@compiled
def write_rotation(x, y, z, w, R):
    """Rotation matrix (3, 3) of a unit quaternion, written into R."""
    R[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    R[0, 1] = 2.0 * (x * y - z * w)
    R[0, 2] = 2.0 * (x * z + y * w)
    R[1, 0] = 2.0 * (x * y + z * w)
    R[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    R[1, 2] = 2.0 * (y * z - x * w)
    R[2, 0] = 2.0 * (x * z - y * w)
    R[2, 1] = 2.0 * (y * z + x * w)
    R[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@compiled
def write_quaternion(R, out):
    """Unit quaternion x y z w, w >= 0, of a rotation matrix (3, 3), as `quaternion_from_rotation`; out (4,)."""
    a, e, i = R[0, 0], R[1, 1], R[2, 2]
    x, y, z, w = 1.0 + a - e - i, 1.0 - a + e - i, 1.0 - a - e + i, 1.0 + a + e + i
    if w >= x and w >= y and w >= z:
        x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    elif x >= y and x >= z:
        y, z, w = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] - R[1, 2]
    elif y >= z:
        x, z, w = R[1, 0] + R[0, 1], R[2, 1] + R[1, 2], R[0, 2] - R[2, 0]
    else:
        x, y, w = R[0, 2] + R[2, 0], R[2, 1] + R[1, 2], R[1, 0] - R[0, 1]
    length = sqrt(x * x + y * y + z * z + w * w)
    if w < 0.0:
        length = -length
    out[0], out[1], out[2], out[3] = x / length, y / length, z / length, w / length


@compiled
def shift_pose(pose, twist, scale, out):
    """out = pose moved by `scale` times a twist (6,): the origin translated, the attitude turned, base frame."""
    for k in range(3):
        out[k] = pose[k] + scale * twist[k]
    x, y, z, w = quaternion_of(scale * twist[3], scale * twist[4], scale * twist[5])
    x, y, z, w = product(x, y, z, w, pose[3], pose[4], pose[5], pose[6])
    length = sqrt(x * x + y * y + z * z + w * w)
    out[3], out[4], out[5], out[6] = x / length, y / length, z / length, w / length


@allocating
def multiply(a: Array, b: Array) -> Array:
    """Product (4,) of two quaternions: the rotation `b`, then `a`."""
    out = np.empty(4)
    out[0], out[1], out[2], out[3] = product(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])
    return out


@allocating
def exponential(vector: Array) -> Array:
    """Unit quaternion (4,) of a rotation vector (3,)."""
    out = np.empty(4)
    out[0], out[1], out[2], out[3] = quaternion_of(vector[0], vector[1], vector[2])
    return out


@allocating
def displace(pose: Array, displacement: Array) -> Array:
    """Pose (7,) moved by a displacement (6,): the origin by its first half, the attitude by its second."""
    out = np.empty(7)
    shift_pose(pose, displacement, 1.0, out)
    return out


@compiled
def write_displacement(a, b, out):
    """Displacement (6,) that leads straight from pose `a` to pose `b` (7,), into `out`."""
    for k in range(3):
        out[k] = b[k] - a[k]
    x, y, z, w = product(b[3], b[4], b[5], b[6], -a[3], -a[4], -a[5], a[6])
    out[3], out[4], out[5] = vector_of(x, y, z, w)


@allocating
def displacement_between(a: Array, b: Array) -> Array:
    """Displacement (6,) from pose `a` to pose `b` (7,): `displace(a, displacement) == b`."""
    out = np.empty(6)
    write_displacement(a, b, out)
    return out


@compiled
def separation(a, b):
    """Distance [m] and angle [rad] between poses `a` and `b` (7,)."""
    x, y, z, w = product(b[3], b[4], b[5], b[6], -a[3], -a[4], -a[5], a[6])
    u, v, t = vector_of(x, y, z, w)
    dx, dy, dz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    return sqrt(dx * dx + dy * dy + dz * dz), sqrt(u * u + v * v + t * t)
