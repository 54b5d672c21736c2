# SPDX-License-Identifier: Apache-2.0
"""The Delta driven by the real controller_manager and its standard controllers, started by the real `ros2 launch`.

Needs what is not on PyPI: a sourced ROS 2 installation with ros2_control, and a workspace in which this suite is built.
"""

from __future__ import annotations

import importlib
import subprocess
import time
from collections.abc import Iterator

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from pkm_description.ros import messages, topics
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits

from .conftest import Graph
from .managed_robot import Stack, launched, needed

pytestmark = needed


@pytest.fixture(scope="module")
def stack(shared_graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with launched(shared_graph, "delta", tmp_path_factory.mktemp("launch") / "launch.log") as made:
        yield made


def test_show_args_lists_the_settings() -> None:
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


def test_a_goal_to_stay_moves_nothing(stack: Stack) -> None:
    """By default the trajectory controller begins it with the last command, gravity in it, as feed-forward."""
    stack.graph.wait(stack.rests)
    found: list[JointState] = stack.graph.listen(JointState, topics.HARDWARE_STATES)
    stack.graph.wait(lambda: len(found) > 10)
    rest, sent = stack.here(), len(stack.commands)
    carrying = messages.joint_values(stack.commands[-1], stack.names, "effort", "command")
    done, _ = stack.go(rest[None, :], 1.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code == 0, done.result().result.error_string
    efforts = [messages.joint_values(one, stack.names, "effort", "command") for one in stack.commands[sent:]]
    way = np.array([messages.joint_values(one, stack.names, what="state") for one in found])
    assert np.abs(np.array(efforts) - carrying).max() < 0.5 * np.abs(carrying).max()  # by default, all of it
    assert np.abs(way - rest).max() < 1e-3  # by default, 6e-3


def test_a_goal_of_no_numbers_is_no_success_and_the_next_one_is_taken(stack: Stack) -> None:
    """The controller itself takes it, and commands it."""
    rest = stack.here()
    done, _ = stack.go(np.array([[np.nan, 0.0, 0.0]]), 1.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code != 0
    stack.graph.wait(lambda: stack.states()["joint_trajectory_controller"] == "active", 20.0)
    found: list[JointState] = stack.graph.listen(JointState, topics.HARDWARE_STATES)
    done, _ = stack.go(rest[None, :], 1.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code == 0, done.result().result.error_string
    way = np.array([messages.joint_values(one, stack.names, what="state") for one in found])
    assert np.abs(way - rest).max() < 0.03


def test_efforts_are_forwarded(stack: Stack) -> None:
    message_type = importlib.import_module("std_msgs.msg").Float64MultiArray
    pose = stack.kinematics.forward(stack.here(), near=np.asarray(stack.kinematics.home)).pose
    carrying = np.asarray(Dynamics(stack.kinematics).gravity(pose).effort)
    commands = stack.graph.client.create_publisher(message_type, "forward_effort_controller/commands", 1)
    assert stack.switch(start="forward_effort_controller", stop="joint_trajectory_controller")
    stack.graph.wait(commands.get_subscription_count)

    def forwarded() -> bool:
        commands.publish(message_type(data=carrying))  # again: who has just been discovered may not hear it yet
        return np.allclose(messages.joint_values(stack.commands[-1], stack.names, "effort", "command"), carrying)

    stack.graph.wait(forwarded)
    assert stack.switch(start="joint_trajectory_controller", stop="forward_effort_controller")


def test_what_cannot_be_reached_is_not_a_success(stack: Stack) -> None:
    before = stack.here()
    done, _ = stack.go(before + np.array([[100.0, 0.0, 0.0]]), 2.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code != 0
    assert np.all(stack.here() < ActuatorLimits.of(stack.kinematics.mechanism).upper + 0.02)
    stack.graph.wait(stack.rests)  # a goal begins at what was wanted last, and the arm flies past that
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
    time.sleep(0.5)  # what was sent before may be heard late
    sent = len(stack.commands)
    time.sleep(1.0)
    assert len(stack.commands) == sent, "somebody still commands"
    found: list[JointState] = stack.graph.listen(JointState, topics.HARDWARE_STATES)
    stack.lead_back()
    time.sleep(1.0)
    way = np.array([messages.joint_values(one, stack.names, what="state") for one in found])
    assert np.abs(way - way[0]).max() < 0.03
    done, _ = stack.go(way[:1] * 0.0, 1.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code == 0, done.result().result.error_string
