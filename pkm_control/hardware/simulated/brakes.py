# SPDX-License-Identifier: Apache-2.0
"""Brakes on the actuators, which close where nobody tells the drives what to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CAPACITY = 1.5  # of an actuator's largest effort: what its brake holds, as brakes of servo motors do


class Brakes:
    """Dry friction that stops the actuators, each with no more effort than its brake has, and then holds them.

    Args:
        mass: mass matrix in the actuators (n, n) [kg m^2, kg m, kg].
        effort: largest efforts of the actuators (n,) [N m or N]; infinite where there is no limit.
    """

    def __init__(self, mass: Array, effort: Array) -> None:
        self._mass = np.asarray(mass, dtype=np.float64)
        self.capacity = CAPACITY * np.asarray(effort, dtype=np.float64)
        self.closed = False
        self.holding = False  # closed, and nothing moves any more

    def open(self) -> None:
        """Let the actuators go."""
        self.closed = self.holding = False

    def efforts(self, velocities: Array, h: float) -> Array:
        """Close, and say what the brakes do to the actuators in the step that comes.

        Args:
            velocities: of the actuators (n,) [rad/s or m/s].
            h: length of the step [s].

        Returns:
            Efforts (n,) [N m or N]; where they suffice to stop everything within the step, `holding` is set.
        """
        self.closed = True
        wanted = -self._mass @ velocities / h
        self.holding = self.holding or bool(np.all(np.abs(wanted) <= self.capacity))
        return np.clip(wanted, -self.capacity, self.capacity)
