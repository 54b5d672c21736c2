# SPDX-License-Identifier: Apache-2.0
"""Commands for a machine, taken by its own loop once per period instead of by the node's executor."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_control.hardware.machine_state import CommandMode
from pkm_description.errors import PkmError
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription

Array = NDArray[np.float64]

_FIELDS = (("effort", CommandMode.EFFORT), ("velocity", CommandMode.VELOCITY), ("position", CommandMode.POSITION))


class CommandInbox:
    """Takes JointState commands.

    `heard` is true once one was usable; `refused` counts those that were not, `problem` says why the last of them was.

    Args:
        node: that subscribes.
    """

    def __init__(self, node: Node) -> None:
        self.heard = False
        self.stamp = 0.0  # s, of the newest usable command: that of the state it answers; 0 where it has none
        self.arrival = 0.0  # s, on the monotonic clock
        self.refused = 0
        self.problem = ""
        self._node = node
        self._commands = PolledSubscription(node, JointState, topics.HARDWARE_COMMANDS, topics.STREAM_IN)

    def newest(self, names: Sequence[str]) -> tuple[CommandMode, Array] | None:
        """Return the command (n_actuated,) that came since the last call, and what it means; None where none did."""
        message = self._commands.take()
        if message is None:
            return None
        for field, mode in _FIELDS:
            if len(getattr(message, field)):
                try:
                    values = messages.joint_values(message, names, field, "command")
                except PkmError as error:  # ros2_control sends NaN until a controller commands; a bad one is refused
                    self.refuse(str(error))
                    return None
                self.heard, self.problem = True, ""
                self.arrival = time.monotonic()
                self.stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
                return mode, values
        self.refuse("a command without values")
        return None

    def publishers(self) -> list[str]:
        """Full names of the nodes that publish commands, sorted."""
        found = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name(topics.HARDWARE_COMMANDS))
        return sorted(f"{one.node_namespace.rstrip('/')}/{one.node_name}" for one in found)

    def refuse(self, problem: str) -> None:
        """Count a command that cannot be used.

        Args:
            problem: why.
        """
        self.refused += 1
        self.problem = problem
