# SPDX-License-Identifier: Apache-2.0
"""What a bad day does to the running robot: nodes that are killed, and nodes that stand still for two seconds.

Whatever happens to whichever node, at any moment of a motion: the platform comes to rest on its brakes without falling,
somebody says that something is wrong, and when the node is back the robot moves again, with the others as they were.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from pkm_bringup import bringup
from pkm_bringup.runner import ProcessGroup, ros_arguments, set_up_discovery
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.ros.motion_messages import duration_message
from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, PlatformState, PlatformTrajectory, PlatformTrajectoryPoint, SolveStatus
from pkm_kinematics import Kinematics

from .conftest import Graph

RATE = 250.0
NODES = ("control", "kinematics", "dynamics")
PAUSE = 2.0  # s that a node stands still
_REST = 1e-3  # rad/s: an actuator that does not move
_WHILE = 0.4  # s


class Processes:
    """The nodes of a robot, one process each, and what they publish."""

    def __init__(self, graph: Graph, group: ProcessGroup) -> None:
        self.graph, self.group = graph, group
        self.kinematics = Kinematics(load_mechanism("delta"))
        self.home = np.array(self.kinematics.home)
        self.values = bringup.defaults(namespace=graph.namespace, rate=str(RATE), natural_frequency="40")
        graph.describe(self.kinematics.mechanism.urdf)
        for name in NODES:
            self.start(name)
        self.controller: list[ControllerState] = graph.listen(ControllerState, topics.CONTROLLER_STATE)
        self.platform: list[PlatformState] = graph.listen(PlatformState, topics.PLATFORM_STATE)
        self.readings: list[JointState] = graph.listen(JointState, topics.HARDWARE_STATES)
        self.diagnostics: list[DiagnosticArray] = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
        self.client = ActionClient(graph.client, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
        self.well()

    def start(self, name: str) -> None:
        """Start a node anew."""
        (spec,) = (spec for spec in bringup.NODES if spec.name == name)
        command = [sys.executable, "-m", "pkm_bringup.start", spec.executable, *ros_arguments(spec, self.values)]
        self.group.start(spec, subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))

    def forget(self) -> None:
        """Drop what was heard so far."""
        for heard in (self.controller, self.platform, self.readings, self.diagnostics):
            heard.clear()

    def well(self) -> None:
        """Wait until all is as it should be, by what is published from now on."""
        self.forget()
        self.graph.wait(self._is_well, 120.0)

    def _is_well(self) -> bool:
        return bool(
            self.controller
            and self.controller[-1].mode == Mode.HOLDING
            and self.platform
            and self.platform[-1].status.code == SolveStatus.CONVERGED
            and self.client.server_is_ready()
        )

    def circle(self, cycles: int) -> FollowPlatformTrajectory.Goal:
        """A goal around home, from where the platform is held."""
        here = messages.pose_of(self.controller[-1].reference.pose)
        trajectory, at = PlatformTrajectory(cycles=1), 0.0
        poses = [here]
        for angle in np.linspace(0.0, 2.0 * np.pi * cycles, 8 * cycles + 1):
            pose = self.home.copy()
            pose[:3] += 0.05 * np.array([np.cos(angle), np.sin(angle), 0.3 * np.sin(angle)])
            poses.append(pose)
        for k, pose in enumerate(poses):
            at += 0.0 if k == 0 else 0.8 if k == 1 else 0.15
            point = PlatformTrajectoryPoint(pose=messages.to_pose(pose), time_from_start=duration_message(at))
            trajectory.points.append(point)
        return FollowPlatformTrajectory.Goal(trajectory=trajectory)

    def follow(self, cycles: int) -> tuple[int, str]:
        """Run a motion to its end; its outcome, and why."""
        self.well()
        sent = self.graph.in_executor(lambda: self.client.send_goal_async(self.circle(cycles)))
        self.graph.wait(sent.done)
        done = self.graph.in_executor(sent.result().get_result_async)
        self.graph.wait(done.done)
        result = done.result().result
        return result.error_code, result.error_string

    def begin(self) -> None:
        """Begin a long motion, and wait until it is under way."""
        self.well()
        self.graph.in_executor(lambda: self.client.send_goal_async(self.circle(40)))
        self.graph.wait(lambda: self.controller[-1].mode == Mode.TRACKING)

    def rests(self) -> bool:
        """Has nothing moved for a while? A motion begins slowly, too, and so does a fall."""
        newest = list(self.readings)[-round(_WHILE * RATE) :]
        return len(newest) == round(_WHILE * RATE) and all(np.abs(r.velocity).max() < _REST for r in newest)

    def errors(self) -> set[str]:
        return {
            status.name.rpartition("/")[2]
            for array in list(self.diagnostics)
            for status in array.status
            if status.level in (DiagnosticStatus.ERROR, DiagnosticStatus.STALE)
        }

    def story(self) -> list[str]:
        """What the controller said since `forget`: its modes, with the reasons that it gave, one after the other."""
        said = [f"{Mode(state.mode).name} {re.sub(r'[0-9.]+', '#', state.reason)}" for state in list(self.controller)]
        first = [k for k in range(len(said)) if k == 0 or said[k] != said[k - 1]]
        return [f"{k}: {Mode(self.controller[k].mode).name} {self.controller[k].reason}" for k in first]

    def height(self) -> float:
        """Of the platform [m], by the newest reading."""
        q = messages.joint_values(self.readings[-1], self.kinematics.actuated_names)
        found = self.kinematics.forward(q, near=self.home)
        return float(found.pose[2])


@pytest.fixture(scope="module")
def robot(shared_graph: Graph) -> Iterator[Processes]:
    set_up_discovery()
    group = ProcessGroup()
    try:
        yield Processes(shared_graph, group)
    finally:
        group.stop()


def a_bad_day(robot: Processes, name: str, killed: bool, moment: float) -> None:
    """A node is killed, or stands still, `moment` s after a motion has begun; and comes back."""
    assert robot.follow(1) == (Outcome.SUCCESSFUL, ""), robot.story()
    robot.begin()
    time.sleep(moment)
    assert robot.controller[-1].mode == Mode.TRACKING, robot.story()
    robot.forget()
    pid = robot.group.processes[name].pid
    loops = children(robot.group.processes["control"].pid)
    assert len(loops) == 1
    os.kill(pid, signal.SIGKILL if killed else signal.SIGSTOP)
    began = time.monotonic()
    if name == "control":
        if killed:  # the process of the loop turns the drives off, and goes too
            robot.graph.wait(lambda: not any(alive(one) for one in loops), 2.0)
            robot.graph.wait(lambda: "kinematics" in robot.errors(), 10.0)
    elif killed:
        time.sleep(PAUSE)  # the motion goes on without it
        assert robot.controller[-1].mode == Mode.TRACKING, robot.story()
    time.sleep(max(0.0, PAUSE - (time.monotonic() - began)))
    if killed:
        robot.start(name)
    else:
        os.kill(pid, signal.SIGCONT)
    if name == "control" and not killed:  # nobody could have stopped the motion, so it came to rest on its path
        robot.graph.wait(lambda: robot.controller and robot.controller[-1].mode == Mode.HOLDING, 5.0)
    elif not killed or name != "control":  # the motion goes on meanwhile
        robot.graph.wait(lambda: robot.platform and robot.platform[-1].status.code == SolveStatus.CONVERGED, 60.0)
        assert robot.controller[-1].mode == Mode.TRACKING, robot.story()
        _stop(robot)
    robot.well()
    assert robot.follow(1) == (Outcome.SUCCESSFUL, ""), robot.story()


def _stop(robot: Processes) -> None:
    assert robot.graph.call(Trigger, topics.STOP, Trigger.Request()).success
    robot.graph.wait(lambda: robot.controller[-1].mode == Mode.HOLDING)


def children(pid: int) -> list[int]:
    """Processes that a process has begun."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.by_day(True)
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
def test_machine_and_controller_once(robot: Processes, killed: bool) -> None:
    a_bad_day(robot, "control", killed, 1.5)


def test_a_process_that_stands_still_for_long_loses_its_drives(robot: Processes) -> None:
    robot.begin()
    pid = robot.group.processes["control"].pid
    os.kill(pid, signal.SIGSTOP)
    time.sleep(4.0)
    robot.forget()
    os.kill(pid, signal.SIGCONT)
    robot.graph.wait(lambda: "hardware" in robot.errors(), 5.0)
    said = [one.message for array in list(robot.diagnostics) for one in array.status]
    assert any("nobody could stop it" in one for one in said)
    for name in (topics.RESET, topics.ENABLE):
        assert robot.graph.call(Trigger, name, Trigger.Request()).success
    robot.graph.wait(lambda: robot.controller[-1].mode == Mode.HOLDING)


def test_a_loop_that_stands_still_is_told(robot: Processes) -> None:
    robot.well()
    (loop,) = children(robot.group.processes["control"].pid)
    os.kill(loop, signal.SIGSTOP)
    robot.graph.wait(lambda: robot.controller and robot.controller[-1].mode == Mode.STOPPED, 5.0)
    assert "has been silent for" in robot.controller[-1].reason
    os.kill(loop, signal.SIGCONT)
    robot.graph.wait(lambda: robot.controller[-1].mode == Mode.HOLDING, 10.0)


def test_a_loop_that_is_killed_ends_its_nodes(robot: Processes) -> None:
    """What they say then is tested beside drives: `pkm_hardware/test_last_lines.py`."""
    robot.begin()
    control = robot.group.processes["control"]
    (loop,) = children(control.pid)
    os.kill(loop, signal.SIGKILL)
    robot.graph.wait(lambda: control.poll() is not None, 10.0)
    assert control.poll() == 1
    robot.start("control")
    robot.well()


@pytest.mark.slow
@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
def test_twenty_times(robot: Processes, name: str, killed: bool) -> None:
    moments = np.random.default_rng(NODES.index(name) + 10 * killed).uniform(0.1, 4.0, 20)
    for moment in moments:
        a_bad_day(robot, name, killed, float(moment))
