# SPDX-License-Identifier: Apache-2.0
"""A machine behind topics: its measured states, and commands to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import State
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_description.mechanism import Array
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription, Sources
from pkm_description.ros.raw_rows import RawRows
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode, Lifecycle, Machine, MachineState
from pkm_runtime.errors import PkmError

_LOOK_EVERY = 1e-4  # s, between two looks for a message that is due


class MachineTopics:
    """Subscriptions to a machine, whatever robot it is; `on_state` gets its life-cycle state."""

    def __init__(self, node: Node, on_state: Callable[[str], None]) -> None:
        self.node = node
        self.lifecycle_label = ""  # of its life cycle; empty: nothing yet
        self._on_state = on_state
        self.sources = Sources(node, topics.ACTUATED_JOINT_STATES, "measured states")
        self.states = PolledSubscription(
            node, JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_IN, raw=True, sources=self.sources
        )
        self.wrenches = PolledSubscription(node, WrenchStamped, topics.FORCE_TORQUE, topics.STREAM_IN)
        node.create_subscription(State, topics.MACHINE_STATE, self._hear, topics.LATCHED)

    def _hear(self, message: State) -> None:
        self.lifecycle_label = message.label
        self._on_state(message.label)

    @property
    def notifies(self) -> bool:
        """Whether a machine exists that reports its life cycle, and has not done so yet."""
        return not self.lifecycle_label and bool(self.node.count_publishers(topics.MACHINE_STATE))


class TopicMachine(Machine):
    """Reads what is published, and publishes what is written; its time is the clock's, that of readings their stamps.

    `publish` takes the stamp of the reading that is answered, and the command; `repeated` tells whether its receiver, a
    forward controller, repeats the last one.
    """

    modes = (CommandMode.EFFORT,)  # what commands mean is the publisher's
    real = elsewhere = True

    def __init__(
        self,
        heard: MachineTopics,
        limits: ActuatorLimits,
        publish: Callable[[Any, Array], None],
        sensor_frame: str,
        repeated: bool = False,
    ) -> None:
        super().__init__(limits)
        self.repeated = repeated
        n = len(limits.names)
        self.lifecycle = Lifecycle.ACTIVE  # the follower gets the true one from the machine
        self.stamp: Any = Time()  # of the last reading
        self.problem = ""  # why the last message was no reading
        self.heard_at = -np.inf  # s, monotonic: when the last reading came
        self._heard = heard
        self._publish = publish
        self._sensor_frame = sensor_frame
        self._rows = RawRows(JointState, partial(messages.reading_of, limits.names), 3, 8)
        self._state = MachineState(-np.inf, np.zeros(n), np.zeros(n), np.zeros(n), Lifecycle.ACTIVE)
        self.time = time.monotonic()

    def configure(self) -> None:
        """Nothing: the machine is there or not."""

    def activate(self) -> None:
        """Nothing: the machine has services for that."""

    def deactivate(self) -> None:
        """Nothing: a machine without commands disables its drives by itself."""

    def shut_down(self) -> str:
        """Nothing, as `deactivate`."""
        return ""

    def emergency_stop(self, reason: str = "") -> None:
        """Send no more commands: the machine then disables its drives by itself."""
        self.fault, self.lifecycle = reason, Lifecycle.FAULT

    def reset(self) -> None:
        """Send commands again."""
        self.fault, self.lifecycle = "", Lifecycle.ACTIVE

    @property
    def silent_for(self) -> float:
        """Zero: the machine itself knows."""
        return 0.0

    def wait(self, longest: float, ended: Callable[[], bool]) -> None:
        """Wait for the next reading, at most `longest` [s] or until `ended`."""
        until = time.monotonic() + longest
        while not ended():
            data = self._heard.states.take()
            self.time = time.monotonic()
            if data is not None and self._take(data):
                return
            if self.time > until:
                return
            time.sleep(_LOOK_EVERY)

    def _take(self, data: bytes) -> bool:
        try:
            stamp, numbers = self._rows.row(data)
            self.problem = self._heard.sources.problem
        except PkmError as error:
            self.problem = str(error)
        if self.problem:
            return False
        n = len(self.limits.names)
        at = stamp.sec + 1e-9 * stamp.nanosec
        self.stamp, self.heard_at = stamp, self.time
        state = MachineState(at, numbers[:n], numbers[n : 2 * n], np.zeros(n), Lifecycle.ACTIVE, wrench=self._wrench())
        self._state = state
        return True

    def _wrench(self) -> Array | None:
        message = self._heard.wrenches.take()
        if message is None or message.header.frame_id not in ("", self._sensor_frame):
            return None
        return messages.wrench_of(message.wrench)

    def read(self) -> MachineState:
        """The newest reading."""
        return self._state

    def write(self, command: Array, answers: float | None = None) -> None:
        """Publish a command."""
        self._publish(self.stamp, command)

    def step(self, dt: float) -> None:
        """Nothing: its time passes by itself."""
