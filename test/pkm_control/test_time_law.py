# SPDX-License-Identifier: Apache-2.0
"""Time laws: the known answers of one degree of freedom, what smoothing promises, and toppra, an independent judge."""

import math

import numpy as np
import pytest
from toppra.algorithm import TOPPRA
from toppra.constraint import LinearConstraint
from toppra.interpolator import SplineInterpolator

from pkm_control.motion.time_law import PathBounds, SmoothTimeLaw, fastest

GRID = np.linspace(0.0, 0.4, 401)
ONES = np.ones((401, 1))


def law(acceleration: float, speed: float, window: float) -> tuple[SmoothTimeLaw, np.ndarray]:
    bounds = PathBounds(GRID, ONES, 0 * ONES, 0 * ONES, acceleration * ONES, np.full(401, speed**2))
    speeds = fastest(bounds)
    assert speeds is not None
    return SmoothTimeLaw(GRID, speeds, window), speeds


def test_triangle_and_trapezium_have_the_durations_of_the_textbook() -> None:
    # quickest run over d with |a| <= A: 2 sqrt(d / A); with |v| <= V as well: d / V + V / A
    assert law(40.0, 100.0, 0.01)[0].duration - 0.01 == pytest.approx(2 * math.sqrt(0.4 / 40.0), rel=1e-3)
    assert law(40.0, 2.0, 0.01)[0].duration - 0.01 == pytest.approx(0.4 / 2.0 + 2.0 / 40.0, rel=1e-3)


def test_a_bound_on_what_grows_with_speed_is_kept_with_equality_somewhere() -> None:
    b = (200.0 * np.exp(-(((GRID - 0.2) / 0.03) ** 2)))[:, None]  # as a tight corner in the middle
    bounds = PathBounds(GRID, ONES, b, 0 * ONES, 50.0 * ONES, np.full(401, 100.0))
    speeds = fastest(bounds)
    assert speeds is not None
    along = np.diff(speeds**2) / (2 * np.diff(GRID))
    total = along + b[:-1, 0] * speeds[:-1] ** 2
    assert np.abs(total).max() <= 50.0 * (1 + 1e-6)
    # time-optimal: at every place a bound is reached (bang-bang), but where the speed is at its highest possible
    assert np.mean(np.abs(total) > 0.99 * 50.0) > 0.9


def test_what_cannot_be_held_has_no_law() -> None:
    assert fastest(PathBounds(GRID, ONES, 0 * ONES, 60.0 * ONES, 50.0 * ONES, np.full(401, 4.0))) is None


def test_the_smoothed_law_goes_from_rest_to_rest_within_the_same_bounds() -> None:
    smooth, _ = law(40.0, 2.0, 0.02)
    t = np.linspace(0, smooth.duration, 20001)
    s, v, a = smooth.sample(t)
    assert (s[0], s[-1]) == (0.0, pytest.approx(0.4, abs=1e-12))
    assert max(abs(v[0]), abs(v[-1]), abs(a[0]), abs(a[-1])) < 1e-9
    assert v.max() <= 2.0 * (1 + 1e-9)
    assert np.abs(a).max() <= 40.0 * (1 + 1e-9)
    h = t[1]
    np.testing.assert_allclose(np.gradient(s, h)[1:-1], v[1:-1], atol=1e-5)
    # the jerk that the window allows: one switch of acceleration from +40 to -40 spread over the window, never more
    assert np.abs(np.diff(a)).max() / h <= 2 * 40.0 / 0.02 * (1 + 1e-6)


class Tabulated(LinearConstraint):
    """Bounds as toppra takes them."""

    def __init__(self, bounds: PathBounds) -> None:
        super().__init__()
        self.bounds = bounds

    def compute_constraint_params(self, path: object, gridpoints: np.ndarray, *args: object) -> tuple:
        bounds, rows = self.bounds, self.bounds.a.shape[1]
        both = np.tile(np.vstack([np.eye(rows), -np.eye(rows)]), (len(gridpoints), 1, 1))
        square = np.column_stack([np.zeros(len(gridpoints)), bounds.square_max])
        return bounds.a, bounds.b, bounds.c, both, np.hstack([bounds.g, bounds.g]), None, square


def by_toppra(bounds: PathBounds) -> np.ndarray | None:
    ends = bounds.grid[[0, -1]]
    line = SplineInterpolator(ends, ends[:, None])  # tabulated bounds ask nothing of the path
    _, speeds, _ = TOPPRA([Tabulated(bounds)], line, bounds.grid, "seidel").compute_parameterization(0.0, 0.0)
    return speeds if speeds is not None and np.all(np.isfinite(speeds)) else None


def random_bounds(seed: int, heaviness: float) -> PathBounds:
    """Rows of a smooth machine; `heaviness` is the largest weight against what holds it."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(50, 600)), int(rng.integers(1, 30))
    grid = np.linspace(0.0, rng.uniform(0.1, 3.0), n)

    def waves() -> np.ndarray:
        turns, phases, sizes = rng.uniform(0.1, 3.0, m), rng.uniform(0.0, 6.0, m), rng.uniform(0.0, 1.0, m)
        return sizes * np.sin(6.28 * turns * grid[:, None] / grid[-1] + phases)

    g = np.tile(rng.uniform(1.0, 5.0, m), (n, 1))
    a, b, c = 0.3 + 2.0 * waves(), 5.0 * waves(), heaviness * waves() * g
    return PathBounds(grid, a, b, c, g, np.full(n, rng.choice([1.0, 20.0, 1e6])))


@pytest.mark.parametrize("seed", range(20))
def test_toppra_finds_the_same_run(seed: int) -> None:
    bounds = random_bounds(seed, 0.6)
    ours, theirs = fastest(bounds), by_toppra(bounds)
    assert ours is not None
    assert theirs is not None
    np.testing.assert_allclose(ours, theirs, atol=1e-4 * theirs.max())  # toppra stays off the borders by about 1e-5
    u, x = np.diff(ours**2) / (2.0 * np.diff(bounds.grid)), ours[:-1, None] ** 2
    used = np.abs(bounds.a[:-1] * u[:, None] + bounds.b[:-1] * x + bounds.c[:-1]) / bounds.g[:-1]
    assert used.max() <= 1.0 + 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_a_place_that_cannot_be_passed_leaves_no_run(seed: int) -> None:
    bounds = random_bounds(seed, 0.6)
    middle = len(bounds.grid) // 2
    assert fastest(bounds) is not None
    for share, passes in ((0.99, True), (1.01, False)):  # of what can be held, whatever s' and s'' are
        bounds.a[middle] = bounds.b[middle] = 0.0
        bounds.c[middle] = share * bounds.g[middle]
        assert (fastest(bounds) is not None) == passes


def test_bounds_that_are_no_numbers_have_no_law() -> None:
    bounds = random_bounds(0, 0.5)
    bounds.b[7, 0] = np.nan
    assert fastest(bounds) is None
