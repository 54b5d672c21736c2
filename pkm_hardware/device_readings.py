# SPDX-License-Identifier: Apache-2.0
"""Readings of a device in the coordinates of the joints: which are plausible, and when they were taken."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.drivers.driver import DeviceError, Driver, GivenUpError, Reading
from pkm_hardware.homing import AxisHoming
from pkm_hardware.machine_file import Scale
from pkm_kinematics.kernels.dense import first_beyond

_FASTER = 1.5  # times its largest speed: what an actuator is believed to do
_LATE = 0.005  # s, by which the time of a reading may be off
_OUTSIDE = 0.1  # of an actuator's range: one that is farther outside is misread, by a wrong offset, sign or unit
_READINGS = 20  # of which two in a row have to agree before drives are enabled there


class ReadingWatch:
    """Whether a reading can follow the one before, within the actuators' speeds; always where a speed is unlimited."""

    def __init__(self, limits: ActuatorLimits) -> None:
        self._names, self._units = limits.names, limits.length_units
        self._speeds = _FASTER * limits.velocity
        self._last: Array | None = None

    def check(self, positions: Array, elapsed: float) -> str:
        """Why positions (n_actuated,) [rad or m] are implausible `elapsed` [s] after the last good ones, or empty."""
        if self._last is None or not math.isfinite(elapsed):
            return ""
        moved = positions - self._last
        k = first_beyond(moved, self._speeds * (max(elapsed, 0.0) + _LATE))
        if k < 0 or math.isnan(moved[k]):
            return ""
        unit = self._units[k]
        return f"the reading of {self._names[k]} jumps by {abs(moved[k]):.4g} {unit}, faster than it can move"

    def accept(self, positions: Array) -> None:
        """Go on from positions (n_actuated,) [rad or m]."""
        self._last = positions.copy()


class DeviceReadings:
    """`last` is the last reading that counts: machine time [s] at which it was taken, positions and velocities (n,).

    A reading that no actuator could have reached is dropped, so that its time stands still; `dropped` counts them,
    `why_dropped` is of the last of them. `fresh`: whether the last one that came counted. Where time does not pass by
    itself (not `real`), a reading is as old as its period.
    """

    def __init__(self, limits: ActuatorLimits, home: Array, real: bool) -> None:
        self._limits, self._real = limits, real
        self._asked = -math.inf  # s, `time.monotonic`: when the last one was asked for
        self.last = (0.0, home.copy(), np.zeros_like(home))
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """Begin anew with joints that are believed to be where they were."""
        self.last = (now, self.last[1], np.zeros_like(self.last[1]))
        self.dropped, self.why_dropped, self.fresh = 0, "", True
        self._blind: NDArray[np.bool_] | None = None  # axes whose encoders have not found their index
        self._watch = ReadingWatch(self._limits)

    def rest(self) -> None:
        """No drive moves its axis any more, as far as is known."""
        taken, positions, velocities = self.last
        self.last = (taken, positions, np.zeros_like(velocities))

    def place(self, positions: Array) -> None:
        """The same reading, at other positions (n_actuated,): the axes have found their references."""
        self.last = (self.last[0], positions, self.last[2])
        self._watch.accept(positions)

    def confirm(self, driver: Driver, scale: Scale, now: float) -> float:
        """Read until two in a row agree, so that drives are not enabled at a misread position; when it began [s]."""
        agreed, began = 0, time.monotonic()
        self._watch = ReadingWatch(self._limits)
        for _ in range(_READINGS):
            if driver.unwanted():
                raise GivenUpError
            reading = driver.exchange(None)
            if reading.time <= self._asked:
                continue
            agreed += 1
            if not self.take(reading, scale, now, began):
                self._watch = ReadingWatch(self._limits)
                self.take(reading, scale, now, began)
                agreed = 1
            if agreed == 2:
                return began
        raise DeviceError(f"no two readings{driver.where} agree: {self.why_dropped or driver.notice or 'none comes'}")

    def far_outside(self, axes: Sequence[AxisHoming]) -> str:
        """Which actuator is far outside its range, and outside the place of the reference that its axis has found."""
        positions, lower, upper = self.last[1], self._limits.lower.copy(), self._limits.upper.copy()
        for axis in axes:
            lower[axis.actuator] = min(lower[axis.actuator], axis.at)
            upper[axis.actuator] = max(upper[axis.actuator], axis.at)
        room = np.where(np.isfinite(upper - lower), _OUTSIDE * (upper - lower), np.inf)
        for k in np.flatnonzero((positions < lower - room) | (positions > upper + room)):
            name, unit = self._limits.names[k], self._limits.length_units[k]
            where = f"{positions[k]:.4g} {unit}, far outside its range {lower[k]:.4g} to {upper[k]:.4g}"
            remedy = "correct its offset, sign or gear in the machine's file, or move it by hand"
            return f"{name} is at {where}: {remedy}"
        return ""

    def take(self, reading: Reading, scale: Scale, now: float, began: float) -> bool:
        """Whether a reading is new and plausible: accepted, in a period from `now`, or `began` (monotonic) [s]."""
        self.fresh = reading.time > self._asked and self._accept(reading, scale, now, began)
        return self.fresh

    def _accept(self, reading: Reading, scale: Scale, now: float, began: float) -> bool:
        before, last, _ = self.last
        positions = scale.to_joints(reading.positions)
        if positions.shape != last.shape:
            raise DeviceError(f"positions that cannot be: {reading.positions}")
        rates = np.zeros_like(positions) if reading.velocities is None else reading.velocities
        for name, position, rate in zip(self._limits.names, reading.positions, rates, strict=True):
            if not (math.isfinite(position) and math.isfinite(rate)):
                raise DeviceError(f"{name} reads position {position:g}, velocity {rate:g}: look at its encoder")
        age = max(began - reading.time, 0.0) if self._real else 0.0
        taken = max(now - age, before)
        judged = positions
        if reading.indices is not None:  # an axis that finds its index counts anew from there
            blind = np.isnan(reading.indices)
            if self._blind is None or (blind != self._blind).any():
                self._watch = ReadingWatch(self._limits)
            self._blind, judged = blind, np.where(blind, last, positions)
        elapsed = taken - before
        if why := self._watch.check(judged, max(elapsed, reading.time - self._asked)):
            self.dropped, self.why_dropped = self.dropped + 1, why
            return False
        self._watch.accept(judged)
        if reading.velocities is not None:
            velocities = reading.velocities / scale.units
        else:
            velocities = (positions - last) / elapsed if elapsed > 0.0 else np.zeros_like(positions)
        self._asked = reading.time
        self.last = (taken, positions, velocities)
        return True
