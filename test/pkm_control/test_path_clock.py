# SPDX-License-Identifier: Apache-2.0
"""The clock of a motion: rates, their changes, and the reference at them."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.motion.path_clock import Braking, PathClock
from pkm_control.motion.point_trajectory import PointTrajectory


@pytest.mark.parametrize("period", [1e-3, 4e-3])
def test_the_rate_changes_smoothly_and_gets_there(period: float) -> None:
    clock = PathClock(braking=Braking.steady(2.0))
    rates, slopes, ends = [], [], []
    for wanted, seconds in ((0.0, 0.9), (0.7, 0.1), (0.2, 0.9), (1.0, 0.9)):  # 0.7 is given up on the way
        clock.wanted = wanted
        for _ in range(round(seconds / period)):
            clock.advance(period)
            rates.append(clock.rate)
            slopes.append(clock.slope)
        ends.append(clock.rate)
    assert [ends[0], *ends[2:]] == [0.0, 0.2, 1.0]
    assert 0.0 <= min(rates) <= max(rates) <= 1.0
    assert np.abs(slopes).max() <= 2.0 + 1e-9
    assert np.abs(np.diff(slopes)).max() <= 2.0 * 20.0 * period + 1e-9  # from nothing to all in a tenth of a second


def test_time_passes_at_the_rate_and_stands_still_at_none() -> None:
    clock = PathClock(rate=0.25)
    clock.advance(2.0)
    assert clock.time == pytest.approx(0.5)
    clock.wanted = 0.0
    clock.advance(1.0)
    stood = clock.time
    clock.advance(100.0)
    assert clock.at_rest
    assert clock.time == stood < 0.6


def test_what_begins_later_waits_at_full_pace() -> None:
    clock = PathClock(time=-1.0, rate=0.5)
    clock.advance(0.9)
    assert clock.time == pytest.approx(-0.1)
    clock.wanted = 0.0
    clock.advance(5.0)
    assert clock.at_rest
    assert clock.time == pytest.approx(-0.1)  # halted before it began
    clock.wanted = 0.5
    clock.advance(0.3)
    assert clock.time == pytest.approx(0.1)


def test_the_reference_is_the_derivative_of_the_pose_while_the_rate_changes() -> None:
    poses = np.zeros((3, 7))
    poses[:, 0], poses[:, 6] = (0.0, 0.3, 0.1), 1.0
    still = np.zeros((3, 6))
    trajectory = PointTrajectory(np.array([0.0, 0.5, 1.2]), poses, still, still)
    clock, h = PathClock(time=0.1), 1e-4
    clock.wanted = 0.2
    seen = []
    for _ in range(4000):
        clock.advance(h)
        seen.append(clock.reference(trajectory, 0.0))
    x = np.array([one.pose[0] for one in seen])
    v = np.array([one.twist[0] for one in seen])
    a = np.array([one.acceleration[0] for one in seen])
    assert np.abs(v).max() > 0.1
    np.testing.assert_allclose(np.gradient(x, h)[2:-2], v[2:-2], atol=2e-4)
    np.testing.assert_allclose(np.gradient(v, h)[2:-2], a[2:-2], atol=2e-2)
