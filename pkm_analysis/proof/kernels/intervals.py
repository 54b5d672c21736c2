# SPDX-License-Identifier: Apache-2.0
"""Interval arithmetic that rounds outward, and jets of intervals.

An interval contains every value that its operands can lead to: a pair of bounds, either of which may be infinite, none
NaN. The processor rounds to nearest: what it computes for an exact x is off by at most 2^-53 |x|, or by half the
smallest number. Bounds are moved outward by twice that and by `TINY`, which also moves a bound to the next number at
least. The compiler may fuse a product with a sum: one rounding less, and the same holds.

Of the mathematical library only the square root is trusted, which IEEE 754 defines to be correctly rounded. Sine and
cosine are sums of a few terms of their series with the rest bounded; an arc tangent is the library's guess, corrected.

Jets bound a quantity over a box of k parameters, and its rates along m twists. Of a recorded program `terms` (n, 3) are
an operation and up to two operands, by number; `J` (n, width) has the jets of all, `reach` (k,) the distance of the
box's faces from its centre. A row of `J` holds, as pairs of bounds: the value over the box, and at its centre; the
slope (k) by the parameters; the rate (m) along the twists, and the same at the centre; the bend (k, m) of the rates by
the parameters. Each is propagated by the rules of differentiation, and then narrowed: a value lies within the mean
value form, centre + slope times distance from the centre, and a rate likewise. Where a function is not differentiable
on the whole box, its derivatives are unbounded, and the mean value form says nothing.
"""

from math import atan2, floor, inf, sqrt

from pkm_runtime.kernels.compiled import compiled

EPS = 2.0**-52
TINY = 1e-300

# pi / 2 lies between this number and the next
HALF_PI = 1.5707963267948966
HALF_PI_UP = 1.5707963267948968
PI_UP = 3.1415926535897936
FARTHEST = 1e6  # rad: beyond, a sine may be anything

EVERYTHING = (-inf, inf)
NOTHING = (0.0, 0.0)
ONE = (1.0, 1.0)
VALUE, CENTRE, SLOPE = 0, 2, 4  # where they are in a row
# Operations. GIVEN is what is there before a program runs: inputs and constants. MULTIPLE is that of a constant, the
# first operand.
GIVEN, ADD, SUBTRACT, MULTIPLY, MULTIPLE, SQUARE, RECIPROCAL, NEGATED, ROOT, SINE, COSINE, ANGLE = range(12)
LESS, EQUAL = range(2)


@compiled
def down(x):
    """A number below the exact value that was rounded to x."""
    return x if x == inf or x == -inf else x - (abs(x) * EPS + TINY)


@compiled
def up(x):
    """A number above the exact value that was rounded to x."""
    return x if x == inf or x == -inf else x + (abs(x) * EPS + TINY)


@compiled
def outward(lower, upper):
    """An interval from bounds that were rounded to nearest; everything where one of them is NaN."""
    if lower != lower or upper != upper:
        return EVERYTHING
    # a finite bound that overflowed is no bound any more
    a = down(lower) if lower < inf else 1e308
    return a, (up(upper) if upper > -inf else -1e308)


@compiled
def plus(a, b):
    """a + b."""
    if a == (0.0, 0.0):
        return b
    if b == (0.0, 0.0):
        return a
    return outward(a[0] + b[0], a[1] + b[1])


@compiled
def minus(a, b):
    """a - b."""
    if b == (0.0, 0.0):
        return a
    return outward(a[0] - b[1], a[1] - b[0])


@compiled
def negative(a):
    """-a."""
    return -a[1], -a[0]


@compiled
def product(x, y):
    """x y for two bounds, zero times infinity being zero."""
    p = x * y
    return p if p == p else 0.0


@compiled
def times(a, b):
    """a b."""
    if a == (0.0, 0.0) or b == (0.0, 0.0):
        return 0.0, 0.0
    p = product(a[0], b[0])
    q = product(a[0], b[1])
    r = product(a[1], b[0])
    s = product(a[1], b[1])
    return outward(min(min(p, q), min(r, s)), max(max(p, q), max(r, s)))


@compiled
def magnitude(a):
    """The largest absolute value in a."""
    return max(abs(a[0]), abs(a[1]))


@compiled
def contains_zero(a):
    """Whether zero is in a."""
    return a[0] <= 0.0 <= a[1]


@compiled
def square(a):
    """a^2."""
    lower = 0.0 if contains_zero(a) else min(abs(a[0]), abs(a[1]))
    upper = magnitude(a)
    found = outward(lower * lower, upper * upper)
    return max(found[0], 0.0), found[1]


@compiled
def reciprocal(a):
    """1 / a; everything where a contains zero."""
    if contains_zero(a):
        return EVERYTHING
    return outward(1.0 / a[1], 1.0 / a[0])


@compiled
def divide(a, b):
    """a / b; everything where b contains zero."""
    if contains_zero(b):
        return EVERYTHING
    if a == (0.0, 0.0):
        return a
    p = a[0] / b[0]
    q = a[0] / b[1]
    r = a[1] / b[0]
    s = a[1] / b[1]
    if not (p == p and q == q and r == r and s == s):
        return EVERYTHING
    return outward(min(min(p, q), min(r, s)), max(max(p, q), max(r, s)))


@compiled
def root(a):
    """The square root of the nonnegative part of a."""
    lower = sqrt(a[0]) if a[0] > 0.0 else 0.0
    upper = sqrt(a[1]) if a[1] > 0.0 else 0.0
    found = outward(lower, upper)
    return max(found[0], 0.0), found[1]


@compiled
def hull(a, b):
    """The smallest interval that contains a and b."""
    return min(a[0], b[0]), max(a[1], b[1])


@compiled
def both(a, b):
    """The intersection of a and b, which both contain the value; a where it is empty."""
    lower = max(a[0], b[0])
    upper = min(a[1], b[1])
    return (lower, upper) if lower <= upper else a


@compiled
def _series(x, x2, first):
    """The sum x - x^3/3! ... from term `first` 1, or 1 - x^2/2! ... from 0, for |x| <= 0.79. Signs alternate and terms
    decrease, so that the remainder is smaller than the first omitted term.
    """
    term = x if first == 1 else (1.0, 1.0)
    total = term
    n = first
    for _ in range(9):
        n += 2
        term = negative(divide(times(term, x2), (n * (n - 1.0), n * (n - 1.0))))
        total = plus(total, term)
    rest = magnitude(term)
    return plus(total, (-rest, rest))


@compiled
def cosine_sine_at(x):
    """Intervals that contain the cosine and the sine of a number x."""
    if not abs(x) < FARTHEST:
        return (-1.0, 1.0), (-1.0, 1.0)
    turns = floor(x / HALF_PI + 0.5)
    r = minus((x, x), times((turns, turns), (HALF_PI, HALF_PI_UP)))
    r2 = square(r)
    c = _series(r, r2, 0)
    s = _series(r, r2, 1)
    quarter = int(turns) % 4
    if quarter == 1:
        c, s = negative(s), c
    elif quarter == 2:
        c, s = negative(c), negative(s)
    elif quarter == 3:
        c, s = s, negative(c)
    return (max(c[0], -1.0), min(c[1], 1.0)), (max(s[0], -1.0), min(s[1], 1.0))


@compiled
def cosine_sine(a):
    """Intervals that contain the cosine and the sine of every number in a."""
    everywhere = (-1.0, 1.0)
    if not (abs(a[0]) < FARTHEST and abs(a[1]) < FARTHEST and a[1] - a[0] < 6.0):
        return everywhere, everywhere
    if a[0] == a[1]:
        return cosine_sine_at(a[0])
    c0, s0 = cosine_sine_at(a[0])
    c1, s1 = cosine_sine_at(a[1])
    c = hull(c0, c1)
    s = hull(s0, s1)
    # extremes are at whole quarter turns; one that may or may not be inside is taken to be
    slack = 1e-9
    first = floor((a[0] - slack) / HALF_PI)
    last = floor((a[1] + slack) / HALF_PI)
    k = first + 1.0
    while k <= last:
        quarter = int(k) % 4
        if quarter == 0:
            c = (c[0], 1.0)
        elif quarter == 1:
            s = (s[0], 1.0)
        elif quarter == 2:
            c = (-1.0, c[1])
        else:
            s = (-1.0, s[1])
        k += 1.0
    return c, s


@compiled
def angle_at(y, x):
    """An interval that contains the angle, -pi to pi, of the direction (x, y), two numbers, one not zero."""
    size = max(abs(x), abs(y))
    guess = atan2(y, x)
    c, s = cosine_sine_at(guess)
    # the angle between the guess and the direction, by both in coordinates that turn with the guess
    u = (x / size, x / size) if size == 1.0 else divide((x, x), (size, size))
    v = (y / size, y / size) if size == 1.0 else divide((y, y), (size, size))
    across = minus(times(v, c), times(u, s))
    along = plus(times(u, c), times(v, s))
    if not along[0] > 0.0:
        return -PI_UP, PI_UP
    missing = divide(across, along)  # an arc tangent is nearer to zero than its tangent
    return plus((guess, guess), (min(missing[0], 0.0), max(missing[1], 0.0)))


@compiled
def angle(y, x):
    """Angles, from -pi to pi, of all directions (x, y); and whether they are all on one side of the cut at pi."""
    if contains_zero(y) and x[0] <= 0.0:
        return (-PI_UP, PI_UP), False
    # the extremes of the angle over a rectangle that does not contain the origin are at its corners
    found = angle_at(y[0], x[0])
    found = hull(found, angle_at(y[0], x[1]))
    found = hull(found, angle_at(y[1], x[0]))
    return hull(found, angle_at(y[1], x[1])), True


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
def write_values(J, i, value, centre):
    """Write the value and that at the centre into row i."""
    write(J, i, VALUE, value)
    write(J, i, CENTRE, centre)


@compiled
def narrow(J, i, k, m, reach):
    """Intersect value and rates of row i with their mean value forms; `reach` (k,) is half the box."""
    radius = 0.0
    for u in range(k):
        slope = magnitude(read(J, i, SLOPE + 2 * u))
        if slope > 0.0 and reach[u] > 0.0:
            radius = up(radius + up(slope * reach[u]))
    write(J, i, VALUE, both(read(J, i, VALUE), plus(read(J, i, CENTRE), (-radius, radius))))
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
    write_values(J, i, times(x, y), times(xc, yc))
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
            write(J, i, at, plus(times(slope, read(J, a, at)), times(bent, read(J, a, first + 2 * t))))


@compiled
def set_square(J, i, a, k, m):
    """Row i: a^2."""
    x, xc = read(J, a, VALUE), read(J, a, CENTRE)
    write_values(J, i, square(x), square(xc))
    follow(J, i, a, plus(x, x), plus(xc, xc), (2.0, 2.0), k, m)


@compiled
def set_reciprocal(J, i, a, k, m):
    """Row i: 1 / a."""
    r, rc = reciprocal(read(J, a, VALUE)), reciprocal(read(J, a, CENTRE))
    write_values(J, i, r, rc)
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
    write_values(J, i, r, rc)
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
        write_values(J, i, s, sc)
        follow(J, i, a, c, cc, negative(s), k, m)
    else:
        write_values(J, i, c, cc)
        follow(J, i, a, negative(s), negative(sc), negative(c), k, m)


@compiled
def set_angle(J, i, a, b, k, m):
    """Row i: the angle of the direction with sine a and cosine b, neither of unit length."""
    y, x = read(J, a, VALUE), read(J, b, VALUE)
    yc, xc = read(J, a, CENTRE), read(J, b, CENTRE)
    value, continuous = angle(y, x)
    centre, _ = angle(yc, xc)
    write_values(J, i, value, centre)
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
