# SPDX-License-Identifier: Apache-2.0
"""Rotations as unit quaternions (x, y, z, w) and rotation vectors (3,), compiled for use in a control period.

Planning works on arrays of rotations and uses `scipy.spatial.transform.Rotation`; one rotation at a time at 1 kHz
wants something lighter. Vectors are in the base frame: `exponential(w) * q` turns `q` by `w` about base axes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True)
def multiply(a: Array, b: Array) -> Array:
    """Return the product (4,) of two quaternions: first `b`, then `a`."""
    out = np.empty(4)
    out[0] = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1]
    out[1] = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0]
    out[2] = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3]
    out[3] = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]
    return out


@njit(cache=True)
def exponential(vector: Array) -> Array:
    """Return the unit quaternion (4,) of a rotation vector (3,) [rad]."""
    angle = math.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    half = 0.5 * angle
    scale = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(half) / angle
    out = np.empty(4)
    out[0] = scale * vector[0]
    out[1] = scale * vector[1]
    out[2] = scale * vector[2]
    out[3] = math.cos(half)
    return out


@njit(cache=True)
def rotation_between(a: Array, b: Array) -> Array:
    """Return the rotation vector (3,) [rad], base frame, of the shorter way from attitude `a` to attitude `b`."""
    inverse = np.empty(4)
    inverse[0], inverse[1], inverse[2], inverse[3] = -a[0], -a[1], -a[2], a[3]
    q = multiply(b, inverse)
    sign = -1.0 if q[3] < 0.0 else 1.0
    sine = math.sqrt(q[0] ** 2 + q[1] ** 2 + q[2] ** 2)
    cosine = abs(q[3])
    scale = 2.0 / cosine if sine < 1e-9 else 2.0 * math.atan2(sine, cosine) / sine
    out = np.empty(3)
    out[0] = sign * scale * q[0]
    out[1] = sign * scale * q[1]
    out[2] = sign * scale * q[2]
    return out


@njit(cache=True)
def displace(pose: Array, displacement: Array) -> Array:
    """Return the pose (7,) moved by a displacement (6,): position by its first half, attitude by its second."""
    out = np.empty(7)
    out[:3] = pose[:3] + displacement[:3]
    q = multiply(exponential(displacement[3:]), pose[3:])
    out[3:] = q / math.sqrt(q[0] ** 2 + q[1] ** 2 + q[2] ** 2 + q[3] ** 2)
    return out


@njit(cache=True)
def displacement_between(a: Array, b: Array) -> Array:
    """Return the displacement (6,) from pose `a` to pose `b` (7,): `displace(a, displacement) == b`."""
    out = np.empty(6)
    out[:3] = b[:3] - a[:3]
    out[3:] = rotation_between(a[3:], b[3:])
    return out
