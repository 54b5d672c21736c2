# SPDX-License-Identifier: Apache-2.0
"""Vectors of three as tuples, which the compiler keeps in registers. Matrices are (3, 3) arrays."""

from __future__ import annotations

from math import sqrt

from pkm_runtime.kernels.compiled import compiled


@compiled
def get(a):
    """Array (3,) to tuple."""
    return a[0], a[1], a[2]


@compiled
def put(a, v):
    """Write a tuple into an array (3,)."""
    a[0] = v[0]
    a[1] = v[1]
    a[2] = v[2]


@compiled
def accumulate(a, v):
    """Add a tuple to an array (3,)."""
    a[0] += v[0]
    a[1] += v[1]
    a[2] += v[2]


@compiled
def add(u, v):
    """u + v."""
    return u[0] + v[0], u[1] + v[1], u[2] + v[2]


@compiled
def sub(u, v):
    """u - v."""
    return u[0] - v[0], u[1] - v[1], u[2] - v[2]


@compiled
def scale(s, v):
    """s v."""
    return s * v[0], s * v[1], s * v[2]


@compiled
def dot(u, v):
    """u . v."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@compiled
def cross(u, v):
    """u x v."""
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


@compiled
def norm(v):
    """|v|."""
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


@compiled
def rotate(R, v):
    """R v."""
    return (
        R[0, 0] * v[0] + R[0, 1] * v[1] + R[0, 2] * v[2],
        R[1, 0] * v[0] + R[1, 1] * v[1] + R[1, 2] * v[2],
        R[2, 0] * v[0] + R[2, 1] * v[1] + R[2, 2] * v[2],
    )


@compiled
def rotate_back(R, v):
    """R^T v."""
    return (
        R[0, 0] * v[0] + R[1, 0] * v[1] + R[2, 0] * v[2],
        R[0, 1] * v[0] + R[1, 1] * v[1] + R[2, 1] * v[2],
        R[0, 2] * v[0] + R[1, 2] * v[1] + R[2, 2] * v[2],
    )


@compiled
def axis_z(R):
    """Third column of R."""
    return R[0, 2], R[1, 2], R[2, 2]


@compiled
def matmul(A, B, out):
    """out = A B for (3, 3) arrays; B's elements are read once, as the compiler must assume that `out` overlaps it."""
    b00, b01, b02 = B[0, 0], B[0, 1], B[0, 2]
    b10, b11, b12 = B[1, 0], B[1, 1], B[1, 2]
    b20, b21, b22 = B[2, 0], B[2, 1], B[2, 2]
    for r in range(3):
        x, y, z = A[r, 0], A[r, 1], A[r, 2]
        out[r, 0] = x * b00 + y * b10 + z * b20
        out[r, 1] = x * b01 + y * b11 + z * b21
        out[r, 2] = x * b02 + y * b12 + z * b22


@compiled
def sandwich(R, s, out):
    """out = R I R^T for the symmetric I = (xx, xy, xz, yy, yz, zz); `out` in the same order."""
    ax = R[0, 0] * s[0] + R[0, 1] * s[1] + R[0, 2] * s[2]
    ay = R[0, 0] * s[1] + R[0, 1] * s[3] + R[0, 2] * s[4]
    az = R[0, 0] * s[2] + R[0, 1] * s[4] + R[0, 2] * s[5]
    bx = R[1, 0] * s[0] + R[1, 1] * s[1] + R[1, 2] * s[2]
    by = R[1, 0] * s[1] + R[1, 1] * s[3] + R[1, 2] * s[4]
    bz = R[1, 0] * s[2] + R[1, 1] * s[4] + R[1, 2] * s[5]
    cx = R[2, 0] * s[0] + R[2, 1] * s[1] + R[2, 2] * s[2]
    cy = R[2, 0] * s[1] + R[2, 1] * s[3] + R[2, 2] * s[4]
    cz = R[2, 0] * s[2] + R[2, 1] * s[4] + R[2, 2] * s[5]
    out[0] = ax * R[0, 0] + ay * R[0, 1] + az * R[0, 2]
    out[1] = ax * R[1, 0] + ay * R[1, 1] + az * R[1, 2]
    out[2] = ax * R[2, 0] + ay * R[2, 1] + az * R[2, 2]
    out[3] = bx * R[1, 0] + by * R[1, 1] + bz * R[1, 2]
    out[4] = bx * R[2, 0] + by * R[2, 1] + bz * R[2, 2]
    out[5] = cx * R[2, 0] + cy * R[2, 1] + cz * R[2, 2]


@compiled
def symmetric(s, v):
    """S v for the symmetric S = (xx, xy, xz, yy, yz, zz)."""
    return (
        s[0] * v[0] + s[1] * v[1] + s[2] * v[2],
        s[1] * v[0] + s[3] * v[1] + s[4] * v[2],
        s[2] * v[0] + s[4] * v[1] + s[5] * v[2],
    )
