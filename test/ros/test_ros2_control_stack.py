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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectoryPoint

from pkm_control.motion.limits import ActuatorLimits
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

    def states(self) -> dict[str, str]:
        """State of every controller that is loaded."""
        service = importlib.import_module("controller_manager_msgs.srv").ListControllers
        answer = self.graph.call(service, "controller_manager/list_controllers", service.Request())
        return {one.name: one.state for one in answer.controller}

    def go(self, ends: np.ndarray, seconds: float) -> tuple[Any, list[Any]]:
        """Send joint positions to be reached one after the other; the future of the result, and what errors come."""
        action = importlib.import_module("control_msgs.action").FollowJointTrajectory
        client = ActionClient(self.graph.client, action, "joint_trajectory_controller/follow_joint_trajectory")
        self.graph.wait(client.server_is_ready)
        goal = action.Goal()
        goal.trajectory.joint_names = self.names
        for k, end in enumerate(ends, start=1):
            when = duration_message(seconds * k)
            goal.trajectory.points.append(
                JointTrajectoryPoint(positions=end, velocities=np.zeros(3), time_from_start=when)
            )
        errors: list[Any] = []
        sent = self.graph.in_executor(
            lambda: client.send_goal_async(goal, feedback_callback=lambda f: errors.append(f.feedback.error.positions))
        )
        self.graph.wait(sent.done)
        assert sent.result().accepted
        return self.graph.in_executor(sent.result().get_result_async), errors

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
    ends = np.array([[0.2, 0.0, -0.1], [0.1, 0.1, 0.1]])
    done, errors = stack.go(ends, 0.7)
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


def test_what_cannot_be_reached_is_not_a_success(stack: Stack) -> None:
    before = stack.here()
    done, _ = stack.go(before + np.array([[100.0, 0.0, 0.0]]), 2.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code != 0
    assert np.all(stack.here() < ActuatorLimits.of(stack.kinematics.mechanism).upper + 0.02)
    done, _ = stack.go(before[None, :], 1.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code == 0, done.result().result.error_string


def test_a_machine_that_falls_silent_stops_the_controllers_and_is_not_thrown_when_it_is_back(stack: Stack) -> None:
    done, _ = stack.go(np.array([[0.3, 0.3, 0.3]]), 4.0)
    time.sleep(1.0)
    assert stack.graph.call(Trigger, "hardware/emergency_stop", Trigger.Request()).success
    stack.graph.wait(lambda: stack.states()["joint_trajectory_controller"] == "inactive", 10.0)
    stack.graph.wait(done.done, 10.0)
    assert done.result().result.error_code != 0
    assert stack.states()["joint_state_broadcaster"] == "inactive", "the last state is repeated"
    sent = len(stack.efforts)
    time.sleep(1.6)
    assert len(stack.efforts) == sent, "somebody still commands"
    found: list[JointState] = stack.graph.listen(JointState, topics.HARDWARE_STATES)
    assert stack.graph.call(Trigger, "hardware/reset", Trigger.Request()).success
    stack.graph.wait(lambda: stack.states()["joint_trajectory_controller"] == "active", 20.0)
    time.sleep(1.0)
    way = np.array([messages.joint_values(one, stack.names, what="state") for one in found])
    assert np.abs(way - way[0]).max() < 0.03
    done, _ = stack.go(way[:1] * 0.0, 1.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code == 0, done.result().result.error_string
