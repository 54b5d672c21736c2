# SPDX-License-Identifier: Apache-2.0
"""A recording from two streams, made while they come: what was asked of the platform, and what the machine reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.motion.limits import ActuatorLimits
from pkm_control.report.recording import Recording
from pkm_kinematics import Kinematics

Array = NDArray[np.float64]

_AT_ONCE = 256  # rows whose platform pose is computed together
_MOST = 200_000  # rows that are kept; of a longer run every second one, then every fourth
_OLDEST = 4096  # stamps that wait for their counterpart before they are given up


class RunRecorder:
    """Matches references with readings by their stamps, and finds the platform from the readings.

    The pose that is compared with the reference is the one that forward kinematics finds near it. All is computed as
    it comes, a few hundred rows at once, so that the end of a long run leaves nothing to do; what is kept is bounded.

    Args:
        kinematics: of the robot.
        limits: of its actuators; an effort at its limit counts as saturated.
        rate: of both streams [Hz].
    """

    def __init__(self, kinematics: Kinematics, limits: ActuatorLimits, rate: float) -> None:
        self._kinematics = kinematics
        self._limits = limits
        self._rate = rate
        self._references: dict[int, tuple[Array, bool]] = {}
        self._readings: dict[int, tuple[Array, Array, float]] = {}
        self._matched: list[tuple[int, Array, Array, Array, float]] = []
        self._epoch = 0
        self._moves = False  # a reference that moves has been matched
        self._rows = _Rows(2 + 7 + 7 + len(limits.names))  # time, wake, reference, measured, efforts

    def reference(self, stamp: int, pose: Array, moves: bool) -> None:
        """Note what was asked: the pose (7,) at a stamp [ns], and whether it had a velocity."""
        self._references.setdefault(stamp, (pose, moves))

    def reading(self, stamp: int, positions: Array, efforts: Array, published: float) -> None:
        """Note what was read.

        The first reading with a stamp counts: while the machine waits for a command it repeats its state.

        Args:
            stamp: of the reading [ns].
            positions: of the actuators (n_actuated,) [rad or m].
            efforts: of the actuators (n_actuated,) [N m or N].
            published: when it came out [s].
        """
        self._readings.setdefault(stamp, (positions, efforts, published))

    def advance(self, everything: bool = False) -> None:
        """Match what has come; compute rows when enough of them wait, or `everything`."""
        both = sorted(self._references.keys() & self._readings.keys())
        for stamp in both:
            pose, moves = self._references.pop(stamp)
            positions, efforts, published = self._readings.pop(stamp)
            if not self._moves:
                self._matched = self._matched[-1:]  # the run begins with the last row at rest
                self._moves = moves
            self._epoch = self._epoch or stamp  # nanoseconds since 1970 do not fit a float
            self._matched.append((stamp, pose, positions, efforts, published))
        for waiting in (self._references, self._readings):
            for stamp in list(waiting)[: max(0, len(waiting) - _OLDEST)]:
                del waiting[stamp]
        if self._moves and len(self._matched) >= (1 if everything else _AT_ONCE):
            self._compute()

    def recording(self, cycles: int, cycle_duration: float, faults: tuple[str, ...] = ()) -> Recording:
        """What was recorded, from the row before the first motion to the end of the last cycle.

        Args:
            cycles: how often the motion was to be run.
            cycle_duration: of one [s].
            faults: reasons why it ended early.

        Returns:
            The recording; without a row where nothing moved.
        """
        self.advance(everything=True)
        table = self._rows.array
        times = table[:, 0] - (table[0, 0] if len(table) else 0.0)
        done = table[: int(np.searchsorted(times, cycles * cycle_duration + 1.0 / self._rate, side="right"))]
        efforts = done[:, 16:]
        return Recording(
            robot=self._kinematics.mechanism.name,
            actuated_names=self._kinematics.actuated_names,
            rate=self._rate,
            cycles=cycles,
            cycle_duration=cycle_duration,
            times=times[: len(done)],
            reference=done[:, 2:9],
            measured=done[:, 9:16],
            efforts=efforts,
            saturated=np.abs(efforts) >= self._limits.effort * (1.0 - 1e-9),
            wakes=done[:, 1],
            faults=faults,
            effort_units=self._limits.effort_units,
            every=self._rows.every,
        )

    def _compute(self) -> None:
        stamps, poses, positions, efforts, published = zip(*self._matched, strict=True)
        self._matched = []
        reference = np.array(poses)
        measured = self._kinematics.forward(np.array(positions), near=reference).pose
        times = 1e-9 * (np.array(stamps, dtype=np.int64) - self._epoch)
        self._rows.add(np.column_stack([times, published, reference, measured, efforts]))


class _Rows:
    """Rows of numbers in one array that does not grow for ever: when it is full, every second row goes."""

    def __init__(self, width: int) -> None:
        self.every = 1  # of the rows that came, those that are kept
        self._table = np.empty((_MOST, width))  # takes memory as it is written
        self._kept = self._seen = 0

    @property
    def array(self) -> Array:
        """What was kept (n, width)."""
        return self._table[: self._kept]

    def add(self, rows: Array) -> None:
        """Add rows (k, width)."""
        at = np.arange(self._seen, self._seen + len(rows))
        self._seen += len(rows)
        while self._kept + np.count_nonzero(at % self.every == 0) > _MOST:
            half = self._table[: self._kept : 2].copy()
            self.every, self._kept = 2 * self.every, len(half)
            self._table[: self._kept] = half
        rows = rows[at % self.every == 0]
        self._table[self._kept : self._kept + len(rows)] = rows
        self._kept += len(rows)
