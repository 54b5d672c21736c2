# SPDX-License-Identifier: Apache-2.0
"""Interval arithmetic that rounds outward: each result contains every value that its operands can lead to.

An interval is a pair of numbers, lower and upper bound, either of which may be infinite; no bound is NaN. The processor
rounds to nearest: what it computes for an exact x is off by at most 2^-53 |x|, or by half the smallest number where x
is smaller than any other. Bounds are moved outward by twice that and by `TINY`, which also moves the bound itself to
the next number at least. The compiler may fuse a product with a sum: one rounding less, and the same holds.

No function here trusts the mathematical library beyond its square root, which IEEE 754 defines to be correctly
rounded. Sine and cosine are sums of a few terms of their series with what is left out bounded; an arc tangent is the
library's guess, corrected by what its own sine and cosine say of it.
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
    b = up(upper) if upper > -inf else -1e308
    return a, b


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
    """The sum x - x^3/3! ... from term `first` 1, or 1 - x^2/2! ... from 0, for |x| <= 0.79.

    Signs alternate and terms decrease, so that the remainder is smaller than the first omitted term.
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
    off = (min(missing[0], 0.0), max(missing[1], 0.0))
    return plus((guess, guess), off)


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
