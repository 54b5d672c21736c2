# SPDX-License-Identifier: Apache-2.0
"""Limits that a device itself is asked to keep to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.homing import AxisHoming
from pkm_control.hardware.machine_file import MachineFile
from pkm_control.hardware.scale import Scale
from pkm_control.motion.limits import ActuatorLimits
from pkm_description.mechanism import Mechanism

Array = NDArray[np.float64]

FASTER = 1.2  # times the actuator's largest speed: with less, a drive that lags could not catch up


@dataclass(frozen=True, eq=False)
class DeviceLimits:
    """Of each actuator (n_actuated,), in the device's units, infinite where nothing limits it."""

    lowest: Array
    highest: Array
    speed: Array
    current: Array


def device_limits(file: MachineFile, mechanism: Mechanism, scale: Scale, homing: Sequence[AxisHoming]) -> DeviceLimits:
    """The limits of the description and the file in the device's units; `current` is the file's alone.

    The ranges of axes with `homing` are unknown, since the device does not know their position. MachineFileError: a
    current makes no sense.
    """
    limits = file.lowered(ActuatorLimits.of(mechanism))
    ends = np.stack([scale.to_device(limits.lower), scale.to_device(limits.upper)])
    lowest, highest = ends.min(axis=0), ends.max(axis=0)
    for axis in homing:
        lowest[axis.actuator], highest[axis.actuator] = -np.inf, np.inf
    current = [
        section.number("current", bounds=(1e-3, 1e5)) if section.has("current") else np.inf
        for section in file.of(mechanism)
    ]
    return DeviceLimits(lowest, highest, limits.velocity * np.abs(scale.units), np.array(current))
