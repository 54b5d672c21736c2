# SPDX-License-Identifier: Apache-2.0
"""The interpreter: a recorded program evaluated on jets of intervals, term after term, for a box of parameters.

Arrays: `terms` (n, 5) operation and up to four operands, by number; `J` (n, width) jets; `reach` (k,) distance of the
box's faces from its centre; `box` (k, 2). k is the number of parameters, m of twists; `inputs` are terms, negative
for those that are not needed.
"""

from pkm_analysis.proof.kernels.intervals import negative, plus, times
from pkm_analysis.proof.kernels.jets import (
    CENTRE,
    NOTHING,
    SLOPE,
    VALUE,
    bend_at,
    centre_rate_at,
    narrow,
    rate_at,
    read,
    set_absolute,
    set_angle,
    set_larger,
    set_multiple,
    set_negative,
    set_product,
    set_reciprocal,
    set_root,
    set_selected,
    set_smaller,
    set_square,
    set_sum,
    set_turn,
    width_of,
    write,
)
from pkm_runtime.kernels.compiled import compiled

# Operations. GIVEN is what is there before the program runs: inputs and constants.
(
    GIVEN,
    ADD,
    SUBTRACT,
    MULTIPLY,
    MULTIPLE,  # of a constant, the first operand
    SQUARE,
    RECIPROCAL,
    NEGATED,
    ROOT,
    SINE,
    COSINE,
    ANGLE,
    ABSOLUTE,
    LARGER,
    SMALLER,
    SELECTED,
) = range(16)

LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, EQUAL, UNEQUAL = range(6)


@compiled
def unknown_zero(m):
    """Zero, as a number that the compiler does not know."""
    return m - m


@compiled
def run(terms, J, start, stop, k, m, reach, narrowing):
    """Evaluate terms `start` to `stop` (exclusive), the jets of inputs and constants being written.

    With `narrowing` values are cut to mean value forms, valid where the inputs' derivatives describe all their
    variation. Arguments must not be constants (see `unknown_zero`): numba would compile this and all that it calls once
    for every constant, ten seconds each.
    """
    for i in range(start, stop):
        what, a, b = terms[i, 0], terms[i, 1], terms[i, 2]
        if what == GIVEN:
            continue
        if what == MULTIPLY:
            set_product(J, i, a, b, k, m)
        elif what == MULTIPLE:
            set_multiple(J, i, b, read(J, a, VALUE), k, m)
        elif what == ADD:
            set_sum(J, i, a, b, 1.0, k, m)
        elif what == SUBTRACT:
            set_sum(J, i, a, b, -1.0, k, m)
        elif what == NEGATED:
            set_negative(J, i, a, k, m)
        elif what == SQUARE:
            set_square(J, i, a, k, m)
        elif what == RECIPROCAL:
            set_reciprocal(J, i, a, k, m)
        elif what == ROOT:
            set_root(J, i, a, k, m)
        elif what in (SINE, COSINE):
            set_turn(J, i, a, what == SINE, k, m)
        elif what == ANGLE:
            set_angle(J, i, a, b, k, m)
        elif what == ABSOLUTE:
            set_absolute(J, i, a, k, m)
        elif what == LARGER:
            set_larger(J, i, a, b, k, m)
        elif what == SMALLER:
            set_smaller(J, i, a, b, k, m)
        else:
            set_selected(J, i, a, b, terms[i, 3], terms[i, 4], k, m)
        if narrowing:
            narrow(J, i, k, m, reach)


@compiled
def certain(conditions, J):
    """Whether all comparisons (n, 4: comparison, left, right, outcome) come out as recorded on the whole box."""
    for c in range(conditions.shape[0]):
        x, y = read(J, conditions[c, 1], VALUE), read(J, conditions[c, 2], VALUE)
        what, outcome = conditions[c, 0], conditions[c, 3] == 1
        if what == LESS:
            holds = x[1] < y[0] if outcome else x[0] >= y[1]
        elif what == LESS_OR_EQUAL:
            holds = x[1] <= y[0] if outcome else x[0] > y[1]
        elif what == GREATER:
            holds = x[0] > y[1] if outcome else x[1] <= y[0]
        elif what == GREATER_OR_EQUAL:
            holds = x[0] >= y[1] if outcome else x[1] < y[0]
        else:
            apart = x[1] < y[0] or x[0] > y[1]
            same = x[0] == x[1] and x == y
            holds = same if (what == EQUAL) == outcome else apart
        if not holds:
            return False
    return True


@compiled
def place_parameters(J, inputs, origin, directions, box, k):
    """Write jets of coordinates, origin + directions (n, k) times parameters in `box`, without rates."""
    for j in range(inputs.shape[0]):
        i = inputs[j]
        if i < 0:
            continue
        value = centre = (origin[j], origin[j])
        for u in range(k):
            d = directions[j, u]
            if d != 0.0:
                middle = 0.5 * box[u, 0] + 0.5 * box[u, 1]
                value = plus(value, times((d, d), (box[u, 0], box[u, 1])))
                centre = plus(centre, times((d, d), (middle, middle)))
            write(J, i, SLOPE + 2 * u, (d, d))
        write(J, i, VALUE, value)
        write(J, i, CENTRE, centre)


@compiled
def place_pose(A, results, J, inputs, twists, k, m):
    """Write jets of the platform's origin and rotation, with rates along unit speeds of `twists` (6, m).

    Linear parts move the origin, angular parts rotate about it, in base axes. `A` holds jets without rates; its terms
    `results` (12,) are the origin and, row by row, the rotation, as are `inputs` (12,) in `J`.
    """
    first, there, bends = rate_at(k, m), centre_rate_at(k, m), bend_at(k, m)
    for j in range(12):
        i = inputs[j]
        if i < 0:
            continue
        for at in range(0, SLOPE + 2 * k):
            J[i, at] = A[results[j], at]
        for t in range(m):
            if j < 3:
                v = (twists[j, t], twists[j, t])
                write(J, i, first + 2 * t, v)
                write(J, i, there + 2 * t, v)
                for u in range(k):
                    write(J, i, bends + 2 * (u * m + t), NOTHING)
            else:
                r, c = (j - 3) // 3, (j - 3) % 3
                p, q = (r + 1) % 3, (r + 2) % 3
                # row r of w x column c: w_p R_qc - w_q R_pc
                wp = (twists[3 + p, t], twists[3 + p, t])
                wq = negative((twists[3 + q, t], twists[3 + q, t]))
                Rq, Rp = results[3 + 3 * q + c], results[3 + 3 * p + c]
                write(J, i, first + 2 * t, plus(times(wp, read(A, Rq, VALUE)), times(wq, read(A, Rp, VALUE))))
                write(J, i, there + 2 * t, plus(times(wp, read(A, Rq, CENTRE)), times(wq, read(A, Rp, CENTRE))))
                for u in range(k):
                    at = SLOPE + 2 * u
                    bend = plus(times(wp, read(A, Rq, at)), times(wq, read(A, Rp, at)))
                    write(J, i, bends + 2 * (u * m + t), bend)


@compiled
def place_constants(J, constants, values, k, m):
    """Write the jets of constants: their terms and values."""
    for c in range(constants.shape[0]):
        i = constants[c]
        for at in range(width_of(k, m)):
            J[i, at] = 0.0
        write(J, i, VALUE, (values[c], values[c]))
        write(J, i, CENTRE, (values[c], values[c]))


@compiled
def set_reach(box, reach):
    """Write `reach` for a box, from the centre that `place_parameters` uses."""
    for u in range(box.shape[0]):
        middle = 0.5 * box[u, 0] + 0.5 * box[u, 1]
        off = max(box[u, 1] - middle, middle - box[u, 0])
        reach[u] = off + (abs(off) + abs(middle)) * 2.0**-52
