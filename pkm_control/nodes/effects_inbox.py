# SPDX-License-Identifier: Apache-2.0
"""Effects of motions besides moving the machine, from topics: outputs and payload."""

from __future__ import annotations

import threading
from collections.abc import Callable

from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node

from pkm_control.hardware.machine import Machine
from pkm_description.errors import PkmError
from pkm_description.mechanism import Inertial
from pkm_description.ros import topics
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_interfaces.msg import Outputs


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
        self._told: set[str] = set()  # problems, once each
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
        if problem not in self._told:
            self._told.add(problem)
            self._node.get_logger().warning(problem)
