# SPDX-License-Identifier: Apache-2.0
"""Small dense linear algebra in place, and questions about short vectors: a call of NumPy costs more than they do."""

from math import isfinite, sqrt

from pkm_runtime.kernels.compiled import compiled


@compiled
def copy(values, out):
    """Fill a vector with the first of some values, without slices, which numba would count references of."""
    for k in range(out.shape[0]):
        out[k] = values[k]


@compiled
def multiply(A, x, out):
    """out (m,) = A (m, n) x."""
    for r in range(out.shape[0]):
        out[r] = 0.0
        for c in range(A.shape[1]):
            out[r] += A[r, c] * x[c]


@compiled
def gram(first, second, out):
    """out (n, n) = first^T second, both (m, n): of a positive determinant where one leads to the other regularly."""
    for r in range(first.shape[1]):
        for c in range(first.shape[1]):
            out[r, c] = 0.0
            for k in range(first.shape[0]):
                out[r, c] += first[k, r] * second[k, c]


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
    """Solve A x = b for the leading (n, n) part of A by Cholesky, in place; False where it is not positive definite."""
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
def magnitude(jacobian, length):
    """Norm of Frobenius of a Jacobian (6, n) of a twist, rotations at `length` [m]."""
    moving, turning = 0.0, 0.0
    for c in range(jacobian.shape[1]):
        for r in range(3):
            moving += jacobian[r, c] * jacobian[r, c]
            turning += jacobian[r + 3, c] * jacobian[r + 3, c]
    return sqrt(moving + length * length * turning)
