# SPDX-License-Identifier: Apache-2.0
"""Commands for a machine, taken by its own loop once per period instead of by the node's executor."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_control.hardware.machine_state import CommandMode
from pkm_description.errors import PkmError
from pkm_description.ros import messages, topics
from pkm_description.ros.messages import RequestError
from pkm_description.ros.streams.polled import PolledSubscription
from pkm_description.ros.streams.raw_rows import RawRows, read_message
from pkm_description.ros.streams.sources import Sources

Array = NDArray[np.float64]

_FIELDS = (("effort", CommandMode.EFFORT), ("velocity", CommandMode.VELOCITY), ("position", CommandMode.POSITION))


class CommandInbox:
    """Takes JointState commands of one node; where several publish them, of none.
    `heard` is true once one was usable; `refused` counts the unusable ones, `problem` says why the last of them was.
    """

    def __init__(self, node: Node) -> None:
        self.heard = False
        self.stamp = 0.0  # s, of the newest usable command: that of the state it answers; 0 where it has none
        self.arrival = 0.0  # s, on the monotonic clock
        self.refused = 0
        self.problem = ""
        self.sources = Sources(node, topics.HARDWARE_COMMANDS, "commands")
        self._commands = PolledSubscription(
            node, JointState, topics.HARDWARE_COMMANDS, topics.STREAM_IN, raw=True, sources=self.sources
        )
        self._names: tuple[str, ...] = ()
        self._readers: dict[CommandMode, RawRows] = {}

    def newest(self, names: Sequence[str]) -> tuple[CommandMode, Array] | None:
        """The command (n_actuated,) since the last call, and its mode; None where none came."""
        data = self._commands.take()
        if data is None:
            return None
        if self.sources.problem:
            self.refuse(self.sources.problem)
            return None
        if self._names != tuple(names):
            self._names, self._readers = tuple(names), {}
        try:
            mode = self._mode_of(data)
            stamp, values = self._readers[mode].row(data)
        except PkmError as error:  # ros2_control sends NaN until a controller commands; a bad one is refused
            self.refuse(str(error))
            return None
        self.heard, self.problem = True, ""
        self.arrival = time.monotonic()
        self.stamp = stamp.sec + 1e-9 * stamp.nanosec
        return mode, values

    def _mode_of(self, data: bytes) -> CommandMode:
        """The mode of a serialised command, by its publisher, whose reader exists then."""
        for mode, reader in self._readers.items():
            if reader.knows(data):
                return mode
        message = read_message(data, JointState)
        for field, mode in _FIELDS:
            if len(getattr(message, field)):
                read = partial(_values_of, self._names, field)
                self._readers.setdefault(mode, RawRows(JointState, read))
                return mode
        raise RequestError("a command without values")

    def refuse(self, problem: str) -> None:
        """Count an unusable command, with the reason."""
        self.refused += 1
        self.problem = problem


def _values_of(names: Sequence[str], field: str, message: JointState) -> Array:
    return messages.joint_values(message, names, field, "command")
