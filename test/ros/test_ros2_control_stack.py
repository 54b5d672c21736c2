# SPDX-License-Identifier: Apache-2.0
"""The Delta driven by the real controller_manager and its standard controllers, started by the real `ros2 launch`.

Needs what is not on PyPI: a sourced ROS 2 installation with ros2_control, and a workspace in which this suite is built.
The loops run at 250 Hz here, so that a busy computer keeps them.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from pkm_control.nodes.motion_messages import duration_message
from pkm_control.run.ros2_control import MEASURED_STATES
from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics

from .conftest import Graph

STACK = (
    "pkm_control",
    "ros2launch",
    "robot_state_publisher",
    "controller_manager",
    "joint_state_broadcaster",
    "joint_trajectory_controller",
    "forward_command_controller",
    "joint_state_topic_hardware_interface",
)


def missing() -> list[str]:
    found = []
    for package in STACK:
        try:
            get_package_prefix(package)
        except (PackageNotFoundError, OSError):  # OSError: nothing is sourced
            found.append(package)
    return found


pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")


class Stack:
    """The launched robot, and a client."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinematics = Kinematics(load_mechanism("delta"))
        self.names = list(self.kinematics.actuated_names)
        self.measured: list[JointState] = graph.listen(JointState, MEASURED_STATES)
        self.complete: list[JointState] = graph.listen(JointState, topics.JOINT_STATES)
        self.efforts: list[JointState] = graph.listen(JointState, topics.HARDWARE_COMMANDS)

    def here(self) -> np.ndarray:
        return messages.joint_values(self.measured[-1], self.names, what="measured state")

    def switch(self, start: str, stop: str) -> bool:
        service = importlib.import_module("controller_manager_msgs.srv").SwitchController
        request = service.Request(activate_controllers=[start], deactivate_controllers=[stop], strictness=2)
        return bool(self.graph.call(service, "controller_manager/switch_controller", request).ok)


@pytest.fixture(scope="module")
def stack(shared_graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    log: Path = tmp_path_factory.mktemp("launch") / "launch.log"
    knobs = ("ros2_control:=true", "rviz:=false", "rate:=250", "natural_frequency:=60")
    command = ["ros2", "launch", "pkm_control", "delta.launch.py", *knobs, f"namespace:={shared_graph.namespace}"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        made = Stack(shared_graph)
        shared_graph.wait(lambda: (made.complete and made.measured) or process.poll() is not None, 180.0)
        assert process.poll() is None, log.read_text()
        yield made
        process.send_signal(signal.SIGINT)
        process.wait(40.0)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        print(log.read_text())


def test_show_args_lists_the_knobs() -> None:
    command = ["ros2", "launch", "pkm_control", "delta.launch.py", "--show-args"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=True).stdout
    for name in ("robot", "controller", "rviz", "ros2_control"):
        assert f"'{name}':" in shown


def test_the_broadcaster_gives_driven_joints_and_the_kinematics_all(stack: Stack) -> None:
    assert set(stack.measured[-1].name) == set(stack.names)
    assert set(stack.complete[-1].name) == set(stack.kinematics.joint_names)


def test_a_joint_trajectory_is_followed(stack: Stack) -> None:
    action = importlib.import_module("control_msgs.action").FollowJointTrajectory
    client = ActionClient(stack.graph.client, action, "joint_trajectory_controller/follow_joint_trajectory")
    stack.graph.wait(client.server_is_ready)
    ends = np.array([[0.2, 0.0, -0.1], [0.1, 0.1, 0.1]])
    goal = action.Goal()
    goal.trajectory.joint_names = stack.names
    for k, end in enumerate(ends, start=1):
        point = JointTrajectoryPoint(positions=end, velocities=np.zeros(3), time_from_start=duration_message(0.7 * k))
        goal.trajectory.points.append(point)
    errors: list[Any] = []
    sent = stack.graph.in_executor(
        lambda: client.send_goal_async(goal, feedback_callback=lambda f: errors.append(f.feedback.error.positions))
    )
    stack.graph.wait(sent.done)
    done = stack.graph.in_executor(sent.result().get_result_async)
    stack.graph.wait(done.done)
    result = done.result().result
    assert result.error_code == 0, result.error_string
    assert errors
    assert np.abs(errors).max() < 0.05
    stack.graph.wait(lambda: np.abs(stack.here() - ends[-1]).max() < 0.005)


def test_efforts_are_forwarded(stack: Stack) -> None:
    message_type = importlib.import_module("std_msgs.msg").Float64MultiArray
    pose = stack.kinematics.forward(stack.here(), near=np.asarray(stack.kinematics.home)).pose
    carrying = np.asarray(Dynamics(stack.kinematics).gravity(pose).effort)
    commands = stack.graph.client.create_publisher(message_type, "forward_effort_controller/commands", 1)
    assert stack.switch(start="forward_effort_controller", stop="joint_trajectory_controller")
    stack.graph.wait(commands.get_subscription_count)
    commands.publish(message_type(data=carrying))
    stack.graph.wait(
        lambda: np.allclose(messages.joint_values(stack.efforts[-1], stack.names, "effort", "command"), carrying)
    )
    assert stack.switch(start="joint_trajectory_controller", stop="forward_effort_controller")
