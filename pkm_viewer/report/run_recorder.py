# SPDX-License-Identifier: Apache-2.0
"""A recording made on the fly from two streams: references of the platform, and readings of the machine."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics
from pkm_viewer.report.recording import MOST_MARKS, Mark, Recording, RowStore, Run

_AT_ONCE = 256  # rows whose platform pose is computed together
_OLDEST = 4096  # stamps that wait for their counterpart before they are given up


class RunRecorder:
    """Matches references with readings by their stamps, and finds the platform's pose from the readings.

    The pose that is compared with the reference is the one that forward kinematics finds near it. All is computed as it
    comes, a few hundred rows at once; memory is bounded. The recording goes from the row before the first motion to the
    planned end or the last motion, whichever is later. An effort at its limit counts as saturated.
    """

    def __init__(self, kinematics: Kinematics, limits: ActuatorLimits, run: Run) -> None:
        self._kinematics = kinematics
        self._limits = limits
        self._run = run
        self._end = run.cycles * run.cycle_duration + 1.0 / run.rate  # s
        self._references: dict[int, tuple[Array, bool]] = {}
        self._readings: dict[int, tuple[Array, Array, Array, float]] = {}
        self._matched: list[tuple[int, Array, Array, Array, Array, float]] = []
        self._resting: list[tuple[int, Array, Array, Array, Array, float]] = []  # after the end, and not moving
        self._epoch = 0
        self._moves = False  # a reference that moves has been matched
        self._store = RowStore(len(limits.names))
        self._last_wake = np.nan
        self._marks: list[tuple[int, str, float]] = []

    def mark(self, stamp: int, name: str, value: float) -> None:
        """Note that an output took a value at a stamp [ns]."""
        if len(self._marks) < MOST_MARKS:
            self._marks.append((stamp, name, value))

    @property
    def count(self) -> int:
        """Number of rows so far, with those whose pose is not computed yet; any thread may ask."""
        return self._store.tally.count + len(self._matched)

    def reference(self, stamp: int, pose: Array, moves: bool) -> None:
        """Note a reference: the pose (7,) at a stamp [ns], and whether it had a velocity."""
        self._references.setdefault(stamp, (pose, moves))

    def reading(self, stamp: int, positions: Array, velocities: Array, efforts: Array, published: float) -> None:
        """Note a reading (n_actuated,) each, at a stamp [ns], published at a time [s]: the first of a stamp."""
        self._readings.setdefault(stamp, (positions, velocities, efforts, published))

    def advance(self, everything: bool = False) -> None:
        """Match what has come; compute rows when enough of them wait, or `everything`."""
        both = sorted(self._references.keys() & self._readings.keys())
        for stamp in both:
            pose, moves = self._references.pop(stamp)
            row = (stamp, pose, *self._readings.pop(stamp))
            if not self._moves:
                self._matched = self._matched[-1:]  # the run begins with the last row at rest
                self._moves = moves
                self._epoch = self._matched[0][0] if self._matched else stamp  # ns since 1970 do not fit a float
            if 1e-9 * (stamp - self._epoch) < self._end:
                self._matched.append(row)
            elif moves:
                self._matched += [*self._resting, row]
                self._resting = []
            else:
                self._resting = [*self._resting[-_OLDEST:], row]
        for waiting in (self._references, self._readings):
            for stamp in list(waiting)[: max(0, len(waiting) - _OLDEST)]:
                del waiting[stamp]
        if self._moves and len(self._matched) >= (1 if everything else _AT_ONCE):
            self._compute()

    def recording(self, faults: tuple[str, ...] = ()) -> Recording:
        """The recording, without a row where nothing moved; `faults` say why it ended early."""
        self.advance(everything=True)
        marks = tuple(Mark(1e-9 * (stamp - self._epoch), name, value) for stamp, name, value in self._marks)
        return Recording(self._run, self._limits, *self._store.parts(), None, faults, marks=marks)

    def _compute(self) -> None:
        matched, self._matched = self._matched, []
        for begin in range(0, len(matched), 4 * _AT_ONCE):
            parts = zip(*matched[begin : begin + 4 * _AT_ONCE], strict=True)
            stamps, poses, positions, velocities, efforts, published = parts
            reference, applied = np.array(poses), np.array(efforts)
            measured = self._kinematics.forward(np.array(positions), near=reference).pose
            times = 1e-9 * (np.array(stamps, dtype=np.int64) - self._epoch)
            periods = np.diff(published, prepend=self._last_wake)
            self._last_wake = published[-1]
            saturated = np.abs(applied) >= self._limits.effort_bound(applied) * (1.0 - 1e-9)
            columns = times, published, periods, reference, measured, positions, velocities, applied, saturated
            self._store.add(np.column_stack([np.asarray(column, dtype=np.float64) for column in columns]))
