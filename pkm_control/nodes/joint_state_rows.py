# SPDX-License-Identifier: Apache-2.0
"""Measured states of the drives as messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState


def states_message(names: list[str], stamp: Any, numbers: NDArray[np.float64]) -> JointState:
    """A message of positions, velocities and efforts, concatenated in `numbers`."""
    position, velocity, effort = np.split(numbers, 3)
    message = JointState(name=names, position=position, velocity=velocity, effort=effort)
    message.header.stamp = stamp
    return message
