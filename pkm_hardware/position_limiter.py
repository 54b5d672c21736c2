# SPDX-License-Identifier: Apache-2.0
"""Commanded positions within velocity and acceleration limits of each actuator."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits


class PositionLimiter:
    """Follows commanded positions exactly where they keep the limits, else as fast as these allow, without overshoot.

    Per actuator: the command's own rate, and what closes the gap to it so that the remaining gap can still be braked
    away; both within the largest velocity, changed by no more than the largest acceleration. Positions are held within
    the range of the actuator; one that begins outside stays where it is, or comes nearer to the range. After a call,
    `limited` (n_actuated,) tells where the command was not followed exactly.
    """

    def __init__(self, limits: ActuatorLimits) -> None:
        self._limits = limits
        self._wanted: Array | None = None
        self._position = np.zeros(len(limits.names))
        self._rate = np.zeros(len(limits.names))
        self.limited = np.zeros(len(limits.names), dtype=bool)

    def start(self, positions: Array) -> None:
        """Begin at rest at positions (n_actuated,) [rad or m]."""
        self._wanted = self._position = np.array(positions, dtype=np.float64)
        self._rate = np.zeros_like(self._position)
        self.limited[:] = False

    def forget(self) -> None:
        """Forget the position, so that `start` is needed again."""
        self._wanted = None

    @property
    def started(self) -> bool:
        """Whether there is a position to begin from."""
        return self._wanted is not None

    @property
    def rate(self) -> Array:
        """Rate of the positions returned last (n_actuated,) [rad/s or m/s]."""
        return self._rate

    def follow(self, wanted: Array, dt: float) -> Array:
        """Positions (n_actuated,) to command, `dt` [s] after the last ones, within the limits; NaN propagates."""
        if self._wanted is None:
            raise ValueError("start before following")
        if not np.isfinite(wanted).all():
            return np.full(len(self._position), np.nan)
        most, steepest = self._limits.velocity, self._limits.acceleration
        lower = np.minimum(self._limits.lower, self._position)
        upper = np.maximum(self._limits.upper, self._position)
        inside = np.clip(wanted, lower, upper)
        gap = self._wanted - self._position
        closing = np.sign(gap) * np.minimum(np.abs(gap) / dt, _brakable(np.abs(gap), steepest, dt))
        rate = np.clip((inside - self._wanted) / dt, -most, most) + closing
        rate = np.clip(rate, self._rate - steepest * dt, self._rate + steepest * dt)
        rate = np.clip(rate, -most, most)
        position = np.clip(self._position + rate * dt, lower, upper)
        self._rate = (position - self._position) / dt
        self._position, self._wanted = position, inside
        self.limited = np.abs(position - wanted) > 1e-9
        return position.copy()


def _brakable(gap: Array, steepest: Array, dt: float) -> Array:
    """Highest rate from which rest is reached within a gap, in whole periods of constant rate. From (n - 1 + f) a dt, 0
    <= f < 1, the way to rest is a dt^2 (n (n - 1) / 2 + n f).
    """
    rate = np.full_like(gap, np.inf)
    finite = np.isfinite(steepest)
    unit = steepest[finite] * dt
    ways = gap[finite] / (unit * dt)
    n = np.floor(0.5 * (1.0 + np.sqrt(1.0 + 8.0 * ways)))
    rate[finite] = (n - 1.0 + (ways - 0.5 * n * (n - 1.0)) / n) * unit
    return rate
