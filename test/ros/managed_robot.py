# SPDX-License-Identifier: Apache-2.0
"""A robot under the real `ros2 launch` and the real controller_manager, for tests of what the stack does with it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lifecycle_msgs.msg import State
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectoryPoint

from pkm_bringup.ros2_control import MEASURED_STATES, TRAJECTORY
from pkm_control.ros.motion_messages import duration_message
from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_hardware.machine import Lifecycle
from pkm_kinematics import Kinematics

from .conftest import Graph
from .installed import STACK, not_installed

_SECOND = 250  # states, at the rate of these runs
_STILL = 2e-3  # rad or m


MISSING = not_installed(STACK)
needed = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


class Stack:
    """A launched robot, and a client."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.kinematics = Kinematics(load_mechanism(name))
        self.names = list(self.kinematics.actuated_names)
        self.measured: list[JointState] = graph.listen(JointState, MEASURED_STATES)
        self.complete: list[JointState] = graph.listen(JointState, topics.JOINT_STATES)
        self.machine: list[State] = []
        graph.client.create_subscription(State, topics.MACHINE_STATE, self.machine.append, topics.LATCHED)
        self.commands: list[JointState] = graph.listen(JointState, topics.HARDWARE_COMMANDS)

    def here(self) -> np.ndarray:
        return messages.joint_values(self.measured[-1], self.names, what="measured state")

    def rests(self) -> bool:
        """Whether the drives have stood still for a second, but for what their loops tremble."""
        last = np.array([messages.joint_values(one, self.names, what="state") for one in self.measured[-_SECOND:]])
        return len(last) == _SECOND and bool(np.ptp(last, axis=0).max() < _STILL)

    def states(self) -> dict[str, str]:
        """State of every controller that is loaded."""
        service = importlib.import_module("controller_manager_msgs.srv").ListControllers
        for patience in (10.0, 10.0, 60.0):  # a new client's first answer may be lost; to ask again changes nothing
            with suppress(AssertionError):
                answer = self.graph.call(service, "controller_manager/list_controllers", service.Request(), patience)
                return {one.name: one.state for one in answer.controller}
        pytest.fail("the controller manager does not answer")

    def go(self, ends: np.ndarray, seconds: float) -> tuple[Any, list[Any]]:
        """Send joint positions to be reached one after the other; the future of the result, and what errors come."""
        self.wait_for_controllers()
        handle, errors = self.offer(ends, seconds)
        assert handle.accepted
        return self.graph.in_executor(handle.get_result_async), errors

    def offer(self, ends: np.ndarray, seconds: float) -> tuple[Any, list[Any]]:
        """Send a goal that may be rejected; its handle, and what errors come."""
        action = importlib.import_module("control_msgs.action").FollowJointTrajectory
        client = ActionClient(self.graph.client, action, "joint_trajectory_controller/follow_joint_trajectory")
        self.graph.wait(client.server_is_ready)
        goal = action.Goal()
        goal.trajectory.joint_names = self.names
        for k, end in enumerate(ends, start=1):
            when = duration_message(seconds * k)
            goal.trajectory.points.append(
                JointTrajectoryPoint(positions=end, velocities=np.zeros(len(end)), time_from_start=when)
            )
        errors: list[Any] = []
        sent = self.graph.in_executor(
            lambda: client.send_goal_async(goal, feedback_callback=lambda f: errors.append(f.feedback.error.positions))
        )
        self.graph.wait(sent.done)
        return sent.result(), errors

    def fault(self) -> bool:
        """Whether the machine is in a fault, some time after something went wrong."""
        time.sleep(1.0)
        return bool(self.machine) and self.machine[-1].label == Lifecycle.FAULT.value

    def lead_back(self, wanted: str = TRAJECTORY) -> None:
        """Out of a fault, by the two steps that an operator takes; then the controllers are active again."""
        time.sleep(1.6)  # a machine is not reset before
        for step in (topics.RESET, topics.ENABLE):
            answer = self.graph.call(Trigger, step, Trigger.Request())
            assert answer.success, answer.message
        self.wait_for_controllers(wanted)

    def wait_for_controllers(self, wanted: str = TRAJECTORY) -> None:
        """On a busy computer, a silence of 0.1 s deactivates them for some seconds."""
        self.graph.wait(lambda: self.states().get(wanted) == "active", 20.0)

    def switch(self, start: str, stop: str) -> bool:
        service = importlib.import_module("controller_manager_msgs.srv").SwitchController
        request = service.Request(activate_controllers=[start], deactivate_controllers=[stop], strictness=2)
        return bool(self.graph.call(service, "controller_manager/switch_controller", request).ok)


@contextmanager
def launched(graph: Graph, name: str, log: Path, *settings: str, speaks: bool = True) -> Iterator[Stack]:
    """A robot of the gallery, launched in the namespace of a graph; at 250 Hz, which a busy computer keeps.

    Args:
        graph: in whose namespace.
        name: of the robot.
        log: where its output goes.
        settings: launch arguments besides; one loop per drive where they name no controllers.
        speaks: whether there is a machine to be waited for.
    """
    controllers = () if any(one.startswith("controllers:=") for one in settings) else (f"controllers:={TRAJECTORY}",)
    settings = ("ros2_control:=true", "rviz:=false", "rate:=250", "natural_frequency:=60", *controllers, *settings)
    command = ["ros2", "launch", "pkm_control", f"{name}.launch.py", *settings, f"namespace:={graph.namespace}"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        made = Stack(graph, name)
        if speaks:
            graph.wait(lambda: (made.complete and made.measured) or process.poll() is not None, 180.0)
        assert process.poll() is None, log.read_text()
        yield made
        process.send_signal(signal.SIGINT)
        process.wait(40.0)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        print(log.read_text())
