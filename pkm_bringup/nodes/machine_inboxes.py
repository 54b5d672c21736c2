# SPDX-License-Identifier: Apache-2.0
"""What a machine hears over topics, commands and effects of motions, taken by its own loop once per period instead of
by the node's executor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_description.mechanism import Array, Inertial
from pkm_description.ros import messages, topics
from pkm_description.ros.messages import RequestError
from pkm_description.ros.polled import PolledSubscription, Sources
from pkm_description.ros.raw_rows import RawRows, read_message
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_hardware.machine import CommandMode, Machine
from pkm_interfaces.msg import Outputs
from pkm_runtime.errors import PkmError

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


class EffectsInbox:
    """Hands outputs and payloads to a machine, including those that came before it existed.
    `machine` returns the present one, `lock` guards it.
    """

    def __init__(self, node: Node, machine: Callable[[], Machine | None], lock: threading.Lock) -> None:
        self._node = node
        self._machine = machine
        self._lock = lock
        self._outputs: dict[str, float] = {}
        self._payload: Inertial | None = None
        self._warned: set[str] = set()  # problems, once each
        node.create_subscription(Outputs, topics.OUTPUTS, self._set, topics.LATCHED_EVENTS)
        node.create_subscription(InertiaStamped, topics.PAYLOAD, self._carry, topics.LATCHED)

    def pass_on(self, machine: Machine) -> None:
        """Bring a new machine up to date; its lock is held, or nobody uses it yet."""
        for name, value in self._outputs.items():
            self._set_one(machine, name, value)
        if self._payload is not None:
            machine.carry(self._payload)

    def _set(self, message: Outputs) -> None:
        if len(message.names) != len(message.values):
            self._warn(f"outputs refused: {len(message.names)} names but {len(message.values)} values")
            return
        self._outputs = dict(zip(message.names, message.values, strict=True))
        with self._lock:
            machine = self._machine()
            if machine is not None:
                for name, value in self._outputs.items():
                    self._set_one(machine, name, value)

    def _set_one(self, machine: Machine, name: str, value: float) -> None:
        if machine.outputs.get(name) == value:
            return
        problem = machine.output_problem(name)
        if problem:
            self._warn(problem)
        else:
            machine.set_output(name, value)

    def _carry(self, message: InertiaStamped) -> None:
        try:
            payload = payload_of(message.inertia)
        except PkmError as error:
            self._warn(f"payload refused: {error}")
            return
        if payload is None and self._payload is None:
            return
        self._payload = payload
        with self._lock:
            machine = self._machine()
            if machine is not None:
                machine.carry(payload)

    def _warn(self, problem: str) -> None:
        if problem not in self._warned:
            self._warned.add(problem)
            self._node.get_logger().warning(problem)
