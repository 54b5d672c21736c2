# SPDX-License-Identifier: Apache-2.0
"""Smallest and largest singular value of a small matrix, without a branch.

One sequence of operations serves every matrix, so that it can be recorded as straight-line code. A = K^T K is squared
again and again, which leaves the directions of its largest eigenvalue; its inverse likewise gives those of the
smallest. The singular value is the length of K x for such a direction x: in a cluster of nearly equal singular values
any direction gives one that lies among them, so that clusters do no harm.

The largest is accurate to 1e-5 of itself, the smallest to 1e-5 of itself or 1e-5 of the largest: A is K squared, which
loses what is smaller than the root of rounding.
"""

from math import sqrt

from pkm_runtime.kernels.compiled import compiled, select_gt

# Singular values closer to each other than one part in 2^SQUARINGS are not told apart: the error is a third of a part.
SQUARINGS = 14
ROUNDING = 1e-12  # of the trace: added to the diagonal, so that a singular matrix has an inverse too


@compiled
def invert_symmetric(A, n, out):
    """Inverse of the leading (n, n) part of a positive definite A by Gauss-Jordan elimination without pivots."""
    for r in range(n):
        for c in range(n):
            out[r, c] = A[r, c]
    for k in range(n):
        pivot = 1.0 / out[k, k]
        for c in range(n):
            if c != k:
                out[k, c] = out[k, c] * pivot
        for r in range(n):
            if r != k:
                factor = out[r, k]
                for c in range(n):
                    if c != k:
                        out[r, c] = out[r, c] - factor * out[k, c]
                out[r, k] = -(factor * pivot)
        out[k, k] = pivot


@compiled
def square_often(P, n, scratch):
    """Reduce a symmetric P to the projection on the directions of its largest eigenvalues."""
    for _ in range(SQUARINGS):
        trace = P[0, 0]
        for k in range(1, n):
            trace = trace + P[k, k]
        scale = 1.0 / trace
        for r in range(n):
            for c in range(r, n):
                P[r, c] = scale * P[r, c]
                P[c, r] = P[r, c]
        for r in range(n):
            for c in range(r, n):
                value = P[r, 0] * P[0, c]
                for k in range(1, n):
                    value = value + P[r, k] * P[k, c]
                scratch[r, c] = value
        for r in range(n):
            for c in range(r, n):
                P[r, c] = scratch[r, c]


@compiled
def length_along(K, m, P, n, x):
    """Length of K x (m, n) for a unit vector x in the range of the projection P, whose upper triangle is used."""
    best = P[0, 0]
    for r in range(n):
        x[r] = P[0, r]
    for k in range(1, n):
        size = P[k, k]
        for r in range(n):
            entry = P[k, r] if k < r else P[r, k]
            x[r] = select_gt(size, best, entry, x[r])
        best = select_gt(size, best, size, best)
    whole = x[0] * x[0]
    for r in range(1, n):
        whole = whole + x[r] * x[r]
    total = 0.0
    for i in range(m):
        value = K[i, 0] * x[0]
        for r in range(1, n):
            value = value + K[i, r] * x[r]
        total = total + value * value
    return sqrt(total / whole)


@compiled
def extreme_singular_values(K, m, n, scratch):
    """Smallest and largest singular value of the leading (m, n) part of K, m >= n; `scratch` is (4, w, w), w >= n."""
    A, P, Q, more = scratch[0], scratch[1], scratch[2], scratch[3]
    trace = 0.0
    for r in range(n):
        for c in range(r, n):
            value = K[0, r] * K[0, c]
            for i in range(1, m):
                value = value + K[i, r] * K[i, c]
            A[r, c] = value
            A[c, r] = value
        trace = trace + A[r, r]
    if n == 1:
        length = sqrt(A[0, 0])
        return length, length
    for r in range(n):
        for c in range(n):
            P[r, c] = A[r, c]
    square_often(P, n, more)
    largest = length_along(K, m, P, n, more[0])
    for r in range(n):
        A[r, r] = A[r, r] + ROUNDING * trace
    invert_symmetric(A, n, Q)
    square_often(Q, n, more)
    return length_along(K, m, Q, n, more[0]), largest
