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


def test_a_motion_begins_when_its_commands_are_passed_on(graph: Graph) -> None:
    mechanism = load_mechanism("delta")
    graph.describe(mechanism.urdf)
    told = graph.client.create_publisher(State, topics.COMMANDERS_STATE, topics.LATCHED)
    told.publish(State(id=State.PRIMARY_STATE_INACTIVE, label="inactive"))
    to_drives = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)
    passes = False

    def forward(message: Float64MultiArray) -> None:
        if passes:
            to_drives.publish(JointState(name=list(mechanism.actuated_joints), effort=message.data))

    graph.client.create_subscription(Float64MultiArray, COMMANDS, forward, topics.STREAM_IN)
    states: list[ControllerState] = graph.listen(ControllerState, topics.CONTROLLER_STATE)
    graph.start(ControllerNode, REMAP, rate=250.0, forward_to=COMMANDS, command_delay=2.0)
    graph.start(HardwareNode, None, rate=250.0)
    graph.wait(lambda: states and states[-1].mode == Mode.HOLDING, 120.0)
    with Robot.connect(graph.namespace) as robot:
        there = robot.state.pose + np.array([0.03, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        with pytest.raises((RefusedError, MotionEndedError), match="not active"):
            robot.move_to(there)
        with pytest.raises(RefusedError, match="did not accept the jog"):
            robot.jog(linear=[0.05, 0.0, 0.0])
        passes = True
        told.publish(State(id=State.PRIMARY_STATE_ACTIVE, label="active"))
        time.sleep(0.5)  # until it has heard of it
        assert robot.move_to(there, speed=0.1).result().max_position_error < 2e-3
