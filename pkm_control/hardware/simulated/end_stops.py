# SPDX-License-Identifier: Apache-2.0
"""Mechanical end stops of the actuated joints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.kernels.platform_step import stop_efforts

Array = NDArray[np.float64]


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
