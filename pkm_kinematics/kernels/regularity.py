# SPDX-License-Identifier: Apache-2.0
"""Is a matrix singular? One number, one bound, for everything that divides by a matrix.

The number is the reciprocal condition in the norm of Frobenius, n / (|A| |A^-1|), for A (m, n) of uniform units: 1
where the columns are of equal length and square to each other, 0 where they depend on each other. It is the
conditioning index of Angeles and Lopez-Cajun ("Kinematic isotropy and the conditioning index of serial robotic
manipulators", 1992), and within a factor n of the smallest singular value over the largest. It comes from Householder's
QR, whose triangle is inverted: neither determinants nor normal equations, which lose half of the digits, decide. Three
equations in as many unknowns are solved by their determinant, wherever it is known well enough to be sure.

Units are made uniform by a length: an angular velocity counts as the speed of a point at the characteristic length, and
a direction that a closure holds as an arc at the robot's size. Joints of a limb slide or turn; there each joint's
column is taken at unit length.

A (m, n) is factorised in place: it holds the reflections, `weights` (n,) their weights, `inverse` (n, n) that of R.
"""

from math import sqrt

from pkm_runtime.kernels.compiled import compiled, select_gt

# A reciprocal condition at or below it is singular. Rounding leaves 1e-16 in the matrix, hence an error of 1e-9 in what
# is solved with it here. Where two branches of a limb meet it leaves the joints themselves off by 1e-16 over the
# number, and so the rates by 1e-16 over its square: a hundredth here, all of them at 1e-8. Nothing real is held by
# drives or joints that push ten million times as hard as the load.
SINGULAR_BELOW = 1e-7
# Square of a determinant over the sixth power of the norm above which it loses no more than three digits.
BY_DETERMINANT = 1e-6


@compiled
def is_regular(condition):
    """Whether a reciprocal condition is that of a matrix to divide by; False for NaN."""
    return condition > SINGULAR_BELOW


@compiled
def unit_speed(subspace, length, c):
    """Speed [m/s] of the platform at unit rate of column c of its motion space (6, n), rotations at `length`."""
    moving = subspace[0, c] ** 2 + subspace[1, c] ** 2 + subspace[2, c] ** 2
    turning = subspace[3, c] ** 2 + subspace[4, c] ** 2 + subspace[5, c] ** 2
    return sqrt(moving + length * length * turning)


@compiled
def weigh_drives(model, square, values):
    """Multiply values (m,) of turning drives by the characteristic length if others slide and none is redundant."""
    bodies, task = model.bodies, model.task[0]
    if task.mixed == 1 and square:
        for i in range(2, bodies.shape[0]):
            if bodies[i].actuator >= 0 and bodies[i].prismatic == 0:
                values[bodies[i].actuator] *= task.length


@compiled
def make_uniform(model, K, b):
    """Give K (m, n), drives' rates per rate of the motion space, uniform units; divide b (n,) by its unit speeds."""
    m, n = K.shape
    for c in range(n):
        per_speed = 1.0 / unit_speed(model.subspace, model.task[0].length, c)
        b[c] *= per_speed
        for a in range(m):
            K[a, c] *= per_speed
        weigh_drives(model, m == n, K[:, c])


@compiled
def turn(A, m, k, weights, x):
    """Apply reflection k of A to a vector x (m,)."""
    along = 0.0
    for r in range(k, m):
        along += A[r, k] * x[r]
    along *= weights[k]
    for r in range(k, m):
        x[r] -= along * A[r, k]


@compiled
def reflect(A, m, n, k, weights):
    """Step k of Householder's QR of A in place: the reflection, stored from row k on, that clears column k below row k.

    Returns the diagonal entry of R, 0 where nothing is left of the column.
    """
    head = A[k, k]
    if k == m - 1:
        weights[k] = 0.0
        return head
    squared = head * head
    for r in range(k + 1, m):
        squared += A[r, k] * A[r, k]
    if not squared > 0.0:
        return 0.0
    length = sqrt(squared)
    diagonal = select_gt(head, 0.0, -length, length)
    A[k, k] = head - diagonal
    weights[k] = 1.0 / (squared - head * diagonal)
    for c in range(k + 1, n):
        turn(A, m, k, weights, A[:, c])
    return diagonal


@compiled
def invert_triangle(A, n, inverse):
    """Invert the triangle above the diagonal of A; `inverse` has the diagonal's reciprocals. Reciprocal condition."""
    whole = 0.0
    inverted = 0.0
    for c in range(n):
        whole += 1.0 / (inverse[c, c] * inverse[c, c])
        inverted += inverse[c, c] * inverse[c, c]
        for r in range(c - 1, -1, -1):
            value = A[r, c] * inverse[c, c]
            for k in range(r + 1, c):
                value += A[r, k] * inverse[k, c]
            value *= -inverse[r, r]
            inverse[r, c] = value
            whole += A[r, c] * A[r, c]
            inverted += value * value
    return n / sqrt(whole * inverted)


@compiled
def factorise(A, m, n, inverse, weights):
    """A = Q R in place, m >= n, for `least_norm` and `nearest`; returns its reciprocal condition, 0 if of no use."""
    for k in range(n):
        diagonal = reflect(A, m, n, k, weights)
        if diagonal == 0.0:
            return 0.0
        inverse[k, k] = 1.0 / diagonal
    return invert_triangle(A, n, inverse)


@compiled
def orientation(inverse, n):
    """Sign of the determinant of a square matrix, factorised."""
    sign = 1.0
    for k in range(n):
        if k < n - 1:  # a reflection turns over; the last row needs none
            sign = -sign
        sign = select_gt(0.0, inverse[k, k], -sign, sign)
    return sign


@compiled
def least_norm(A, m, n, inverse, weights, b, x):
    """x (m,) of least norm with A^T x = b, b (n,), for A factorised."""
    for c in range(n):
        x[c] = 0.0
        for r in range(c + 1):
            x[c] += inverse[r, c] * b[r]
    for r in range(n, m):
        x[r] = 0.0
    turn_back(A, m, n, weights, x)


@compiled
def solve_three(A, b, x):
    """x (3,) with A^T x = b (3,) for A (3, 3) by cross products, in half the time of a factorisation; its reciprocal
    condition, or 0 and nothing written where the determinant has lost digits.
    """
    u0, u1, u2 = A[0, 0], A[0, 1], A[0, 2]
    v0, v1, v2 = A[1, 0], A[1, 1], A[1, 2]
    w0, w1, w2 = A[2, 0], A[2, 1], A[2, 2]
    p0, p1, p2 = v1 * w2 - v2 * w1, v2 * w0 - v0 * w2, v0 * w1 - v1 * w0
    q0, q1, q2 = w1 * u2 - w2 * u1, w2 * u0 - w0 * u2, w0 * u1 - w1 * u0
    r0, r1, r2 = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
    determinant = u0 * p0 + u1 * p1 + u2 * p2
    whole = (u0 * u0 + u1 * u1 + u2 * u2) + (v0 * v0 + v1 * v1 + v2 * v2) + (w0 * w0 + w1 * w1 + w2 * w2)
    squared = determinant * determinant
    if not squared > BY_DETERMINANT * (whole * whole * whole):
        return 0.0
    cofactors = (p0 * p0 + p1 * p1 + p2 * p2) + (q0 * q0 + q1 * q1 + q2 * q2) + (r0 * r0 + r1 * r1 + r2 * r2)
    inverse = 1.0 / determinant
    x[0] = (p0 * b[0] + p1 * b[1] + p2 * b[2]) * inverse
    x[1] = (q0 * b[0] + q1 * b[1] + q2 * b[2]) * inverse
    x[2] = (r0 * b[0] + r1 * b[1] + r2 * b[2]) * inverse
    return 3.0 * sqrt(squared / (whole * cofactors))


@compiled
def turn_back(A, m, n, weights, x):
    """x (m,) = Q x, for A factorised."""
    for k in range(n - 1, -1, -1):
        turn(A, m, k, weights, x)


@compiled
def nearest(A, m, n, inverse, weights, wanted, x):
    """x (n,) for which A x comes nearest to `wanted` (m,), which is overwritten, for A factorised."""
    for k in range(n):
        turn(A, m, k, weights, wanted)
    for r in range(n):
        x[r] = 0.0
        for c in range(r, n):
            x[r] += inverse[r, c] * wanted[c]


@compiled
def factorise_of_rank(A, m, k, rank, inverse, weights):
    """As `factorise`, of A (m, k) of at most `rank`: its first columns become those that span most; their condition."""
    for step in range(rank):
        most, chosen = -1.0, step
        for c in range(step, k):
            left = 0.0
            for r in range(step, m):
                left += A[r, c] * A[r, c]
            if left > most:
                most, chosen = left, c
        if chosen != step:
            for r in range(m):
                A[r, step], A[r, chosen] = A[r, chosen], A[r, step]
        diagonal = reflect(A, m, k, step, weights)
        if diagonal == 0.0:
            return 0.0
        inverse[step, step] = 1.0 / diagonal
    return invert_triangle(A, rank, inverse)
