# SPDX-License-Identifier: Apache-2.0
"""Mechanical end stops of the actuated joints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.kernels.platform_step import stop_efforts

Array = NDArray[np.float64]


class EndStops:
    """Critically damped springs beyond the range of each joint; they push, and never pull back.

    They are as hard as the integration step allows.

    Args:
        lower: lower ends of the ranges (n,) [rad or m].
        upper: upper ends (n,).
        inertia: that each joint feels (n,) [kg m^2 or kg].
        step: of the integration [s].
    """

    def __init__(self, lower: Array, upper: Array, inertia: Array, step: float) -> None:
        self.lower = np.asarray(lower, dtype=np.float64)
        self.upper = np.asarray(upper, dtype=np.float64)
        frequency = 0.2 / step
        self._stiffness = np.asarray(inertia) * frequency**2
        self._damping = 2.0 * np.asarray(inertia) * frequency

    def efforts(self, positions: Array, velocities: Array) -> Array:
        """Efforts of the stops on the joints; zero inside the range.

        Args:
            positions: of the joints (n,) [rad or m].
            velocities: of the joints (n,) [rad/s or m/s].

        Returns:
            (n,) [N m or N].
        """
        out = np.empty(len(positions))
        stop_efforts(positions, velocities, self.lower, self.upper, self._stiffness, self._damping, out)
        return out
