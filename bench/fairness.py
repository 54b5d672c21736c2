# SPDX-License-Identifier: Apache-2.0
"""Whether a measurement of loops had the computer that it needs: what others took of it, and whether it stood still."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

_STOOD_STILL = 2.0  # s without work between two looks, which come fifty times a second: somebody stopped the processes
_LOST = 10.0  # s of the same: nodes have lost each other since
_MUCH = 0.5  # processors that others took: beside them, what fails or is slow says nothing of the loops
_TICKS = os.sysconf("SC_CLK_TCK")  # a second
_PARENT, _SESSION, _TIMES = 1, 3, slice(11, 15)  # of /proc/PID/stat, behind the name: user, system, of ended children


class Fairness:
    """Looks on while something is measured.

    Args:
        session: whose processes, and what they started, are measured.
    """

    def __init__(self, session: int) -> None:
        self._session = session
        self._before = _taken(), self._ours(), time.monotonic()
        self._last = time.monotonic(), time.process_time()
        self.longest = 0.0  # s, between two looks, less what was worked here meanwhile

    def look(self) -> None:
        """Note that time goes on; to be called often."""
        now, worked = time.monotonic(), time.process_time()
        self.longest = max(self.longest, now - self._last[0] - (worked - self._last[1]))
        self._last = now, worked

    @property
    def lost(self) -> bool:
        """Whether processes were stopped for so long that there is nothing to be waited for any more."""
        return self.longest > _LOST

    def others(self) -> float:
        """How many processors others have had, on average since the beginning."""
        taken, ours, began = self._before
        return max(0.0, (_taken() - taken - (self._ours() - ours)) / (time.monotonic() - began))

    def problem(self, well: bool) -> str:
        """Why the measurement says nothing.

        Args:
            well: whether what was measured went well: then it does, however much others took.

        Returns:
            The reason; empty where it says something.
        """
        if self.longest > _STOOD_STILL:
            return f"the computer stood still for {self.longest:.1f} s"
        others = self.others()
        if not well and others > _MUCH:
            return f"others took {others:.1f} of {os.cpu_count()} processors"
        return ""

    def _ours(self) -> float:
        """Processor time of the session and of this process [s]."""
        return math.fsum((time.process_time(), *_times_of(self._session)))


def _taken() -> float:
    """Processor time that was not idle since the computer was started [s]."""
    user, nice, system, _, _, irq, softirq, stolen, *_ = (
        Path("/proc/stat").read_text("ascii").split("\n")[0].split()[1:]
    )
    return sum(map(int, (user, nice, system, irq, softirq, stolen))) / _TICKS


def _times_of(session: int) -> list[float]:
    """Processor time [s], ended children included, of a session's processes and of all that they started."""
    found: dict[int, tuple[int, int, float]] = {}  # parent, session, time by process
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text("utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        taken = sum(map(int, words[_TIMES])) / _TICKS
        found[int(path.parent.name)] = int(words[_PARENT]), int(words[_SESSION]), taken
    ours: set[int] = set()
    new = {process for process, (_, its, _) in found.items() if its == session}
    while new:
        ours |= new
        new = {process for process, (parent, _, _) in found.items() if parent in new} - ours
    return [found[process][2] for process in ours]
