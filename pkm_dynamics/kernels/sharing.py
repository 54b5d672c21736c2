# SPDX-License-Identifier: Apache-2.0
"""Redundant actuators sharing a task within bounds: least norm among all efforts that do the same work.

These are start + N z, N (m, m - rank) an orthonormal basis of the null space of the Jacobian J (k, m), whose rows span
the actuators' possible velocities in uniform units. In z they are the point of a polyhedron nearest to a given one, by
the dual method of Goldfarb and Idnani ("A numerically stable dual method for solving strictly convex quadratic
programs", Mathematical Programming 1983): it starts from that point, adds the most violated bound, drops those that no
longer hold, needs no feasible start and detects infeasibility. Efforts and bounds are (m,), infinite where none;
equal bounds prescribe an effort.
"""

from pkm_kinematics.kernels.dense import copy, solve_positive
from pkm_kinematics.kernels.regularity import factorise_of_rank, is_regular, turn_back
from pkm_runtime.kernels.compiled import compiled

SHARED, NONE_WITHIN, UNDETERMINED, NO_END = range(4)  # the last: rounding leads the method in a circle
_BROKEN = 1e-12  # of the size of the bound and of the efforts: what rounding may leave outside
_PARALLEL = 1e-12  # square of the part of a normal that the others leave, below which it depends on them
_MOST = 200  # changes of the working set: more is a circle


def room(m, rows):
    """Shape of the scratch of `share_within` for m actuators, and as many rows of J."""
    return 3 * m + 9, max(m + 1, rows)


@compiled
def null_space(J, rank, A, inverse, weights, N):
    """Fill N, of use where the returned reciprocal condition of J is regular; `A` (m, k) and the rest are scratch."""
    k, m = J.shape
    for r in range(k):
        for i in range(m):
            A[i, r] = J[r, i]
    condition = factorise_of_rank(A, m, k, rank, inverse, weights)
    for c in range(m - rank):
        for i in range(m):
            N[i, c] = 1.0 if i == rank + c else 0.0
        turn_back(A, m, rank, weights, N[:, c])
    return condition


@compiled
def most_broken(rows, start, lower, upper, z, size):
    """The bound that z (r,) breaks most, and its side (1 below, -1 above); -1: all are kept, -2: one cannot be."""
    m, r = rows.shape
    worst, chosen, sign = 0.0, -1, 1.0
    for i in range(m):
        value, length = start[i], 0.0
        for c in range(r):
            value += rows[i, c] * z[c]
            length += rows[i, c] * rows[i, c]
        below, above = lower[i] - value, value - upper[i]
        over = below if below > above else above
        if over <= _BROKEN * (abs(value) + size):
            continue
        if not length > 0.0:
            return -2, sign
        if over * over > worst * length:
            worst = over * over / length
            chosen, sign = i, (1.0 if below > above else -1.0)
    return chosen, sign


@compiled
def leaning(rows, side, active, held, normal, gram, step, direction):
    """How a normal (r,) leans on the bounds held, into `step`, and the part that they leave free, into `direction`;
    both squared lengths, the free one first: -1 where the bounds held depend on each other.
    """
    r = rows.shape[1]
    for a in range(held):
        i = int(active[a])
        step[a] = 0.0
        for c in range(r):
            step[a] += side[a] * rows[i, c] * normal[c]
        for b in range(a + 1):
            j = int(active[b])
            gram[a, b] = 0.0
            for c in range(r):
                gram[a, b] += side[a] * side[b] * rows[i, c] * rows[j, c]
    if held > 0 and not solve_positive(gram, step, held):
        return -1.0, 0.0
    free, whole = 0.0, 0.0
    for c in range(r):
        direction[c] = normal[c]
        for a in range(held):
            direction[c] -= step[a] * side[a] * rows[int(active[a]), c]
        free += direction[c] * direction[c]
        whole += normal[c] * normal[c]
    return free, whole


@compiled
def nearest_within(rows, start, lower, upper, z, working):
    """z (r,) nearest to zero with lower <= start + rows z <= upper, scratch (r + 6, r + 1). Returns a status."""
    m, r = rows.shape
    gram, step, normal, direction = working[:r, :r], working[r], working[r + 1], working[r + 2]
    weight, active, side = working[r + 3], working[r + 4], working[r + 5]
    held = 0
    for c in range(r):
        z[c] = 0.0
    size = 1e-300
    for i in range(m):
        size = max(size, abs(start[i]))
    for _ in range(_MOST):
        chosen, sign = most_broken(rows, start, lower, upper, z, size)
        if chosen < 0:
            return SHARED if chosen == -1 else NONE_WITHIN
        for j in range(held):  # the bound at hand is held already: what is left is rounding
            if int(active[j]) == chosen and side[j] == sign:
                return SHARED
        for c in range(r):
            normal[c] = sign * rows[chosen, c]
        price = 0.0
        for _ in range(m + r + 1):
            free, whole = leaning(rows, side, active, held, normal, gram, step, direction)
            if free < 0.0:
                return NO_END
            blocked, most = -1, 1e300
            for a in range(held):
                if step[a] > 0.0 and weight[a] / step[a] < most:
                    blocked, most = a, weight[a] / step[a]
            value = start[chosen]
            for c in range(r):
                value += rows[chosen, c] * z[c]
            gap = (lower[chosen] - value) if sign > 0.0 else (value - upper[chosen])
            movable = free > _PARALLEL * whole and held < r
            if not movable and blocked < 0:
                return NONE_WITHIN
            length = gap / free if movable else 1e300
            full = length <= most
            if not full:
                length = most
            if movable:
                for c in range(r):
                    z[c] += length * direction[c]
            for a in range(held):
                weight[a] -= length * step[a]
            price += length
            if full:
                active[held], side[held], weight[held] = chosen, sign, price
                held += 1
                break
            for a in range(blocked, held - 1):
                active[a], side[a], weight[a] = active[a + 1], side[a + 1], weight[a + 1]
            held -= 1
    return NO_END


@compiled
def share_within(J, rank, lower, upper, effort, scratch):
    """Replace `effort` by the least norm within bounds at the same work. Returns a status; unchanged unless SHARED."""
    k, m = J.shape
    r = m - rank
    N, inverse, weights = scratch[m : 2 * m, :r], scratch[2 * m : 2 * m + rank, :rank], scratch[2 * m + rank, :rank]
    at = 2 * m + rank + 1
    start, z, working = scratch[at, :m], scratch[at + 1, :r], scratch[at + 2 : at + 8 + r, : r + 1]
    if not is_regular(null_space(J, rank, scratch[:m, :k], inverse, weights, N)):
        return UNDETERMINED
    copy(effort, start)
    for c in range(r):
        along = 0.0
        for i in range(m):
            along += N[i, c] * effort[i]
        for i in range(m):
            start[i] -= along * N[i, c]
    status = nearest_within(N, start, lower, upper, z, working)
    if status != SHARED:
        return status
    for i in range(m):
        value = start[i]
        for c in range(r):
            value += N[i, c] * z[c]
        effort[i] = min(max(value, lower[i]), upper[i])  # rounding
    return SHARED


@compiled
def share_rows(jacobians, rank, lower, upper, efforts, status, scratch):
    """`share_within` for rows: Jacobians (n, k, m) and efforts (n, m) of status 0, which becomes that of the answer."""
    for row in range(efforts.shape[0]):
        if status[row] == 0:
            status[row] = share_within(jacobians[row], rank, lower, upper, efforts[row], scratch)
