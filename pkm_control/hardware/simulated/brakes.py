# SPDX-License-Identifier: Apache-2.0
"""Brakes on the actuators, which close when no commands come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CAPACITY = 1.5  # of an actuator's largest effort: what its brake holds, as brakes of servo motors do


_SWEEPS = 30  # over the actuators
_STICKS = 0.02  # rad/s and m/s: actuators that are no faster stick


class Brakes:
    """Dry friction that stops the actuators, each with at most the effort of its brake, and then holds them.

    Of all efforts within the brakes' capacity, friction has those that leave the least kinetic energy after the step
    (Moreau's principle of maximal dissipation). So an actuator that slips is slowed down, also where its mass is
    coupled with those of others. `mass` is the mass matrix in the actuators (n, n) [kg m^2, kg m, kg], `effort` the
    largest efforts of the actuators (n,) [N m or N], infinite where there is no limit.
    """

    def __init__(self, mass: Array, effort: Array) -> None:
        self.mass = mass
        self.capacity = CAPACITY * np.asarray(effort, dtype=np.float64)
        self.closed = False
        self.holding = False  # closed, and nothing moves any more

    def open(self) -> None:
        """Release the actuators."""
        self.closed = self.holding = False

    def efforts(self, velocities: Array, h: float) -> Array:
        """Close, and return the brakes' efforts (n,) [N m or N] in the next step of length h [s].
        Where they suffice to stop the `velocities` (n,) [rad/s or m/s] within the step, `holding` is set.
        """
        self.closed = True
        wanted = -self._mass @ velocities / h
        if np.all(np.abs(wanted) <= self.capacity) or np.all(np.abs(velocities) <= _STICKS):
            self.holding = True
        if self.holding:
            return np.clip(wanted, -self.capacity, self.capacity)
        given = np.zeros(len(velocities))
        mobility = self._mobility * h
        for _ in range(_SWEEPS):  # projected Gauss-Seidel
            for i in range(len(given)):
                slip = velocities[i] + mobility[i] @ given
                given[i] = min(max(given[i] - slip / mobility[i, i], -self.capacity[i]), self.capacity[i])
        return given

    @property
    def mass(self) -> Array:
        """Mass matrix in the actuators (n, n), which changes with the pose."""
        return self._mass

    @mass.setter
    def mass(self, mass: Array) -> None:
        self._mass = np.asarray(mass, dtype=np.float64)
        self._mobility = np.linalg.pinv(self._mass)
