# SPDX-License-Identifier: Apache-2.0
"""Timing that a sceptic can follow: one core, contenders in turn, medians of many repetitions.

What is counted is the processor time of this process, so that another one on the same core does not count; nobody here
waits for anything.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

REPETITIONS = 101
SPAN = 0.002  # s that one repetition of one contender takes


@dataclass(frozen=True)
class Timing:
    """Seconds per call: median, and the quartiles around it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{1e6 * self.median:.2f} µs"


def pin_to_one_core() -> int | None:
    """Keep this process on the core it is allowed to use last; returns its number, None where that is not possible."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def interleaved(*calls: Callable[[], object], repetitions: int = REPETITIONS, span: float = SPAN) -> list[Timing]:
    """Time calls without arguments side by side: each repetition runs every one of them in turn.

    What slows the machine down for a while slows down all of them. A repetition makes as many calls as fit in `span`.
    """
    counts = []
    for call in calls:
        call()
        n, taken = 1, 0.0
        while taken < 0.2 * span:
            start = process_time()
            for _ in range(n):
                call()
            taken = process_time() - start
            n *= 2
        counts.append(max(1, int(n / 2 * span / max(taken, 1e-9))))
    times: list[list[float]] = [[] for _ in calls]
    collecting = gc.isenabled()
    gc.disable()
    for _ in range(repetitions):
        for call, n, found in zip(calls, counts, times, strict=True):
            start = process_time()
            for _ in range(n):
                call()
            found.append((process_time() - start) / n)
    if collecting:
        gc.enable()
    return [Timing(statistics.median(t), *_quartiles(t)) for t in times]


def _quartiles(values: list[float]) -> tuple[float, float]:
    quarters = statistics.quantiles(values, n=4)
    return quarters[0], quarters[2]


def words(about: str | None) -> list[str]:
    """The words of the command line; `--help` prints what a bench is `about`, and ends it."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(about)
        raise SystemExit
    return sys.argv[1:]
