# SPDX-License-Identifier: Apache-2.0
"""Parts of a simulated drive beside its motor: brakes, which close when no commands come, end stops, encoders."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_hardware.kernels.platform_step import stop_efforts

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


class EndStops:
    """Critically damped springs beyond the range of each joint; they push, and never pull back.

    They are as hard as the integration step [s] allows. Range ends `lower`, `upper` (n,) [rad or m], `inertia` at each
    joint (n,) [kg m^2 or kg].
    """

    def __init__(self, lower: Array, upper: Array, inertia: Array, step: float) -> None:
        self.lower = np.asarray(lower, dtype=np.float64)
        self.upper = np.asarray(upper, dtype=np.float64)
        frequency = 0.2 / step
        self._stiffness = np.asarray(inertia) * frequency**2
        self._damping = 2.0 * np.asarray(inertia) * frequency

    def efforts(self, positions: Array, velocities: Array) -> Array:
        """Efforts (n,) [N m or N] of the stops at the joints' positions and velocities (n,); zero inside the range."""
        out = np.empty(len(positions))
        stop_efforts(positions, velocities, self.lower, self.upper, self._stiffness, self._damping, out)
        return out


class Encoder:
    """Rounds positions to steps and adds Gaussian noise, reproducibly by `seed`; ValueError: a number is negative.

    `resolution` is the size of one step [rad or m at the joint], 0 for none; `position_noise` [rad or m] and
    `velocity_noise` [rad/s or m/s] are standard deviations. Each is a number for all actuators or (n,).
    """

    def __init__(
        self,
        resolution: float | Array = 0.0,
        position_noise: float | Array = 0.0,
        velocity_noise: float | Array = 0.0,
        seed: int = 0,
    ) -> None:
        if min(np.min(resolution), np.min(position_noise), np.min(velocity_noise)) < 0.0:
            raise ValueError("resolution and noise of an encoder are zero or more")
        self.resolution = resolution
        self.position_noise = position_noise
        self.velocity_noise = velocity_noise
        self._random = np.random.default_rng(seed)
        self._perfect = not (np.any(resolution) or np.any(position_noise) or np.any(velocity_noise))

    def read(self, positions: Array, velocities: Array) -> tuple[Array, Array]:
        """Measured positions and velocities for the true ones, each (n,) [rad or m, rad/s or m/s]."""
        if self._perfect:
            return positions, velocities
        measured = positions + self.position_noise * self._random.standard_normal(positions.shape)
        stepped = np.asarray(self.resolution) > 0.0
        if stepped.any():
            step = np.where(stepped, self.resolution, 1.0)
            measured = np.where(stepped, np.round(measured / step) * step, measured)
        return measured, velocities + self.velocity_noise * self._random.standard_normal(velocities.shape)
