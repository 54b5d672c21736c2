# SPDX-License-Identifier: Apache-2.0
"""Jets of intervals: bounds of a quantity over a box of k parameters, and of its rates along m twists.

A recorded program is evaluated on them term after term: `terms` (n, 3) are an operation and up to two operands, by
number; `J` (n, width) has the jets of all terms, `reach` (k,) the distance of the box's faces from its centre.

One row of numbers for each term of a program holds, as pairs of bounds:

    value   over the box
    centre  at the centre of the box
    slope   (k) derivatives by the parameters, over the box
    rate    (m) derivatives along the twists, over the box
    at      (m) the same at the centre
    bend    (k, m) derivatives of the rates by the parameters, over the box

Each is propagated through every operation by the rules of differentiation, and then narrowed: a value lies within the
mean value form, centre + slope times distance from the centre, and a rate likewise. Where a function is not
differentiable on the whole box, its derivatives are unbounded, and the mean value form says nothing.
"""

from pkm_analysis.proof.kernels.intervals import (
    EVERYTHING,
    angle,
    both,
    contains_zero,
    cosine_sine,
    divide,
    magnitude,
    minus,
    negative,
    plus,
    reciprocal,
    root,
    square,
    times,
    up,
)
from pkm_runtime.kernels.compiled import compiled

NOTHING = (0.0, 0.0)
ONE = (1.0, 1.0)

VALUE, CENTRE, SLOPE = 0, 2, 4  # where they are in a row

# Operations. GIVEN is what is there before a program runs: inputs and constants. MULTIPLE is that of a constant, the
# first operand.
GIVEN, ADD, SUBTRACT, MULTIPLY, MULTIPLE, SQUARE, RECIPROCAL, NEGATED, ROOT, SINE, COSINE, ANGLE = range(12)
LESS, EQUAL = range(2)


@compiled
def rate_at(k, m):
    """Where the rates of a row begin."""
    return SLOPE + 2 * k


@compiled
def centre_rate_at(k, m):
    """Where the rates at the centre begin."""
    return SLOPE + 2 * k + 2 * m


@compiled
def bend_at(k, m):
    """Where the bends begin."""
    return SLOPE + 2 * k + 4 * m


@compiled
def width_of(k, m):
    """Numbers in a row."""
    return SLOPE + 2 * k + 4 * m + 2 * k * m


@compiled
def read(J, i, at):
    """An interval of row i."""
    return J[i, at], J[i, at + 1]


@compiled
def write(J, i, at, a):
    """Write an interval into row i."""
    J[i, at] = a[0]
    J[i, at + 1] = a[1]


@compiled
def narrow(J, i, k, m, reach):
    """Intersect value and rates of row i with their mean value forms; `reach` (k,) is half the box."""
    radius = 0.0
    for u in range(k):
        slope = magnitude(read(J, i, SLOPE + 2 * u))
        if slope > 0.0 and reach[u] > 0.0:
            radius = up(radius + up(slope * reach[u]))
    centre = read(J, i, CENTRE)
    write(J, i, VALUE, both(read(J, i, VALUE), plus(centre, (-radius, radius))))
    first, there, bends = rate_at(k, m), centre_rate_at(k, m), bend_at(k, m)
    for t in range(m):
        radius = 0.0
        for u in range(k):
            bend = magnitude(read(J, i, bends + 2 * (u * m + t)))
            if bend > 0.0 and reach[u] > 0.0:
                radius = up(radius + up(bend * reach[u]))
        rate = read(J, i, first + 2 * t)
        write(J, i, first + 2 * t, both(rate, plus(read(J, i, there + 2 * t), (-radius, radius))))


@compiled
def unknown(J, i, k, m):
    """Set derivatives of row i to unbounded."""
    for at in range(SLOPE, width_of(k, m), 2):
        write(J, i, at, EVERYTHING)


@compiled
def set_sum(J, i, a, b, sign, k, m):
    """Row i: a + b, or a - b where the sign is negative."""
    for at in range(0, width_of(k, m), 2):
        x, y = read(J, a, at), read(J, b, at)
        write(J, i, at, plus(x, y) if sign > 0.0 else minus(x, y))


@compiled
def set_negative(J, i, a, k, m):
    """Row i: -a."""
    for at in range(0, width_of(k, m), 2):
        write(J, i, at, negative(read(J, a, at)))


@compiled
def set_multiple(J, i, a, factor, k, m):
    """Row i: a constant interval times a."""
    for at in range(0, width_of(k, m), 2):
        write(J, i, at, times(factor, read(J, a, at)))


@compiled
def set_product(J, i, a, b, k, m):
    """Row i: a b."""
    x, y = read(J, a, VALUE), read(J, b, VALUE)
    xc, yc = read(J, a, CENTRE), read(J, b, CENTRE)
    write(J, i, VALUE, times(x, y))
    write(J, i, CENTRE, times(xc, yc))
    follow_both(J, i, a, b, (y, x), (yc, xc), (NOTHING, ONE, NOTHING), k, m)


@compiled
def scaled(factor, a):
    """`factor` times a; exactly a for a factor of one."""
    return a if factor == ONE else times(factor, a)


@compiled
def follow_both(J, i, a, b, slopes, centre_slopes, bends, k, m):
    """Derivatives of row i = f(a, b), from f_a and f_b over the box and at the centre, and f_aa, f_ab, f_bb over it."""
    (fa, fb), (fac, fbc), (faa, fab, fbb) = slopes, centre_slopes, bends
    first, there, bend = rate_at(k, m), centre_rate_at(k, m), bend_at(k, m)
    for t in range(m):
        at = first + 2 * t
        write(J, i, at, plus(times(fa, read(J, a, at)), times(fb, read(J, b, at))))
        at = there + 2 * t
        write(J, i, at, plus(times(fac, read(J, a, at)), times(fbc, read(J, b, at))))
    for u in range(k):
        au, bu = read(J, a, SLOPE + 2 * u), read(J, b, SLOPE + 2 * u)
        write(J, i, SLOPE + 2 * u, plus(times(fa, au), times(fb, bu)))
        p = plus(times(faa, au), scaled(fab, bu))
        q = plus(scaled(fab, au), times(fbb, bu))
        for t in range(m):
            at = bend + 2 * (u * m + t)
            straight = plus(times(fa, read(J, a, at)), times(fb, read(J, b, at)))
            bent = plus(times(p, read(J, a, first + 2 * t)), times(q, read(J, b, first + 2 * t)))
            write(J, i, at, plus(straight, bent))


@compiled
def follow(J, i, a, slope, centre_slope, bend, k, m):
    """Derivatives of row i = f(a), from f' over the box and at the centre, and f'' over the box."""
    for u in range(k):
        write(J, i, SLOPE + 2 * u, times(slope, read(J, a, SLOPE + 2 * u)))
    first, there, bends = rate_at(k, m), centre_rate_at(k, m), bend_at(k, m)
    for t in range(m):
        write(J, i, first + 2 * t, times(slope, read(J, a, first + 2 * t)))
        write(J, i, there + 2 * t, times(centre_slope, read(J, a, there + 2 * t)))
    for u in range(k):
        bent = times(bend, read(J, a, SLOPE + 2 * u))
        for t in range(m):
            at = bends + 2 * (u * m + t)
            straight = times(slope, read(J, a, at))
            write(J, i, at, plus(straight, times(bent, read(J, a, first + 2 * t))))


@compiled
def set_square(J, i, a, k, m):
    """Row i: a^2."""
    x, xc = read(J, a, VALUE), read(J, a, CENTRE)
    write(J, i, VALUE, square(x))
    write(J, i, CENTRE, square(xc))
    follow(J, i, a, plus(x, x), plus(xc, xc), (2.0, 2.0), k, m)


@compiled
def set_reciprocal(J, i, a, k, m):
    """Row i: 1 / a."""
    r, rc = reciprocal(read(J, a, VALUE)), reciprocal(read(J, a, CENTRE))
    write(J, i, VALUE, r)
    write(J, i, CENTRE, rc)
    if contains_zero(read(J, a, VALUE)):
        unknown(J, i, k, m)
        return
    r2 = square(r)
    follow(J, i, a, negative(r2), negative(square(rc)), times((2.0, 2.0), times(r2, r)), k, m)


@compiled
def set_root(J, i, a, k, m):
    """Row i: the square root of a."""
    x = read(J, a, VALUE)
    r, rc = root(x), root(read(J, a, CENTRE))
    write(J, i, VALUE, r)
    write(J, i, CENTRE, rc)
    if not x[0] > 0.0:
        unknown(J, i, k, m)
        return
    half, half_c = divide((0.5, 0.5), r), divide((0.5, 0.5), rc)
    follow(J, i, a, half, half_c, times((-0.5, -0.5), divide(half, x)), k, m)


@compiled
def set_turn(J, i, a, wants_sine, k, m):
    """Row i: sine or cosine of a."""
    c, s = cosine_sine(read(J, a, VALUE))
    cc, sc = cosine_sine(read(J, a, CENTRE))
    if wants_sine:
        write(J, i, VALUE, s)
        write(J, i, CENTRE, sc)
        follow(J, i, a, c, cc, negative(s), k, m)
    else:
        write(J, i, VALUE, c)
        write(J, i, CENTRE, cc)
        follow(J, i, a, negative(s), negative(sc), negative(c), k, m)


@compiled
def set_angle(J, i, a, b, k, m):
    """Row i: the angle of the direction with sine a and cosine b, neither of unit length."""
    y, x = read(J, a, VALUE), read(J, b, VALUE)
    yc, xc = read(J, a, CENTRE), read(J, b, CENTRE)
    value, continuous = angle(y, x)
    centre, _ = angle(yc, xc)
    write(J, i, VALUE, value)
    write(J, i, CENTRE, centre)
    r2 = plus(square(x), square(y))
    if not (continuous and r2[0] > 0.0):
        unknown(J, i, k, m)
        return
    rc2 = plus(square(xc), square(yc))
    fy, fx = divide(x, r2), negative(divide(y, r2))
    at_centre = divide(xc, rc2), negative(divide(yc, rc2))
    fxx = times((-2.0, -2.0), times(fy, fx))  # 2 x y / r^4, and minus it for yy
    fxy = minus(square(fx), square(fy))  # (y^2 - x^2) / r^4
    follow_both(J, i, a, b, (fy, fx), at_centre, (negative(fxx), fxy, fxx), k, m)


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
        else:
            set_angle(J, i, a, b, k, m)
        if narrowing:
            narrow(J, i, k, m, reach)


@compiled
def certain(conditions, J):
    """Whether all comparisons (n, 4: LESS or EQUAL, left, right, outcome) come out as recorded on the whole box."""
    for c in range(conditions.shape[0]):
        x, y = read(J, conditions[c, 1], VALUE), read(J, conditions[c, 2], VALUE)
        outcome = conditions[c, 3] == 1
        if conditions[c, 0] == LESS:
            holds = x[1] < y[0] if outcome else x[0] >= y[1]
        elif outcome:
            holds = x[0] == x[1] and x == y
        else:
            holds = x[1] < y[0] or x[0] > y[1]
        if not holds:
            return False
    return True
