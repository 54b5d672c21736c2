# SPDX-License-Identifier: Apache-2.0
"""Time-optimal run of a path from rest to rest: speeds that can still be stopped, backward, then the highest, forward.

At each grid point the unknowns are u = s'' and x = s'^2, and every bound is a half-plane A u + B x <= D. Between grid
points u is constant, so x goes on to x + 2 u ds. From the end backward, the speeds from which the end can be reached
within the bounds are an interval at each point; from the start forward, the largest u that leads into the next
interval is optimal (Pham and Pham, "A new approach to time-optimal path parameterization based on reachability
analysis", IEEE T-RO 2018). There the intervals are found by linear programming; here u is eliminated, which is exact
and has no starting point to choose: each bound on u from above, with each from below, leaves one on x alone (Fourier
and Motzkin).
"""

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
