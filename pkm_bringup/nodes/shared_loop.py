# SPDX-License-Identifier: Apache-2.0
"""The common loop of hardware node and controller node, in its own process; they publish its results."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.node import Node

from pkm_control.loop.jogging import Jog
from pkm_control.loop.loop_process import LoopProcess
from pkm_control.loop_settings import ControllerSettings, MachineSettings
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.path_events import OutputEvent
from pkm_control.robot_loop import build_robot_loop, last_resort
from pkm_description.mechanism import Mechanism
from pkm_description.ros.periodic import OwnThread

Planning = Callable[[int], tuple[CurveCheck, Jog]]


class SharedLoop:
    """Builds the loop when both nodes know their robot; to be made before the process has another thread."""

    def __init__(self) -> None:
        self.process = LoopProcess()
        self._machine: tuple[Mechanism, MachineSettings, Any] | None = None
        self._controller: tuple[Mechanism, ControllerSettings, Planning, int, Any] | None = None
        self._node: Node | None = None
        self._publishing: OwnThread | None = None
        self._published = 0.0  # s: wake of the period that was published last
        self.running = False

    @property
    def busy(self) -> str:
        """Why no other robot can be taken now."""
        return "the machine is configured; clean it up first" if self.running else ""

    def offer_machine(self, mechanism: Mechanism, settings: MachineSettings, node: Any, rate: float) -> None:
        """The hardware node knows its robot; its streams are published at a rate [Hz]."""
        self._machine = mechanism, settings, node
        if self._publishing is None:
            self._node = node
            self.process.say = node.get_logger().warning
            self._publishing = OwnThread(node, 1.0 / rate, self._publish)
        self._build()

    def offer_controller(
        self, mechanism: Mechanism, settings: ControllerSettings, planning: Planning, priority: int, node: Any
    ) -> None:
        """The controller node knows its robot."""
        self._controller = mechanism, settings, planning, priority, node
        self._build()

    def _build(self) -> None:
        if self._machine is None or self._controller is None:
            return
        robot, machine, hardware = self._machine
        same, settings, planning, priority, controller = self._controller
        if robot is not same:  # the other description is on its way
            return
        self.process.on_output = lambda at, event: self._output(controller, at, event)
        self.process.on_payload = lambda at, payload: controller.tell_payload(self.node_time(at), payload)
        self.process.build(
            build_robot_loop,
            (robot.urdf, machine, settings),
            planning,
            0 if machine.simulate else priority,  # its device is a thread beside the loop, which left it no time
            partial(last_resort, robot, machine),
        )
        controller.attach(self.process)
        hardware.attach()

    def _output(self, controller: Any, at: float, event: OutputEvent) -> None:
        controller.tell_outputs(self.node_time(at), event.name, event.value)

    def end(self) -> str:
        """End the process, drives off; returns the warning where a drive may still be on."""
        self.end_publishing()
        self.running = False
        return self.process.end()

    def end_publishing(self) -> None:
        """Publish no more: a node is about to go."""
        if self._publishing is not None:
            self._publishing.end()
            self._publishing = None

    # Clocks: the loop has the machine's, and stamps the beginnings of its periods by the monotonic one

    def _node_now(self) -> float:
        assert self._node is not None
        return 1e-9 * self._node.get_clock().now().nanoseconds

    def loop_time(self, stamp: float) -> float:
        """A time of the nodes' clock on the loop's [s]."""
        now = self.process.situation
        return stamp - (self._node_now() - (time.monotonic() - now.wake)) + now.now

    def node_time(self, at: float) -> float:
        """A time of the loop on the nodes' clock [s]."""
        if not self.process.begun:
            return self._node_now()
        now = self.process.situation
        return at - now.now + (self._node_now() - (time.monotonic() - now.wake))

    def _publish(self) -> None:
        """Publish the newest period, by a stamp that follows the nodes' clock wherever that goes."""
        if not self.process.begun or self._node is None:
            return
        now = self.process.situation
        if (now.wake == self._published and now.readable) or self._machine is None or self._controller is None:
            return
        self._published = now.wake
        ago = time.monotonic() - now.wake if now.readable else 0.0
        at = max(0, self._node.get_clock().now().nanoseconds - round(1e9 * ago))  # a clock may begin at 0
        stamp = Time(sec=at // 1_000_000_000, nanosec=at % 1_000_000_000)
        self._machine[2].publish(now, stamp)
        self._controller[4].publish(now, stamp)
