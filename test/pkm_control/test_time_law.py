# SPDX-License-Identifier: Apache-2.0
"""Time laws: the known answers of one degree of freedom, and what smoothing promises."""

import math

import numpy as np
import pytest

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
