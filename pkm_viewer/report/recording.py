# SPDX-License-Identifier: Apache-2.0
"""The recording of a run: rows of control periods in bounded memory, figures over them all, and their meaning."""

from __future__ import annotations

import csv
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_description.rotations import quaternion_inverse, quaternion_product
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_runtime.whole_files import whole

MOST = 65_536  # rows that are kept of a whole run; of a longer one every second, then every fourth, ...
RECENT = 8192  # rows that are kept of its end, every one
_HEAD = 17  # time, wake, period, reference (7), measured (7)

_AT_ONCE = 128  # rows that are stored together
MOST_MARKS = 20_000  # of a run
ENDING_OTHERS = "ending other programs"  # of `Run.remedies`


def width(n_actuated: int) -> int:
    """Number of columns of a row: `_HEAD`, then positions, velocities, efforts and saturations of the actuators."""
    return _HEAD + 4 * n_actuated


class Rows:
    """Control periods of a run, one row each: a view of a table (n, `width(n_actuated)`), and its columns.

    `times` (n,) [s] on the trajectory's clock; `wakes` (n,) [s] of the loop, monotonic, NaN where not run in real
    time; `periods` (n,) [s] from the previous wake, NaN in the first. `reference` and `measured` are poses (n, 7), base
    frame. Of the actuators (n, n_actuated): `positions`, `velocities`, applied `efforts`, and whether an effort was cut
    to its limit (`saturated`).
    """

    def __init__(self, table: Array) -> None:
        self.table = table
        self.times, self.wakes, self.periods = table[:, 0], table[:, 1], table[:, 2]
        self.reference, self.measured = table[:, 3:10], table[:, 10:17]
        self.positions, self.velocities, self.efforts, saturated = np.split(table[:, _HEAD:], 4, axis=1)
        self.saturated: NDArray[np.bool_] = saturated > 0.0

    def __len__(self) -> int:
        return len(self.table)

    def __reduce__(self) -> tuple[type[Rows], tuple[Array]]:
        return Rows, (self.table,)


def tracking_errors(rows: Rows) -> tuple[Array, Array]:
    """Position error (n,) [m] and attitude error (n,) [rad] of the platform in every row."""
    position = np.linalg.norm(rows.measured[:, :3] - rows.reference[:, :3], axis=1)
    turned = quaternion_product(quaternion_inverse(rows.reference[:, 3:]), rows.measured[:, 3:])
    return position, 2.0 * np.arctan2(np.linalg.norm(turned[:, :3], axis=1), np.abs(turned[:, 3]))


class Tally:
    """Figures over every row of a run, kept or not: `count`, and the rest per actuator (n_actuated,) or scalar."""

    def __init__(self, n_actuated: int) -> None:
        self.count = 0
        self.first_time = self.last_time = 0.0
        self.first_wake = self.last_wake = np.nan
        self.shortest_period, self.longest_period = np.inf, 0.0
        self.error_squares, self.error_max = np.zeros(2), np.zeros(2)  # of position, of attitude
        self.effort_squares, self.effort_ends = np.zeros(n_actuated), np.zeros((2, n_actuated))  # least, most; or zero
        self.velocity_squares, self.velocity_max = np.zeros(n_actuated), np.zeros(n_actuated)
        self.lowest, self.highest = np.full(n_actuated, np.inf), np.full(n_actuated, -np.inf)  # positions
        self.saturated = np.zeros(n_actuated, dtype=np.int64)

    def add(self, table: Array) -> None:
        """Count rows (k, width)."""
        rows = Rows(table)
        if not len(rows):
            return
        if not self.count:
            self.first_time, self.first_wake = float(rows.times[0]), float(rows.wakes[0])
        self.last_time, self.last_wake = float(rows.times[-1]), float(rows.wakes[-1])
        self.count += len(rows)
        periods = rows.periods[np.isfinite(rows.periods)]
        if len(periods):
            self.shortest_period = min(self.shortest_period, float(periods.min()))
            self.longest_period = max(self.longest_period, float(periods.max()))
        errors = np.column_stack(tracking_errors(rows))
        self.error_squares += (errors**2).sum(axis=0)
        self.error_max = np.maximum(self.error_max, errors.max(axis=0))
        self.effort_squares += (rows.efforts**2).sum(axis=0)
        ends = rows.efforts.min(axis=0), rows.efforts.max(axis=0)
        self.effort_ends = np.array(
            [np.minimum(self.effort_ends[0], ends[0]), np.maximum(self.effort_ends[1], ends[1])]
        )
        self.velocity_squares += (rows.velocities**2).sum(axis=0)
        self.velocity_max = np.maximum(self.velocity_max, np.abs(rows.velocities).max(axis=0))
        self.lowest = np.minimum(self.lowest, rows.positions.min(axis=0))
        self.highest = np.maximum(self.highest, rows.positions.max(axis=0))
        self.saturated += rows.saturated.sum(axis=0)

    def rms(self, squares: Array) -> Array:
        """Root of the mean of summed squares."""
        return np.asarray(np.sqrt(squares / max(self.count, 1)))


class RowStore:
    """Rows in bounded memory: beyond the `expected` ones, every second row is dropped, again and again."""

    def __init__(self, n_actuated: int, expected: int = 0) -> None:
        self.every = 1  # of the rows that came, those that are kept
        while expected > MOST * self.every:
            self.every *= 2
        self.tally = Tally(n_actuated)
        self._table = np.empty((MOST, width(n_actuated)))  # takes memory as it is written
        self._recent = np.empty((RECENT, width(n_actuated)))
        self._kept = 0

    def parts(self) -> tuple[Rows, Rows, Tally, int]:
        """The fields of a `Recording` from `rows` to `every`."""
        count, at = self.tally.count, self.tally.count % RECENT
        if self.every == 1:
            recent = self._table[max(0, self._kept - RECENT) : self._kept]
        elif count < RECENT:
            recent = self._recent[:count]
        else:
            recent = np.vstack([self._recent[at:], self._recent[:at]])
        return Rows(self._table[: self._kept]), Rows(recent), self.tally, self.every

    def add(self, table: Array) -> None:
        """Add rows (k, width), the oldest first; k is at most `RECENT`."""
        at = np.arange(self.tally.count, self.tally.count + len(table))
        self.tally.add(table)
        self._recent[at % RECENT] = table
        while self._kept + np.count_nonzero(at % self.every == 0) > len(self._table):
            self.every *= 2
            self._kept = (self._kept + 1) // 2
            for column in range(self._table.shape[1]):  # one after the other: a copy of all would double the memory
                self._table[: self._kept, column] = self._table[: 2 * self._kept : 2, column].copy()
        kept = table[at % self.every == 0]
        self._table[self._kept : self._kept + len(kept)] = kept
        self._kept += len(kept)


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
    """The recording of a run. `rows`: of the whole run; of a long one only each second, fourth, ... period (`every`)
    has one. `recent`: its end, with every period. `tally`: figures over every period. `missed`: deadlines of the loop,
    None where they were not counted. `faults`: why it ended early, in order.
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
            csv.writer(file, lineterminator="\n").writerow(header)
            for begin in range(0, len(rows), 1000):
                some = np.column_stack([column[begin : begin + 1000] for column in table])
                file.write(line * len(some) % tuple(some.ravel().tolist()))


class Recorder:
    """Collects at most `expected` periods of a loop in preallocated memory, so that recording does not disturb it."""

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
        """Add a control period, as in `Rows`; `poses`: reference, measured; `readings`: positions, velocities."""
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
        return Recording(run, self._limits, *self._store.parts(), missed, faults, marks=tuple(self._marks))

    def _flush(self) -> None:
        self._store.add(self._buffer[: self._waiting])
        self._waiting = 0
