# SPDX-License-Identifier: Apache-2.0
"""What the module of a driver makes of a machine's file, and units, signs and offsets of the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array
from pkm_hardware.drivers.driver import Driver
from pkm_hardware.homing import AxisHoming


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


@dataclass(frozen=True, eq=False)
class Drives:
    """A machine's driver, its scale, its home position (n_actuated,) [rad or m] and the axes that need homing.
    For messages, `axes` names each actuator as the device does and `unit` is what the device counts in, where known.
    """

    driver: Driver
    scale: Scale
    home: Array
    homing: tuple[AxisHoming, ...] = ()
    axes: tuple[str, ...] = ()
    unit: str = ""
