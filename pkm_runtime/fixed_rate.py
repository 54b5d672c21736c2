# SPDX-License-Identifier: Apache-2.0
"""A loop at a fixed rate on the monotonic clock, which counts the deadlines that it misses."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OVERLOADED = 20  # periods in a row that took too long: this computer does not keep the rate
DEVIATION_EDGES = 1e-6 * 10.0 ** (np.arange(81) / 20.0)  # s, 1 us to 10 ms: deviations are counted between them
AIR = 0.6  # of the time that work takes: what an overloaded loop then leaves to others


_PR_SET_TIMERSLACK = 29  # of prctl(2)
_SLACK = 1  # ns
_SPINS = (100e-6, 25e-6)  # s, before a deadline: where Linux wakes a thread up to 50 us late, and where in time


def sleep_precisely() -> bool:
    """Wake the calling thread when its sleep ends, not up to 50 us later as Linux does to save power; false: cannot."""
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, _SLACK, 0, 0, 0) == 0)
    except (AttributeError, OSError):  # not Linux
        return False


@dataclass(frozen=True)
class LoopStatistics:
    """How a loop ran: `rate` [Hz] is the mean; deviations [s] are of the periods from the wanted one.
    `missed` counts deadlines without a wake-up within half a period: a pause of three periods misses two.
    """

    wanted_rate: float
    rate: float
    deviation_p50: float
    deviation_p99: float
    deviation_max: float
    wakes: int
    missed: int

    @property
    def deadlines(self) -> int:
        """Number of deadlines: a missed one may have been met late, or not at all."""
        if self.wakes < 2 or not self.rate > 0.0:
            return max(self.wakes, self.missed)
        return max(self.wakes, self.missed, round((self.wakes - 1) / self.rate * self.wanted_rate) + 1)


def statistics(stamps: Array, wanted_rate: float) -> LoopStatistics:
    """Statistics of wake-up times (n,) [s] of a loop at `wanted_rate` [Hz]; zeros for fewer than two wake-ups."""
    periods = np.diff(np.asarray(stamps, dtype=np.float64))
    if periods.size == 0:
        return LoopStatistics(wanted_rate, 0.0, 0.0, 0.0, 0.0, len(stamps), 0)
    deviation = np.abs(periods - 1.0 / wanted_rate)
    missed = int(np.sum(np.maximum(np.round(periods * wanted_rate).astype(np.int64) - 1, 0)))
    return LoopStatistics(
        wanted_rate=wanted_rate,
        rate=float(periods.size / periods.sum()),
        deviation_p50=float(np.median(deviation)),
        deviation_p99=float(np.quantile(deviation, 0.99)),
        deviation_max=float(deviation.max()),
        wakes=len(stamps),
        missed=missed,
    )


def deviation_counts(stamps: Array, wanted_rate: float) -> NDArray[np.int64]:
    """Number of periods (80,) by their deviation between `DEVIATION_EDGES`; the ends take the rest."""
    deviation = np.abs(np.diff(stamps) - 1.0 / wanted_rate)
    return np.asarray(np.histogram(np.clip(deviation, DEVIATION_EDGES[0], DEVIATION_EDGES[-1]), DEVIATION_EDGES)[0])


def deviation_quantile(counts: NDArray[np.int64], share: float) -> float:
    """The deviation [s] below which a share of counted periods lies, rounded up to a step (12 %)."""
    below = np.cumsum(counts)
    return float(DEVIATION_EDGES[1 + int(np.searchsorted(below, share * below[-1]))])


class FixedRateLoop:
    """Wakes at start + k / rate [Hz]. Sleeps until shortly before the deadline, then spins, so that it wakes in time.

    Deadlines that have passed are not caught up by a burst: the loop wakes once, for the last of them, and goes on with
    the next one in the future. `missed` counts those that were skipped or met more than half a period late. Where the
    work repeatedly takes longer than a period, the loop pauses between: with a real-time priority it would leave
    nothing to the rest of the system. Call `restart` in the thread that waits.
    """

    def __init__(self, rate: float) -> None:
        if not rate > 0.0:
            raise ValueError(f"rate is {rate} Hz; give a number greater than zero")
        self.rate = rate
        self.period = 1.0 / rate
        self.missed = 0
        self.last_wake = time.monotonic()  # s, on the monotonic clock
        self._spin = _SPINS[0]  # s
        self._start = time.monotonic()
        self._tick = 0
        self._late_in_a_row = 0

    def restart(self) -> None:
        """Set the first deadline one period from now and forget what was missed."""
        self._spin = _SPINS[sleep_precisely()]
        self._start = time.monotonic()
        self._tick = 0
        self.missed = 0

    @property
    def left(self) -> float:
        """Time until the next deadline [s]; negative where it has passed."""
        return self._start + (self._tick + 1) * self.period - time.monotonic()

    def wait(self) -> int:
        """Wait for the next deadline; the number of periods since the last wake-up: 1 when all is well."""
        before = self._tick
        now = time.monotonic()
        late = int((now - self._start) * self.rate)  # the last deadline that has passed
        if late > self._tick:
            self._late_in_a_row += 1
            if self._late_in_a_row > OVERLOADED:
                time.sleep(AIR * min(now - self.last_wake, 4.0 * self.period))
                late = int((time.monotonic() - self._start) * self.rate)
            self._tick = late  # wake at once, for the last of the deadlines that passed
        else:
            self._late_in_a_row = 0
            self._tick += 1
            deadline = self._start + self._tick * self.period
            pause = deadline - now - self._spin
            if pause > 0.0:
                time.sleep(pause)
            while time.monotonic() < deadline:
                pass
        self.last_wake = time.monotonic()
        self._tick = max(self._tick, int((self.last_wake - self._start) * self.rate))  # woken too late, for the last
        periods = self._tick - before
        lateness = self.last_wake - (self._start + self._tick * self.period)
        self.missed += periods - 1 + (lateness > 0.5 * self.period)
        return periods
