# SPDX-License-Identifier: Apache-2.0
"""Our controller behind controllers of ros2_control that are not active: it begins no motion nothing would follow."""

from __future__ import annotations

import time

import numpy as np
import pytest
from lifecycle_msgs.msg import State
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from pkm_bringup.nodes.controller_node import ControllerNode
from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_client import MotionEndedError, RefusedError, Robot
from pkm_control.operator_interface import Mode
from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_interfaces.msg import ControllerState

from .conftest import Graph

REMAP = {"actuated_joint_states": "hardware/joint_states"}
COMMANDS = "forward/commands"


class Managed:
    """A Delta whose commands a forward controller passes on while it `passes`; `tell` tells ours whether it does."""

    def __init__(self, graph: Graph) -> None:
        mechanism = load_mechanism("delta")
        graph.describe(mechanism.urdf)
        self.passes = False
        self._names = list(mechanism.actuated_joints)
        self._told = graph.client.create_publisher(State, topics.COMMANDERS_STATE, topics.LATCHED)
        self._to_drives = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)
        self.tell(active=False)
        graph.client.create_subscription(Float64MultiArray, COMMANDS, self._forward, topics.STREAM_IN)
        states: list[ControllerState] = graph.listen(ControllerState, topics.CONTROLLER_STATE)
        graph.start(ControllerNode, REMAP, rate=250.0, forward_to=COMMANDS, command_delay=2.0)
        graph.start(HardwareNode, None, rate=250.0, patience=0.02)
        graph.wait(lambda: states and states[-1].mode == Mode.HOLDING, 120.0)

    def tell(self, *, active: bool) -> None:
        state = (State.PRIMARY_STATE_ACTIVE, "active") if active else (State.PRIMARY_STATE_INACTIVE, "inactive")
        self.passes = active
        self._told.publish(State(id=state[0], label=state[1]))
        time.sleep(0.5)  # until it has heard of it

    def _forward(self, message: Float64MultiArray) -> None:
        if self.passes:
            self._to_drives.publish(JointState(name=self._names, effort=message.data))


def aside(robot: Robot, distance: float) -> np.ndarray:
    return np.asarray(robot.state.pose) + np.array([distance, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_a_motion_begins_when_its_commands_are_passed_on(graph: Graph) -> None:
    managed = Managed(graph)
    with Robot.connect(graph.namespace) as robot:
        there = aside(robot, 0.03)
        with pytest.raises((RefusedError, MotionEndedError), match="not active"):
            robot.move_to(there)
        with pytest.raises(RefusedError, match="did not accept the jog"):
            robot.jog(linear=[0.05, 0.0, 0.0])
        managed.tell(active=True)
        assert robot.move_to(there, speed=0.1).result().max_position_error < 2e-3


def test_a_controller_that_stopped_is_recovered_before_its_commands_are_passed_on(graph: Graph) -> None:
    """Nobody passes on commands before there are some, and a stopped controller has none."""
    managed = Managed(graph)
    managed.tell(active=True)
    with Robot.connect(graph.namespace) as robot:
        task = robot.move_to(aside(robot, 0.15), speed=0.1, block=False)
        time.sleep(0.3)
        managed.passes = False
        graph.wait(lambda: "from where it should be" in robot.state.reason)
        managed.tell(active=False)
        with pytest.raises(MotionEndedError):
            task.result(10.0)
        assert "is held" in robot.recover()
        assert robot.state.mode is Mode.HOLDING
        with pytest.raises((RefusedError, MotionEndedError), match="not active"):
            robot.move_to(aside(robot, 0.03))
        managed.tell(active=True)
        assert robot.move_to(aside(robot, 0.03), speed=0.1).result().max_position_error < 2e-3
