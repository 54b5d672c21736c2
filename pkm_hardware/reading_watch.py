# SPDX-License-Identifier: Apache-2.0
"""Readings that no actuator can have come to since the one before."""

from __future__ import annotations

import math

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.kernels.dense import first_beyond

_FASTER = 1.5  # times its largest speed: what an actuator is believed to do
_LATE = 0.005  # s, by which the time of a reading may be off


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
