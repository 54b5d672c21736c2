# SPDX-License-Identifier: Apache-2.0
"""The quickest run of a path from rest to rest: its speeds, and laws averaged over a window for a straight line.

`reachable_speeds`: at each grid point the unknowns are u = s'' and x = s'^2, and every bound is a half-plane A u + B x
<= D. Between grid points u is constant, so x goes on to x + 2 u ds. From the end backward, the speeds from which the
end can be reached within the bounds are an interval at each point; from the start forward, the largest u that leads
into the next interval is optimal (Pham and Pham, "A new approach to time-optimal path parameterization based on
reachability analysis", IEEE T-RO 2018). There the intervals are found by linear programming; here u is eliminated,
which is exact and has no starting point to choose: each bound on u from above, with each from below, leaves one on x
alone (Fourier and Motzkin).

`quickest_average`: on a straight line from rest to rest platform and actuators move in proportion to s' and s'', and an
effort is a s'' + b s'^2 + c with friction. A law that is slowed down by k has s'/k and s''/k^2, so each sample of it
bounds z = 1/k by the root of a quadratic, and nothing is searched. Arrays: `grid`, `speeds`, `knots`, `sums` (N,): path
parameter, s' and time of the law before it is averaged, and its integral over time; between knots its acceleration is
constant, outside it rests. `terms` (N, n_actuated, TERMS): of each actuator RATE [per s'], ALONG, ACROSS [per s'',
s'^2] of its acceleration; A, B, C, VISCOUS, DRY of its effort.
"""

from math import sqrt

from pkm_control.kernels.tracking import segment_at
from pkm_runtime.kernels.compiled import compiled

PARALLEL = 1e-14  # of what cancels: two half-planes whose borders are parallel
SLACK = 1e-12  # of a bound: at its border rounding must not decide


@compiled
def write_half_planes(a, b, c, g, i, planes):
    """Write |a u + b x + c| <= g of grid point i as half-planes (2 m, 3), two for each of m bounds."""
    for k in range(a.shape[1]):
        for side in range(2):
            sign = 1.0 - 2.0 * side
            row = 2 * k + side
            planes[row, 0] = sign * a[i, k]
            planes[row, 1] = sign * b[i, k]
            planes[row, 2] = g[i, k] - sign * c[i, k]


@compiled
def interval_of(planes, highest):
    """Least and largest x in [0, highest] for which some u lies within half-planes (n, 3); least > largest if none."""
    low, high = 0.0, highest
    n = planes.shape[0]
    for i in range(n):
        A, B, D = planes[i, 0], planes[i, 1], planes[i, 2]
        if A < 0.0:
            continue
        for j in range(n):
            if A == 0.0:
                if j > 0:
                    break
                slope, bound, size, terms = B, D, abs(B), abs(D)
            else:
                a, b, d = planes[j, 0], planes[j, 1], planes[j, 2]
                if a >= 0.0:
                    continue
                slope, bound = A * b - a * B, A * d - a * D
                size, terms = abs(A * b) + abs(a * B), abs(A * d) + abs(a * D)
            if abs(slope) <= PARALLEL * size:
                if bound < -SLACK * terms:
                    return 1.0, 0.0
            elif slope > 0.0:
                high = min(high, bound / slope)
            else:
                low = max(low, bound / slope)
    return low, high


@compiled
def largest_step(planes, x):
    """Largest u at x within the half-planes (n, 3)."""
    u = float("inf")
    for i in range(planes.shape[0]):
        A, D = planes[i, 0], planes[i, 2]
        if A > 0.0:
            u = min(u, (D + SLACK * abs(D) - planes[i, 1] * x) / A)
    return u


@compiled
def reachable_speeds(grid, a, b, c, g, square_max, planes, sets, squares):
    """Write the squared speeds (N,) of the quickest run; False where no run from rest to rest keeps the bounds.

    Bounds: |a u + b x + c| <= g, rows (N, m), and x <= square_max (N,), at the parameters grid (N,). Scratch: `planes`
    (2 m + 2, 3), and `sets` (N, 2), the intervals from which the end can be reached.
    """
    n = grid.shape[0]
    extra = 2 * a.shape[1]
    sets[n - 1, 0] = sets[n - 1, 1] = 0.0
    for i in range(n - 2, -1, -1):
        step = 2.0 * (grid[i + 1] - grid[i])
        write_half_planes(a, b, c, g, i, planes)
        planes[extra, 0], planes[extra, 1], planes[extra, 2] = step, 1.0, sets[i + 1, 1]
        planes[extra + 1, 0], planes[extra + 1, 1], planes[extra + 1, 2] = -step, -1.0, -sets[i + 1, 0]
        low, high = interval_of(planes, square_max[i])
        if not low <= high:
            return False
        sets[i, 0], sets[i, 1] = low, high
    if sets[0, 0] > 0.0:
        return False
    squares[0] = 0.0
    for i in range(n - 1):
        step = 2.0 * (grid[i + 1] - grid[i])
        write_half_planes(a, b, c, g, i, planes[:extra])
        reached = squares[i] + step * largest_step(planes[:extra], squares[i])
        squares[i + 1] = min(max(reached, sets[i + 1, 0]), sets[i + 1, 1])
    return True


TERMS = 8
RATE, ALONG, ACROSS, A, B, C, VISCOUS, DRY = range(TERMS)
PLATFORM = 6  # bounds on s', s'' and s''' by linear motion, then by angular motion
PER_ACTUATOR = 3  # bounds on velocity, acceleration and effort
SLOWEST = 25.0  # a law that must be slowed down by more is none for this line


@compiled
def law_before(grid, speeds, knots, sums, t):
    """Integral of s - grid[0] up to a time t [s], s - grid[0] and s' then, of the law before it is averaged."""
    last = grid.shape[0] - 1
    if t <= 0.0:
        return 0.0, 0.0, 0.0
    if t >= knots[last]:
        reached = grid[last] - grid[0]
        return sums[last] + reached * (t - knots[last]), reached, 0.0
    j = segment_at(knots, t)
    h, v = t - knots[j], speeds[j]
    a = (speeds[j + 1] - v) / (knots[j + 1] - knots[j])
    s = grid[j] - grid[0]
    return sums[j] + h * (s + h * (0.5 * v + h * a / 6.0)), s + h * (v + 0.5 * h * a), v + h * a


@compiled
def averaged(grid, speeds, knots, sums, window, t):
    """s, s' and s'' at a time t [s] in [0, knots[-1] + window] of the law averaged over a window [s]."""
    sum_late, s_late, v_late = law_before(grid, speeds, knots, sums, t)
    sum_early, s_early, v_early = law_before(grid, speeds, knots, sums, t - window)
    s = min(max(grid[0] + (sum_late - sum_early) / window, grid[0]), grid[grid.shape[0] - 1])
    return s, (s_late - s_early) / window, (v_late - v_early) / window


@compiled
def write_averaged(grid, speeds, knots, sums, window, times, out):
    """s, s' and s'' of the averaged law at times (n,) [s] into `out` (n, 3)."""
    for i in range(times.shape[0]):
        out[i, 0], out[i, 1], out[i, 2] = averaged(grid, speeds, knots, sums, window, times[i])


@compiled
def between(terms, j, share, actuator, term):
    """A term of an actuator, linear between grid points j and j + 1."""
    return (1.0 - share) * terms[j, actuator, term] + share * terms[j + 1, actuator, term]


@compiled
def least_root(a, v, c, z):
    """Largest y up to z such that a x^2 + v x + c <= 0 for all x in [0, y]; negative where c > 0."""
    if c > 0.0:
        return -1.0
    if (a * z + v) * z + c <= 0.0:
        return z
    return 2.0 * -c / (v + sqrt(v * v - 4.0 * a * c))


@compiled
def motion_needs(law, step, terms, platform, bounds):
    """Factor by which samples (n, 5) of a law, `step` [s] apart, must slow down for bounds on motion, and which bound.
    Bounds are numbered: those of the platform, then PER_ACTUATOR of each actuator. The factor may be less than 1.
    """
    most, which = 0.0, -1
    speed, change, jerk = 0.0, 0.0, 0.0
    for i in range(law.shape[0]):
        speed, change = max(speed, law[i, 1]), max(change, abs(law[i, 2]))
        if i > 0:
            jerk = max(jerk, abs(law[i, 2] - law[i - 1, 2]) / step)
    for k in range(2):
        for order, value in ((1, speed), (2, change), (3, jerk)):
            needed = (value / platform[3 * k + order - 1]) ** (1.0 / order)
            if needed > most:
                most, which = needed, 3 * k + order - 1
    for k in range(terms.shape[1]):
        velocity, acceleration = 0.0, 0.0
        for i in range(law.shape[0]):
            j, share = int(law[i, 3]), law[i, 4]
            velocity = max(velocity, abs(between(terms, j, share, k, RATE) * law[i, 1]))
            along, across = between(terms, j, share, k, ALONG), between(terms, j, share, k, ACROSS)
            acceleration = max(acceleration, abs(along * law[i, 2] + across * law[i, 1] ** 2))
        for order, value in ((1, velocity), (2, acceleration)):
            needed = (value / bounds[k, order - 1]) ** (1.0 / order)
            if needed > most:
                most, which = needed, PLATFORM + PER_ACTUATOR * k + order - 1
    return most, which


@compiled
def effort_room(law, terms, bounds, z):
    """Largest factor up to z for s' (its square for s'') that efforts allow, which bound, and at which sample. Negative
    where not even the line's weight and dry friction are within the bounds.
    """
    which, where = -1, 0
    before = 2.0 * z
    while before > z > 0.0:  # a sample that was allowed may not be at a lower rate
        before = z
        for i in range(law.shape[0]):
            j, share, v, u = int(law[i, 3]), law[i, 4], law[i, 1], law[i, 2]
            for k in range(terms.shape[1]):
                if bounds[k, 2] == float("inf"):
                    continue
                square = between(terms, j, share, k, A) * u + between(terms, j, share, k, B) * v * v
                linear = between(terms, j, share, k, VISCOUS) * v
                rest = between(terms, j, share, k, C) + (between(terms, j, share, k, DRY) if v > 0.0 else 0.0)
                y = min(
                    least_root(square, linear, rest - bounds[k, 2], z),
                    least_root(-square, -linear, -rest - bounds[k, 2], z),
                )
                if y < z:
                    z, which, where = y, PLATFORM + PER_ACTUATOR * k + 2, i
    return z, which, where


@compiled
def quickest_average(grid, speeds, knots, sums, windows, samples, terms, platform, bounds, law):
    """The window [s] that makes the quickest law within the bounds, its slow-down k >= 1, the bound and when it binds.

    `samples`: their least and largest number, and the time [s] between them in between. `platform` (PLATFORM,):
    bounds on the derivatives of s. `bounds` (n_actuated, PER_ACTUATOR). Scratch: `law` (largest number, 5).
    Returns: k = 0 where there is none; bound -1 where the law itself is the quickest.
    """
    best, found, stretch, bound, when = float("inf"), 0.0, 0.0, -1, 0.0
    last = grid.shape[0] - 1
    for w in range(windows.shape[0]):
        window = windows[w]
        duration = knots[last] + window
        n = int(min(max(samples[0], duration / samples[2]), samples[1]))
        step = duration / (n - 1)
        for i in range(n):
            law[i, 0], law[i, 1], law[i, 2] = averaged(grid, speeds, knots, sums, window, min(i * step, duration))
            j = segment_at(grid, law[i, 0])
            law[i, 3], law[i, 4] = j, (law[i, 0] - grid[j]) / (grid[j + 1] - grid[j])
        needed, which = motion_needs(law[:n], step, terms, platform, bounds)
        if max(needed, 1.0) * duration >= best:
            continue
        z, binding, where = effort_room(law[:n], terms, bounds, 1.0 / max(needed, 1.0))
        if z * SLOWEST < 1.0 or duration >= best * z:
            continue
        best, found, stretch, when = duration / z, window, 1.0 / z, where * step
        bound = binding if binding >= 0 else which if needed >= 0.999 else -1
    return found, stretch, bound, when
