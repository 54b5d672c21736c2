# SPDX-License-Identifier: Apache-2.0
"""What the module of a driver makes of a machine's file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.drivers.driver import Driver
from pkm_control.hardware.homing import AxisHoming
from pkm_control.hardware.scale import Scale

Array = NDArray[np.float64]


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
