# SPDX-License-Identifier: Apache-2.0
"""The controller node hears a force-torque sensor: it holds while that speaks, and lets go when it falls silent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState

from pkm_bringup.nodes.controller_node import ControllerNode
from pkm_control.operator_interface import Mode
from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_interfaces.msg import ControllerState
from pkm_kinematics import Kinematics

from .conftest import Graph

RATE = 100.0  # Hz


class Sensors:
    """Publishes the actuators at home and, while it `speaks`, the wrench of a sensor."""

    def __init__(self, graph: Graph) -> None:
        kinematics = Kinematics(load_mechanism("five_bar"))
        self._names = list(kinematics.actuated_names)
        self._positions = np.asarray(kinematics.inverse(kinematics.home).actuated).tolist()
        self._node = graph.client
        self._states = self._node.create_publisher(JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_OUT)
        self._wrenches = self._node.create_publisher(WrenchStamped, topics.FORCE_TORQUE, topics.STREAM_OUT)
        self._over = threading.Event()
        self.speaks, self.frame = True, ""

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _run(self) -> None:
        while not self._over.wait(1.0 / RATE):
            message = JointState(name=self._names, position=self._positions, velocity=[0.0] * len(self._names))
            message.header.stamp = self._node.get_clock().now().to_msg()
            if self.speaks:
                wrench = WrenchStamped()
                wrench.header.frame_id = self.frame
                self._wrenches.publish(wrench)
            self._states.publish(message)


def test_a_silent_sensor_is_noticed_and_heard_again(graph: Graph) -> None:
    graph.describe(load_mechanism("five_bar").urdf)
    graph.start(ControllerNode, law="admittance", rate=RATE, stale_periods=50)
    states: list[ControllerState] = []
    graph.client.create_subscription(ControllerState, topics.CONTROLLER_STATE, states.append, topics.STREAM_IN)
    sensors = Sensors(graph)
    with sensors.running():
        graph.wait(lambda: states and states[-1].mode == Mode.HOLDING)
        sensors.speaks = False
        graph.wait(lambda: states[-1].mode == Mode.STOPPED)
        assert "force sensor is silent" in states[-1].reason
        sensors.speaks, sensors.frame = True, "of_another_robot"
        before = len(states)
        graph.wait(lambda: len(states) > before + 20)
        assert states[-1].mode == Mode.STOPPED
        sensors.frame = "platform"
        graph.wait(lambda: states[-1].mode == Mode.HOLDING)
