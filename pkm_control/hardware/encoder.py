# SPDX-License-Identifier: Apache-2.0
"""What an encoder makes of a position: noise and quantisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Encoder:
    """Rounds positions to steps and adds Gaussian noise, reproducibly.

    Args:
        resolution: size of one step [rad or m at the joint], 0 for none.
        position_noise: standard deviation [rad or m].
        velocity_noise: standard deviation [rad/s or m/s].
        seed: of the noise.

    Raises:
        ValueError: a number is negative.
    """

    def __init__(
        self, resolution: float = 0.0, position_noise: float = 0.0, velocity_noise: float = 0.0, seed: int = 0
    ) -> None:
        if min(resolution, position_noise, velocity_noise) < 0.0:
            raise ValueError("resolution and noise of an encoder are zero or more")
        self.resolution = resolution
        self.position_noise = position_noise
        self.velocity_noise = velocity_noise
        self._random = np.random.default_rng(seed)

    def read(self, positions: Array, velocities: Array) -> tuple[Array, Array]:
        """Positions and velocities as measured.

        Args:
            positions: true ones (n,) [rad or m].
            velocities: true ones (n,) [rad/s or m/s].

        Returns:
            Positions (n,) and velocities (n,).
        """
        measured = positions + self.position_noise * self._random.standard_normal(positions.shape)
        if self.resolution > 0.0:
            measured = np.round(measured / self.resolution) * self.resolution
        return measured, velocities + self.velocity_noise * self._random.standard_normal(velocities.shape)
