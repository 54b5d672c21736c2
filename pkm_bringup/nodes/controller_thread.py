# SPDX-License-Identifier: Apache-2.0
"""The loop of a controller whose machine is in another process, in a thread here, paced by measured states."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import State
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_bringup.nodes.node_parts import loop_scheduling
from pkm_control.loop import requests
from pkm_control.loop.control_loop import ControlLoop, warm_up
from pkm_control.loop.follower_watches import ReadingRate
from pkm_control.loop.running_loop import Controls, LoopThread, Situation
from pkm_control.loop_settings import ControllerSettings
from pkm_control.robot_loop import build_follower
from pkm_control.ros.motion_messages import seconds
from pkm_description.mechanism import Array, Mechanism
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription, Sources
from pkm_description.ros.raw_rows import RawRows
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode, Lifecycle, Machine, MachineState
from pkm_runtime.errors import PkmError
from pkm_runtime.fixed_rate import AIR, OVERLOADED, sleep_precisely
from pkm_runtime.scheduling import settle

_LOOK_EVERY = 1e-4  # s, between two looks for a message that is due

_IN_USE = 1.0  # s since the last measured state: as long the robot is not exchanged
_SHARE = 0.7  # of a period, after which the next reading is looked for


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
        at = seconds(stamp)
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


class ControllerThread:
    """Answers each measured state as it comes, and silence when none comes.

    `controls` get the loop; `priority`: SCHED_FIFO priority of the thread, 0: ordinary; `publish` is called after each
    period, with the stamp of its reading.
    """

    def __init__(
        self, node: Node, controls: Controls, priority: int, publish: Callable[[Situation, Any], None]
    ) -> None:
        self._node, self._controls, self._priority, self._publish = node, controls, priority, publish
        self._heard = MachineTopics(node, self._machine_said)
        self._machine: TopicMachine | None = None
        self._thread: LoopThread | None = None
        self._measured: ReadingRate | None = None
        self._settings = ControllerSettings()
        self._began = 0.0  # s, monotonic: of the last period
        self._slow = 0  # periods in a row that took too long
        self._unread = True

    @property
    def rate(self) -> float:
        """Rate of the readings [Hz]."""
        return self._settings.rate if self._measured is None else self._measured.value

    @property
    def rate_is_known(self) -> bool:
        """Whether readings have been counted for long enough, or come as they should."""
        return self._measured is None or self._measured.settled or self.rate == self._settings.rate

    @property
    def busy(self) -> str:
        """Why no other robot can be taken now."""
        heard = self._machine is not None and time.monotonic() - self._machine.heard_at < _IN_USE
        return "states of the actuated joints come; clean up the hardware first" if heard else ""

    def look(self) -> None:
        """See who publishes measured states."""
        self._heard.sources.look()

    def build(
        self,
        mechanism: Mechanism,
        settings: ControllerSettings,
        sensor_frame: str,
        command: Callable[[Any, Array], None],
        repeated: bool = False,
    ) -> None:
        """Begin with a robot; `command` publishes a command with a stamp; `repeated`: its receiver repeats it."""
        warm_up(build_follower(mechanism, settings), shared_dynamics(mechanism).kinematics)
        follower = build_follower(mechanism, settings)
        self.end("a new robot description has come")
        node = self._node
        self._settings, self._unread = settings, True
        self._measured = ReadingRate(settings.rate, max(follower.guard.max_age, 0.1))
        limits = follower.controller.limits
        machine = self._machine = TopicMachine(self._heard, limits, command, sensor_frame, repeated)
        loop = ControlLoop(machine, follower, settings.rate)
        if self._heard.lifecycle_label:
            follower.machine.hear(self._heard.lifecycle_label)
        loop.on_output = lambda event: node.tell_outputs(follower.time, event.name, event.value)  # type: ignore[attr-defined]
        loop.on_payload = lambda payload: node.tell_payload(follower.time, payload)  # type: ignore[attr-defined]
        settle()
        thread = LoopThread(loop, self._pace, self._after, loop_scheduling(node, self._priority))
        self._thread = thread
        node.attach(thread)  # type: ignore[attr-defined]
        thread.start()

    def end(self, reason: str = "the controller ends") -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.tell(requests.end, reason)
            self._thread.end(2.0)
            self._thread = None

    def _machine_said(self, state: str) -> None:
        if self._thread is not None:
            self._thread.tell(requests.hear_machine, state)

    def _pace(self) -> int:
        machine, thread, period = self._machine, self._thread, 1.0 / self._settings.rate
        assert machine is not None
        if not self._began:
            sleep_precisely()
        busy = time.monotonic() - self._began
        self._slow = self._slow + 1 if self._began and busy > period else 0
        # where this computer does not keep the rate, others get a share of it
        air = AIR * min(busy, 4.0 * period) if self._slow > OVERLOADED else max(0.0, _SHARE * period - busy)
        time.sleep(min(air, 4.0 * period))
        max_age = self._settings.stale_periods * period
        machine.wait(max_age, lambda: thread is None or thread.ended or not self._node.context.ok())
        self._began = time.monotonic()
        if self._measured is not None and machine.heard_at == machine.time:
            stamp = machine.stamp
            self._measured.note(seconds(stamp))
            if self._unread:
                self._unread = False
                if thread is not None and self._heard.notifies:  # what comes faster may come first
                    thread.tell(requests.expect_machine)
        return 1

    def _after(self) -> None:
        thread, machine = self._thread, self._machine
        if thread is None or machine is None or self._controls.loop is not thread:
            return
        now = thread.situation
        fresh = machine.heard_at == machine.time
        stamp = machine.stamp if fresh else self._node.get_clock().now().to_msg()
        try:
            self._publish(now, stamp)
        except rclpy_implementation.RCLError:
            if self._node.context.ok():
                raise
