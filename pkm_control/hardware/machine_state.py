# SPDX-License-Identifier: Apache-2.0
"""The state that a machine reports, and the states of its life cycle."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Lifecycle(Enum):
    """States of the life cycle, as `hardware_interface` names them; FAULT is where an error leaves the machine."""

    UNCONFIGURED = "unconfigured"
    INACTIVE = "inactive"  # readable, brakes closed
    ACTIVE = "active"  # brakes open, drives follow commands
    FAULT = "fault"  # brakes closed, drives off, until configured anew


class CommandMode(Enum):
    """What a command means, by the name of the ros2_control command interface."""

    EFFORT = "effort"
    POSITION = "position"
    VELOCITY = "velocity"


@dataclass(frozen=True, eq=False)
class MachineState:
    """A reading: positions, velocities and efforts (n_actuated,) of the actuators.

    `time` [s] of the machine's clock at which it was taken: it stands still as long as no new reading comes. `wrench`
    (6,) is the force-torque sensor's reading of the load on the platform, in the sensor's frame [N, N m]; None without
    sensor. `fault` is empty unless the life cycle is FAULT; the readings are then the last good ones, never NaN.
    """

    time: float
    positions: Array
    velocities: Array
    efforts: Array
    lifecycle: Lifecycle
    fault: str = ""
    wrench: Array | None = None
