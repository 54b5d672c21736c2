# SPDX-License-Identifier: Apache-2.0
"""Noise and quantisation of an encoder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
