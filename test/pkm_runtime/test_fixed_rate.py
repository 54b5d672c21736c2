# SPDX-License-Identifier: Apache-2.0
"""The fixed-rate loop, and that it tells what it missed."""

import time

import numpy as np
import pytest

from pkm_runtime.fixed_rate import FixedRateLoop, statistics


def test_statistics_of_known_stamps() -> None:
    stamps = np.arange(1001) * 1e-3
    stamps[500:] += 0.003  # one pause of four periods: three deadlines without a wake-up
    found = statistics(stamps, 1000.0)
    assert found.missed == 3
    assert found.wakes == 1001
    assert found.deviation_max == pytest.approx(0.003)
    assert found.deviation_p50 == pytest.approx(0.0, abs=1e-9)
    assert found.deviation_p99 == pytest.approx(0.0, abs=1e-9)
    assert found.rate == pytest.approx(1000 / 1.003)


def test_nothing_to_count() -> None:
    assert statistics(np.empty(0), 100.0).wakes == 0
    assert statistics(np.array([1.0]), 100.0).missed == 0


def test_it_keeps_the_rate_on_average_and_does_not_drift() -> None:
    loop = FixedRateLoop(200.0)
    loop.restart()
    start = time.monotonic()
    periods = sum(loop.wait() for _ in range(60))
    # absolute deadlines: whatever single wake-ups do, the sum follows the clock
    assert time.monotonic() - start == pytest.approx(periods / 200.0, abs=0.05)
    assert periods >= 60


def test_a_long_pause_is_counted_and_not_caught_up_by_a_burst() -> None:
    loop = FixedRateLoop(100.0)
    loop.restart()
    loop.wait()
    time.sleep(0.055)
    late = loop.wait()
    assert late >= 5
    assert loop.missed >= late - 1
    before = time.monotonic()
    loop.wait()
    loop.wait()
    assert time.monotonic() - before > 0.009  # at least one whole period, so no burst


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_that_makes_no_sense_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        FixedRateLoop(rate)


class Clock:
    """Time that passes where it is told to, and at each look."""

    def __init__(self, late: list[float]) -> None:
        self.now = 100.0  # s
        self._late = late  # s: by which each sleep ends too late

    def monotonic(self) -> float:
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + (self._late.pop() if self._late else 0.0)


def test_every_deadline_without_a_wake_up_within_half_a_period_counts_as_missed(monkeypatch) -> None:
    """Counted anew from the wake-ups alone, whether the work is long, or the computer wakes the loop late."""
    random, period = np.random.default_rng(7), 1e-3
    late = np.where(random.random(4000) < 0.1, random.exponential(1.5 * period, 4000), 1e-5)
    clock = Clock(list(late))
    monkeypatch.setattr("pkm_runtime.fixed_rate.time", clock)
    loop = FixedRateLoop(1.0 / period)
    loop.restart()
    began, wakes = clock.now, []
    for _ in range(3000):
        loop.wait()
        wakes.append(loop.last_wake)
        clock.now += random.exponential(1.2 * period) if random.random() < 0.1 else 0.2 * period
    deadlines = began + period * np.arange(1, int((wakes[-1] - began) / period) + 1)
    next_wake = np.array(wakes)[np.searchsorted(wakes, deadlines - 1e-5)]
    found = int((next_wake - deadlines > 0.5 * period).sum())
    assert loop.missed == pytest.approx(found, abs=2)  # of those on the edge
    assert found > 300
    assert statistics(np.array(wakes), 1.0 / period).missed == pytest.approx(found, rel=0.25)
