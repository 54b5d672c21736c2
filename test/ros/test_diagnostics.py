# SPDX-License-Identifier: Apache-2.0
"""What nodes say of themselves where something around them is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, Joy

from pkm_bringup.nodes.controller_node import ControllerNode
from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_bringup.nodes.joystick_node import JoystickNode
from pkm_description import load_mechanism
from pkm_description.gallery import EXAMPLES
from pkm_description.ros import topics
from pkm_kinematics import Kinematics
from pkm_kinematics.ros.kinematics_node import KinematicsNode

from .conftest import Graph

COMMANDED = [  # a robot, how far one drive is moved from home [rad or m], what is said
    ("planar_redundant", 0.005, "positions are inconsistent"),
    ("planar_redundant", 0.5, "no pose of the platform"),
    ("delta", 2.0, "beyond limits"),
]


def test_a_clock_that_never_speaks_is_told(graph: Graph) -> None:
    """Nodes that are to take their time from `/clock` neither stand still nor are silent where nobody publishes it."""
    heard = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    graph.start(KinematicsNode, robot_description=load_mechanism("five_bar").urdf, use_sim_time=True)

    def newest() -> DiagnosticStatus | None:
        found = [status for array in heard for status in array.status if status.name.startswith(graph.namespace)]
        return found[-1] if found else None

    graph.wait(lambda: newest() is not None)
    assert newest().level == DiagnosticStatus.ERROR
    assert "no time has come on /clock" in newest().message
    clock = graph.client.create_publisher(Clock, "/clock", topics.EVENTS)

    def tick() -> bool:
        message = Clock()
        message.clock.sec = 5
        clock.publish(message)
        return "/clock" not in newest().message

    graph.wait(tick)


def test_a_command_that_the_machine_does_not_take_is_told(graph: Graph) -> None:
    """An effort of 1 N m is not taken for an angle of 1 rad."""
    heard = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    mechanism = load_mechanism("five_bar")
    values = {"machine": "loopback", "start": "active", "rate": 100.0}
    graph.start(HardwareNode, robot_description=mechanism.urdf, **values)
    out = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)

    def told() -> bool:
        out.publish(JointState(name=list(mechanism.actuated_joints), effort=[1.0, 1.0]))
        said = " ".join(status.message for array in heard for status in array.status)
        return "a command by effort: this machine takes position" in said

    graph.wait(told)


def test_commands_of_a_stranger_are_noticed(graph: Graph) -> None:
    heard = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    graph.start(HardwareNode, robot_description=load_mechanism("five_bar").urdf)
    graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)
    stranger = Node("stranger", context=graph.context, namespace=graph.namespace)
    stranger.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)

    def told() -> str:
        return " ".join(status.message for array in heard for status in array.status)

    graph.wait(lambda: f"commands come from 2 nodes: {graph.namespace}/client, {graph.namespace}/stranger" in told())
    stranger.destroy_node()


@pytest.mark.parametrize(("robot", "moved", "said"), COMMANDED)
def test_positions_that_drives_cannot_stay_at_are_told(graph: Graph, robot: str, moved: float, said: str) -> None:
    """A controller of single joints takes any: of redundant drives, such as they cannot all have; or beyond limits."""
    heard = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    kinematics = Kinematics(load_mechanism(robot))
    names, home = list(kinematics.actuated_names), np.asarray(kinematics.inverse(kinematics.home).actuated)
    node = graph.start(KinematicsNode, robot_description=kinematics.mechanism.urdf, commands=topics.HARDWARE_COMMANDS)
    states = graph.client.create_publisher(JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_OUT)
    commands = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)

    def newest(wanted: np.ndarray) -> DiagnosticStatus | None:
        states.publish(JointState(name=names, position=home, velocity=np.zeros(len(names))))
        commands.publish(JointState(name=names, position=wanted))
        own = node.get_fully_qualified_name()
        found = [status for array in heard for status in array.status if status.name == own]
        return found[-1] if found else None

    def is_told(wanted: np.ndarray) -> bool:
        status = newest(wanted)
        return status is not None and status.level == DiagnosticStatus.WARN and said in status.message

    def is_well(wanted: np.ndarray) -> bool:
        status = newest(wanted)
        return status is not None and status.level == DiagnosticStatus.OK

    beside = home.copy()
    beside[0] += moved
    graph.wait(lambda: is_well(home))
    graph.wait(lambda: is_told(beside))
    graph.wait(lambda: is_well(home))


def status_of(heard: list[DiagnosticArray], node: str) -> DiagnosticStatus | None:
    found = [status for array in heard for status in array.status if status.name.endswith(node)]
    return found[-1] if found else None


def test_a_joystick_that_is_not_heard_is_told(graph: Graph) -> None:
    heard = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    graph.start(JoystickNode)
    graph.wait(lambda: (one := status_of(heard, "joystick")) is not None and one.level == DiagnosticStatus.WARN)
    assert "no joystick is heard" in status_of(heard, "joystick").message
    out = graph.client.create_publisher(Joy, topics.JOY, topics.EVENTS)

    def well() -> bool:
        out.publish(Joy(axes=[0.0] * 8, buttons=[0] * 8))
        return bool(status_of(heard, "joystick").level == DiagnosticStatus.OK)

    graph.wait(well)
    assert "button is not held" in status_of(heard, "joystick").message


def test_a_conveyor_that_is_not_heard_is_told(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / "conveyors.yaml"
    file.write_text((EXAMPLES / "conveyor.yaml").read_text())
    heard = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    mechanism = load_mechanism("delta")
    graph.start(ControllerNode, robot_description=mechanism.urdf, conveyor_file=str(file), rate=100.0)
    at = list(Kinematics(mechanism).inverse(Kinematics(mechanism).home).actuated)
    out = graph.client.create_publisher(JointState, "actuated_joint_states", topics.STREAM_OUT)

    def told() -> bool:
        message = JointState(name=list(mechanism.actuated_joints), position=at, velocity=[0.0] * 3)
        message.header.stamp = graph.client.get_clock().now().to_msg()
        out.publish(message)
        now = status_of(heard, "controller")
        return now is not None and "no reading of conveyor 'belt'" in now.message

    graph.wait(told)
    assert status_of(heard, "controller").level == DiagnosticStatus.WARN
