# SPDX-License-Identifier: Apache-2.0
"""The recording of a run: rows of control periods with their meaning."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_runtime.whole_files import whole
from pkm_viewer.report.rows import Rows, RowStore, Tally, width

_AT_ONCE = 128  # rows that are stored together
MOST_MARKS = 20_000  # of a run
ENDING_OTHERS = "ending other programs"  # of `Run.remedies`


@dataclass(frozen=True)
class Run:
    """A planned run: a motion, `cycles` times, each of `cycle_duration` [s], at `rate` [Hz].

    `notes` are conditions that a reader of the figures must know, in words; `begun` is the time of its start, s since
    1970, NaN where that is not known. `remedies` help a computer that is too slow for it, as the options of its
    command; `{rate}` stands for a rate [Hz] that it keeps.
    """

    robot: str
    motion: str
    rate: float
    cycles: int
    cycle_duration: float
    notes: tuple[str, ...] = ()
    begun: float = math.nan
    remedies: tuple[str, ...] = (
        "--rate {rate}",
        "--no-page",
        ENDING_OTHERS,
        "permission for the real-time priorities of the loops (ulimit -r 50)",
    )

    @property
    def date(self) -> str:
        """Local time of its start; empty where that is not known."""
        if math.isnan(self.begun):
            return ""
        return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(self.begun))


@dataclass(frozen=True)
class Mark:
    """An output took a value, at a time on the run's clock [s]."""

    time: float
    name: str
    value: float


@dataclass(frozen=True, eq=False)
class Recording:
    """The recording of a run.

    `rows`: of the whole run; of a long one only each second, fourth, ... period (`every`) has one. `recent`: its end,
    with every period. `tally`: figures over every period. `missed`: deadlines of the loop, None where they were not
    counted. `faults`: why it ended early, in order.
    """

    run: Run
    limits: ActuatorLimits
    rows: Rows
    recent: Rows
    tally: Tally
    every: int = 1
    missed: int | None = 0
    faults: tuple[str, ...] = ()
    completed: bool = False  # known to have been run to its end, though rows may be missing
    marks: tuple[Mark, ...] = ()  # the outputs that were set, in their order; of many, the first

    def __len__(self) -> int:
        """Return the number of control periods, with a row or without."""
        return self.tally.count

    @property
    def realtime(self) -> bool:
        """Whether it ran in real time."""
        return bool(np.isfinite(self.tally.first_wake))

    def about(self, motion: str, notes: tuple[str, ...], remedies: tuple[str, ...] = ()) -> Recording:
        """The same with a motion's name and notes, and with remedies where there are any."""
        remedies = remedies or self.run.remedies
        return replace(self, run=replace(self.run, motion=motion, notes=notes, remedies=remedies))

    def _outputs(self, times: Array) -> dict[str, Array]:
        """Value of each output at times (n,), NaN before it was first set."""
        found = {}
        for name in dict.fromkeys(mark.name for mark in self.marks):
            marks = [mark for mark in self.marks if mark.name == name]
            values = np.array([math.nan, *(mark.value for mark in marks)])
            found[name] = values[np.searchsorted([mark.time for mark in marks], times + 1e-9, side="right")]
        return found

    def save(self, path: Path) -> None:
        """Write the rows as a CSV table, SI units."""
        pose = ("x", "y", "z", "qx", "qy", "qz", "qw")
        header = ["time", *(f"reference_{p}" for p in pose), *(f"measured_{p}" for p in pose)]
        for what in ("effort", "position", "velocity"):
            header += [f"{what}_{name}" for name in self.limits.names]
        rows = self.rows
        outputs = self._outputs(rows.times)
        header += [f"output_{name}" for name in outputs]
        table = [rows.times, rows.reference, rows.measured, rows.efforts, rows.positions, rows.velocities]
        table += outputs.values()
        line = ",".join(["%.9g"] * len(header)) + "\n"
        with whole(path) as part, part.open("w", encoding="utf-8") as file:
            file.write(",".join(header) + "\n")
            for begin in range(0, len(rows), 1000):
                some = np.column_stack([column[begin : begin + 1000] for column in table])
                file.write(line * len(some) % tuple(some.ravel().tolist()))


class Recorder:
    """Collects the periods of a loop in preallocated memory, so that recording does not disturb the loop.

    `expected` is the largest number of periods; 0: nothing is recorded.
    """

    def __init__(self, limits: ActuatorLimits, expected: int) -> None:
        self._limits = limits
        self._store = RowStore(len(limits.names), expected)
        self._buffer = np.empty((min(_AT_ONCE, expected), width(len(limits.names))))
        self._left = expected
        self._waiting = 0
        self._last_wake = np.nan
        self._marks: list[Mark] = []

    def mark(self, mark: Mark) -> None:
        """Add that an output was set; no effect when nothing is recorded."""
        if self._left and len(self._marks) < MOST_MARKS:
            self._marks.append(mark)

    def add(
        self,
        time: float,
        wake: float,
        poses: tuple[Array, Array],
        readings: tuple[Array, Array],
        efforts: Array,
        saturated: NDArray[np.bool_],
    ) -> None:
        """Add one control period; no effect after the expected number.

        Args:
            time: on the trajectory's clock [s].
            wake: of the loop, on the monotonic clock [s]; NaN where it does not run in real time.
            poses: of the platform, reference and measured, (7,) each.
            readings: positions and velocities of the actuators, (n_actuated,) each.
            efforts: as applied (n_actuated,).
            saturated: whether they are at their limits (n_actuated,).
        """
        if not self._left:
            return
        self._left -= 1
        row, n = self._buffer[self._waiting], len(efforts)
        row[0], row[1], row[2] = time, wake, wake - self._last_wake
        row[3:10], row[10:17] = poses
        row[17 : 17 + n], row[17 + n : 17 + 2 * n] = readings
        row[17 + 2 * n : 17 + 3 * n], row[17 + 3 * n :] = efforts, saturated
        self._last_wake = wake
        self._waiting += 1
        if self._waiting == len(self._buffer):
            self._flush()

    def recording(self, run: Run, missed: int = 0, faults: tuple[str, ...] = ()) -> Recording:
        """The recording so far; `missed` counts deadlines of the loop, `faults` say why it ended early."""
        self._flush()
        store = self._store
        return Recording(
            run,
            self._limits,
            store.rows,
            store.recent,
            store.tally,
            store.every,
            missed,
            faults,
            marks=tuple(self._marks),
        )

    def _flush(self) -> None:
        self._store.add(self._buffer[: self._waiting])
        self._waiting = 0
