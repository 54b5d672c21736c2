# SPDX-License-Identifier: Apache-2.0
"""Questions about short vectors, for loops that count microseconds: a call of numpy costs more than they do."""

from math import isfinite, sqrt

from pkm_kinematics.kernels.compiled_rotations import product, vector_of
from pkm_runtime.kernels.compiled import compiled


@compiled
def all_finite(values):
    """Whether all of values (n,) are finite."""
    total = 0.0
    for k in range(values.shape[0]):
        total += 0.0 * values[k]  # NaN as soon as one is not
    return isfinite(total)


@compiled
def limit(values, lower, upper, out):
    """Write values (n,) within bounds (n,) into `out` (n,), NaN as NaN; return whether one was outside."""
    outside = False
    for k in range(values.shape[0]):
        value = values[k]
        if value < lower[k]:
            value = lower[k]
            outside = True
        elif value > upper[k]:
            value = upper[k]
            outside = True
        out[k] = value
    return outside


@compiled
def first_beyond(values, bounds):
    """Index of the first of values (n,) whose magnitude exceeds bounds (n,) or is NaN; -1 if none."""
    for k in range(values.shape[0]):
        if not abs(values[k]) <= bounds[k]:
            return k
    return -1


@compiled
def separation(a, b):
    """Distance [m] and angle [rad] between poses `a` and `b` (7,)."""
    x, y, z, w = product(b[3], b[4], b[5], b[6], -a[3], -a[4], -a[5], a[6])
    u, v, t = vector_of(x, y, z, w)
    dx, dy, dz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    return sqrt(dx * dx + dy * dy + dz * dz), sqrt(u * u + v * v + t * t)


@compiled
def magnitude(jacobian, length):
    """Norm of Frobenius of a Jacobian (6, n) of a twist, rotations at `length` [m]."""
    moving, turning = 0.0, 0.0
    for c in range(jacobian.shape[1]):
        for r in range(3):
            moving += jacobian[r, c] * jacobian[r, c]
            turning += jacobian[r + 3, c] * jacobian[r + 3, c]
    return sqrt(moving + length * length * turning)
