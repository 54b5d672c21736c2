# SPDX-License-Identifier: Apache-2.0
"""Jets of intervals: bounds of a quantity over a box of k parameters, and of its rates along m twists.

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
    absolute,
    angle,
    both,
    contains_zero,
    cosine_sine,
    divide,
    hull,
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
    for u in range(k):
        at = SLOPE + 2 * u
        write(J, i, at, plus(times(read(J, a, at), y), times(x, read(J, b, at))))
    first, there, bends = rate_at(k, m), centre_rate_at(k, m), bend_at(k, m)
    for t in range(m):
        at = first + 2 * t
        write(J, i, at, plus(times(read(J, a, at), y), times(x, read(J, b, at))))
        at = there + 2 * t
        write(J, i, at, plus(times(read(J, a, at), yc), times(xc, read(J, b, at))))
    for u in range(k):
        xu, yu = read(J, a, SLOPE + 2 * u), read(J, b, SLOPE + 2 * u)
        for t in range(m):
            at = bends + 2 * (u * m + t)
            straight = plus(times(read(J, a, at), y), times(x, read(J, b, at)))
            mixed = plus(times(xu, read(J, b, first + 2 * t)), times(read(J, a, first + 2 * t), yu))
            write(J, i, at, plus(straight, mixed))


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
    fyc, fxc = divide(xc, rc2), negative(divide(yc, rc2))
    fxx = times((-2.0, -2.0), times(fy, fx))  # 2 x y / r^4, and minus it for yy
    fyy = negative(fxx)
    fxy = minus(square(fx), square(fy))  # (y^2 - x^2) / r^4
    first, there, bends = rate_at(k, m), centre_rate_at(k, m), bend_at(k, m)
    for u in range(k):
        at = SLOPE + 2 * u
        write(J, i, at, plus(times(fy, read(J, a, at)), times(fx, read(J, b, at))))
    for t in range(m):
        at = first + 2 * t
        write(J, i, at, plus(times(fy, read(J, a, at)), times(fx, read(J, b, at))))
        at = there + 2 * t
        write(J, i, at, plus(times(fyc, read(J, a, at)), times(fxc, read(J, b, at))))
    for u in range(k):
        yu, xu = read(J, a, SLOPE + 2 * u), read(J, b, SLOPE + 2 * u)
        p = plus(times(fyy, yu), times(fxy, xu))
        q = plus(times(fxy, yu), times(fxx, xu))
        for t in range(m):
            at = bends + 2 * (u * m + t)
            straight = plus(times(fy, read(J, a, at)), times(fx, read(J, b, at)))
            bent = plus(times(p, read(J, a, first + 2 * t)), times(q, read(J, b, first + 2 * t)))
            write(J, i, at, plus(straight, bent))


@compiled
def copy_row(J, i, a, k, m):
    """Row i: a."""
    for at in range(width_of(k, m)):
        J[i, at] = J[a, at]


@compiled
def mix(J, i, a, b, k, m):
    """Derivatives of row i, which is a or b on different parts of the box; second ones are unbounded."""
    first, bends = rate_at(k, m), bend_at(k, m)
    for at in range(SLOPE, bends, 2):
        write(J, i, at, hull(read(J, a, at), read(J, b, at)))
    for at in range(bends, width_of(k, m), 2):
        write(J, i, at, EVERYTHING)
    for t in range(m):  # which of the two it is at the centre is not looked at, so that this is no mean value form
        write(J, i, first + 2 * t, hull(read(J, a, first + 2 * t), read(J, b, first + 2 * t)))


@compiled
def set_absolute(J, i, a, k, m):
    """Row i: |a|."""
    x = read(J, a, VALUE)
    if x[0] >= 0.0:
        copy_row(J, i, a, k, m)
    elif x[1] <= 0.0:
        set_negative(J, i, a, k, m)
    else:
        set_negative(J, i, a, k, m)
        mix(J, i, a, i, k, m)
        write(J, i, VALUE, absolute(x))
        write(J, i, CENTRE, absolute(read(J, a, CENTRE)))


@compiled
def set_larger(J, i, a, b, k, m):
    """Row i: the larger of a and b."""
    x, y = read(J, a, VALUE), read(J, b, VALUE)
    if x[0] >= y[1]:
        copy_row(J, i, a, k, m)
    elif y[0] >= x[1]:
        copy_row(J, i, b, k, m)
    else:
        mix(J, i, a, b, k, m)
        xc, yc = read(J, a, CENTRE), read(J, b, CENTRE)
        write(J, i, VALUE, (max(x[0], y[0]), max(x[1], y[1])))
        write(J, i, CENTRE, (max(xc[0], yc[0]), max(xc[1], yc[1])))


@compiled
def set_smaller(J, i, a, b, k, m):
    """Row i: the smaller of a and b."""
    x, y = read(J, a, VALUE), read(J, b, VALUE)
    if x[1] <= y[0]:
        copy_row(J, i, a, k, m)
    elif y[1] <= x[0]:
        copy_row(J, i, b, k, m)
    else:
        mix(J, i, a, b, k, m)
        xc, yc = read(J, a, CENTRE), read(J, b, CENTRE)
        write(J, i, VALUE, (min(x[0], y[0]), min(x[1], y[1])))
        write(J, i, CENTRE, (min(xc[0], yc[0]), min(xc[1], yc[1])))


@compiled
def set_selected(J, i, a, b, if_larger, otherwise, k, m):
    """Row i: `if_larger` where a > b, else `otherwise`; undecided it jumps, without any derivatives."""
    x, y = read(J, a, VALUE), read(J, b, VALUE)
    if x[0] > y[1]:
        copy_row(J, i, if_larger, k, m)
    elif x[1] <= y[0]:
        copy_row(J, i, otherwise, k, m)
    else:
        write(J, i, VALUE, hull(read(J, if_larger, VALUE), read(J, otherwise, VALUE)))
        write(J, i, CENTRE, hull(read(J, if_larger, CENTRE), read(J, otherwise, CENTRE)))
        unknown(J, i, k, m)
