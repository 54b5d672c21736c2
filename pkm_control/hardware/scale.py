# SPDX-License-Identifier: Apache-2.0
"""Units, signs and offsets between actuated joints and a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scale:
    """device = zero + units * (joint - offset), each (n_actuated,); `units` have the sign of the direction."""

    units: Array
    offset: Array
    zero: Array

    @staticmethod
    def one_to_one(n: int) -> Scale:
        """The scale of a device that speaks the units of the joints."""
        return Scale(np.ones(n), np.zeros(n), np.zeros(n))

    def to_device(self, joints: Array) -> Array:
        """The device's positions (n_actuated,) in its units for joint positions (n_actuated,) [rad or m]."""
        return np.asarray(self.zero + self.units * (joints - self.offset))

    def to_joints(self, device: Array) -> Array:
        """Joint positions (n_actuated,) [rad or m] for the device's (n_actuated,) in its units."""
        return np.asarray(self.offset + (device - self.zero) / self.units)
