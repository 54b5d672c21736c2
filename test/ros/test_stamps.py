# SPDX-License-Identifier: Apache-2.0
"""Stamps follow a clock that steps or runs on through a stall; ages do not care what it says."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import pytest

from pkm_description.ros.stamps import Age, FollowingStamps

HOUR = 3600.0
PERIOD = 0.001


class Clock:
    """A clock that the test sets."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return round(self.seconds * 1e9)


def offsets(stamps: FollowingStamps, clock: Clock, begin: float, periods: int) -> list[float]:
    """How far stamps are from the clock in each of some periods, in which both go on alike."""
    found = []
    for k in range(periods):
        clock.seconds += PERIOD
        found.append(1e-9 * stamps.of(begin + k * PERIOD) - clock.seconds)
    return found


@pytest.mark.parametrize("began", [0.0, 1.8e9])
def test_stamps_are_those_of_a_steady_clock(began: float) -> None:
    clock = Clock(began)
    stamps = FollowingStamps(clock)
    assert max(map(abs, offsets(stamps, clock, 0.0, 1000))) < 1e-6
    assert stamps.steps == 0


@pytest.mark.parametrize("step", [HOUR, -HOUR, 1.8e9, -1.7e9])
def test_a_clock_that_is_set_is_followed_at_once(step: float) -> None:
    clock = Clock(1.8e9)
    stamps = FollowingStamps(clock)
    offsets(stamps, clock, 0.0, 100)
    clock.seconds += step
    assert max(map(abs, offsets(stamps, clock, 0.1, 100))) < 1e-6
    assert stamps.steps == 1


@pytest.mark.parametrize("stall", [0.3, -0.3])
def test_a_stall_is_made_up_gently_and_stamps_do_not_go_back(stall: float) -> None:
    """The loop's time stood while the clock went on, or the other way round."""
    clock = Clock(1.8e9)
    stamps = FollowingStamps(clock)
    offsets(stamps, clock, 0.0, 100)
    clock.seconds += stall
    last, at = stamps.of(0.1), 0.1
    for _ in range(4000):
        clock.seconds += PERIOD
        at += PERIOD
        new = stamps.of(at)
        assert 0.85e6 < new - last < 1.15e6  # ns, of a period of a millisecond
        last = new
    assert 1e-9 * last == pytest.approx(clock.seconds, abs=1e-4)


def node(simulated: bool, clock: Clock) -> Any:
    now = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=clock()))
    return SimpleNamespace(
        has_parameter=lambda name: True,
        get_parameter=lambda name: SimpleNamespace(value=simulated),
        get_clock=lambda: now,
    )


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_the_age_of_a_message_is_that_of_no_clock_that_is_set(step: float) -> None:
    clock = Clock(1.8e9)
    age = Age(node(False, clock))
    assert age.seconds == math.inf
    age.note()
    clock.seconds += step
    assert 0.0 <= age.seconds < 10.0
    time.sleep(0.02)
    assert age.seconds > 0.01


def test_the_age_in_simulated_time_stands_with_it() -> None:
    clock = Clock(5.0)
    age = Age(node(True, clock))
    age.note()
    time.sleep(0.02)
    assert age.seconds == 0.0
    clock.seconds = 5.5
    assert age.seconds == pytest.approx(0.5)
    clock.seconds = 1.0  # played again
    assert age.seconds == math.inf
