# SPDX-License-Identifier: Apache-2.0
"""The loops inside a servo drive that turn position or velocity commands into efforts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class DriveLoop:
    """Cascade of a position and a velocity loop, as well-tuned servo drives that know what they move have it.

    The mass matrix scales the gains, so that the bandwidth is that of the velocity loop in every direction; the
    position loop has a quarter of it, which makes the pair critically damped. The rate of the position commands,
    low-passed at the bandwidth, is fed forward.

    Args:
        mass: mass matrix in the actuators (n, n) [kg m^2, kg m, kg].
        bandwidth: of the velocity loop [rad/s].
    """

    def __init__(self, mass: Array, bandwidth: float = 300.0) -> None:
        self.mass = np.asarray(mass, dtype=np.float64)
        self.bandwidth = bandwidth
        self._last: Array | None = None
        self._feedforward = np.zeros(len(self.mass))

    def reset(self) -> None:
        """Forget past commands."""
        self._last = None
        self._feedforward = np.zeros(len(self.mass))

    def velocity(self, command: Array, velocities: Array, gravity: Array) -> Array:
        """Efforts that follow velocity commands.

        Args:
            command: wanted velocities (n,) [rad/s or m/s].
            velocities: present ones (n,).
            gravity: efforts (n,) that carry the load.

        Returns:
            (n,) [N m or N].
        """
        return gravity + self.bandwidth * self.mass @ (command - velocities)

    def position(self, command: Array, positions: Array, velocities: Array, gravity: Array, dt: float) -> Array:
        """Efforts that follow position commands.

        Args:
            command: wanted positions (n,) [rad or m].
            positions: present ones (n,).
            velocities: present ones (n,) [rad/s or m/s].
            gravity: efforts (n,) that carry the load.
            dt: time since the last call [s].

        Returns:
            (n,) [N m or N].
        """
        if self._last is None:
            self._last = command.copy()
        share = min(1.0, self.bandwidth * dt)
        self._feedforward += share * ((command - self._last) / dt - self._feedforward)
        self._last = command.copy()
        wanted = self._feedforward + 0.25 * self.bandwidth * (command - positions)
        return self.velocity(wanted, velocities, gravity)
