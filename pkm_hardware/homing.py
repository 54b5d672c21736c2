# SPDX-License-Identifier: Apache-2.0
"""Homing of axes with incremental encoders, one after the other.

Each axis moves slowly until its reference shows: a limit switch, a hard stop, or the encoder's index pulse. A switch is
approached a second time, slower, for repeatability, and the axis then backs off. No reference within the permitted
travel is an error that names the axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from pkm_description.mechanism import Array
from pkm_hardware.drivers.driver import Reading

METHODS = SWITCH, STOP, INDEX = "switch", "stop", "index"
_SLOWER = 0.2  # of the speed, at the second approach of a switch
_CATCH_UP = 0.25  # of the lag that shows a stop: what a late period may add to the command


class HomingError(Exception):
    """A reference that was not found; the message names the axis and says what to look at."""


@dataclass(frozen=True)
class AxisHoming:
    """How one axis is homed; lengths in rad or m of the joint.

    `direction` (+1 or -1) towards the reference, `speed` [rad/s or m/s], `at`: joint position at the reference,
    `travel`: furthest distance of the search, `back_off`: distance it leaves afterwards. A hard stop shows where the
    axis lags `lag` behind its command, or its load exceeds `load` [units of the device], in two readings in a row.
    """

    actuator: int
    name: str
    method: str
    direction: int
    speed: float
    at: float
    travel: float
    back_off: float = 0.05
    lag: float = 0.1
    load: float = math.inf


class _Phase(Enum):
    LEAVING = "leaves the switch it stands on"
    SEEKING = "looks for its reference"
    RETREATING = "leaves the switch for a second approach"
    APPROACHING = "approaches the switch again"
    BACKING_OFF = "backs off"


class Homing:
    """Homes axes in order: `targets`, then `observe`, each period, until `done`; `found`: device positions there."""

    def __init__(self, axes: Sequence[AxisHoming]) -> None:
        self._left = list(axes)
        self.found: dict[AxisHoming, float] = {}
        self._phase = _Phase.SEEKING
        self._targets: Array | None = None  # of all axes, in the device's units
        self._first = True  # the phase has not been observed yet
        self._moved = 0.0  # joint units since the phase began, as commanded
        self._resisted = False  # so says the reading before: one alone may be wrong

    @property
    def done(self) -> bool:
        """Whether every axis has its reference."""
        return not self._left

    @property
    def doing(self) -> str:
        """The present step, in words."""
        return f"{self._left[0].name} {self._phase.value}" if self._left else "done"

    def targets(self, positions: Array, units: Array, dt: float) -> Array:
        """Target positions (n_actuated,) in the device's units, `dt` [s] after the last call and its reading.

        Args:
            units: device units per rad or m (n_actuated,), with the sign of the direction.
        """
        if self._targets is None:
            self._targets = positions.copy()
        if self._left:
            axis = self._left[0]
            speed, towards = axis.speed, axis.direction
            if self._phase in (_Phase.LEAVING, _Phase.RETREATING, _Phase.BACKING_OFF):
                towards = -towards
            if self._phase is _Phase.APPROACHING:
                speed *= _SLOWER
            step = min(speed * dt, _CATCH_UP * axis.lag)
            self._targets[axis.actuator] += towards * step * units[axis.actuator]
            self._moved += step
        return self._targets.copy()

    def observe(self, reading: Reading, units: Array) -> None:
        """Take a reading, `units` as in `targets`; HomingError where no reference shows or the device lacks it."""
        if not self._left or self._targets is None:
            return
        axis = self._left[0]
        i = axis.actuator
        shows = self._shows(axis, reading, units)
        first, self._first = self._first, False
        if self._phase is _Phase.SEEKING and axis.method == SWITCH and shows and first:
            self._enter(_Phase.LEAVING)
        elif self._phase in (_Phase.LEAVING, _Phase.RETREATING):
            if not shows and self._moved >= axis.back_off:
                self._enter(_Phase.SEEKING if self._phase is _Phase.LEAVING else _Phase.APPROACHING)
        elif self._phase is _Phase.BACKING_OFF:
            if self._moved >= axis.back_off:
                self._left.pop(0)
                self._enter(_Phase.SEEKING)
                return
        elif shows:
            if axis.method == SWITCH and self._phase is _Phase.SEEKING:
                self._enter(_Phase.RETREATING)
            else:
                at = reading.positions[i]
                if axis.method == INDEX and reading.indices is not None:
                    at = reading.indices[i]
                self.found[axis] = float(at)
                self._targets[i] = reading.positions[i]  # a stop leaves the command ahead of the axis
                self._enter(_Phase.BACKING_OFF)
        if self._moved > axis.travel:
            raise HomingError(
                f"homing of {axis.name}: no {axis.method} within {axis.travel:g} rad or m of travel while it "
                f"{self._phase.value}; is the {axis.method} connected, and the direction right?"
            )

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self._moved = 0.0
        self._first = True
        self._resisted = False

    def _shows(self, axis: AxisHoming, reading: Reading, units: Array) -> bool:
        assert self._targets is not None
        i = axis.actuator
        if axis.method == SWITCH:
            if reading.switches is None:
                raise HomingError(f"homing of {axis.name}: this device reads no switches; home to a stop or an index")
            return bool(reading.switches[i])
        if axis.method == INDEX:
            if reading.indices is None:
                raise HomingError(f"homing of {axis.name}: this device tells no index; home to a switch or a stop")
            return bool(np.isfinite(reading.indices[i]))
        if self._phase is not _Phase.SEEKING:
            return False
        lag = abs((self._targets[i] - reading.positions[i]) / units[i])
        loaded = reading.loads is not None and abs(float(reading.loads[i])) > axis.load
        before, self._resisted = self._resisted, bool(lag > axis.lag) or loaded
        return before and self._resisted
