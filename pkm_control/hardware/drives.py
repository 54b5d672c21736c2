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
    """What a machine has: a driver, its scale, where home is (n_actuated,) [rad or m], and axes that need homing.

    `axes` says for people what the device calls each actuator, and `unit` in what it counts, where the driver tells.
    """

    driver: Driver
    scale: Scale
    home: Array
    homing: tuple[AxisHoming, ...] = ()
    axes: tuple[str, ...] = ()
    unit: str = ""
