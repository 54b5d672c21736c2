# SPDX-License-Identifier: Apache-2.0
"""Small dense linear algebra in place, without allocation."""

from math import sqrt

from pkm_runtime.kernels.compiled import compiled


@compiled
def determinant_sign(A, n):
    """Sign of the determinant of the leading (n, n) part of A, by elimination with row pivots; A is overwritten."""
    sign = 1.0
    for k in range(n):
        pivot = k
        for r in range(k + 1, n):
            if abs(A[r, k]) > abs(A[pivot, k]):
                pivot = r
        if A[pivot, k] == 0.0:
            return 0.0
        if pivot != k:
            sign = -sign
            for c in range(k, n):
                A[k, c], A[pivot, c] = A[pivot, c], A[k, c]
        if A[k, k] < 0.0:
            sign = -sign
        inverse = 1.0 / A[k, k]
        for r in range(k + 1, n):
            factor = A[r, k] * inverse
            for c in range(k + 1, n):
                A[r, c] -= factor * A[k, c]
    return sign


@compiled
def solve_positive(A, b, n):
    """Solve A x = b for the leading (n, n) part of A by Cholesky, lower triangle overwritten; x replaces b.

    Returns False where A is not positive definite.
    """
    for c in range(n):
        value = A[c, c]
        for k in range(c):
            value -= A[c, k] * A[c, k]
        if not value > 0.0:
            return False
        inverse = 1.0 / sqrt(value)
        A[c, c] = inverse
        for r in range(c + 1, n):
            value = A[r, c]
            for k in range(c):
                value -= A[r, k] * A[c, k]
            A[r, c] = value * inverse
    for r in range(n):
        value = b[r]
        for k in range(r):
            value -= A[r, k] * b[k]
        b[r] = value * A[r, r]
    for r in range(n - 1, -1, -1):
        value = b[r]
        for k in range(r + 1, n):
            value -= A[k, r] * b[k]
        b[r] = value * A[r, r]
    return True
