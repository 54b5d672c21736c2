# SPDX-License-Identifier: Apache-2.0
"""The running robot as processes: simulated machine and controller over DDS, poked by a client; and the main job.

The loops run at 250 Hz here, so that a busy computer keeps them; what they do does not depend on it.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Transform
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Log
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from pkm_bringup import bringup
from pkm_bringup.nodes.motion_player_node import MotionPlayer
from pkm_bringup.runner import ProcessGroup, ros_arguments
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.ros.motion_messages import duration_message
from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_dynamics.ros.dynamics_node import DynamicsNode
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import (
    ControllerState,
    LoopStatistics,
    OutputEvent,
    PayloadChange,
    PlatformState,
    PlatformTrajectory,
    PlatformTrajectoryPoint,
)
from pkm_kinematics import Kinematics
from pkm_kinematics.ros.kinematics_node import KinematicsNode

from .conftest import Graph

RATE = 250.0


class Robot:
    """Hardware and controller as processes, and a client."""

    def __init__(self, graph: Graph, group: ProcessGroup, name: str = "delta", *others: str, **settings: str) -> None:
        self.graph = graph
        self.group = group
        self.kinematics = Kinematics(load_mechanism(name))
        self.home = np.array(self.kinematics.home)
        values = bringup.defaults(namespace=graph.namespace, rate=str(RATE), natural_frequency="40", **settings)
        graph.describe(self.kinematics.mechanism.urdf)
        for node in bringup.NODES:
            if node.name in ("control", *others):
                command = [sys.executable, "-m", "pkm_bringup.start", node.executable, *ros_arguments(node, values)]
                group.start(node, subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))
        self.states: list[ControllerState] = graph.listen(ControllerState, topics.CONTROLLER_STATE)
        self.efforts: list[JointState] = graph.listen(JointState, topics.HARDWARE_COMMANDS)
        self.loops: list[LoopStatistics] = graph.listen(LoopStatistics, "hardware/loop_statistics")
        self.client = ActionClient(graph.client, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
        graph.wait(lambda: self.states and self.states[-1].mode == Mode.HOLDING, 120.0)
        graph.wait(self.client.server_is_ready)

    def here(self) -> np.ndarray:
        return messages.pose_of(self.states[-1].reference.pose)

    def way(self, *ends: np.ndarray, seconds: float = 0.5, frame_id: str = "") -> FollowPlatformTrajectory.Goal:
        """A goal from where the reference is, through `ends`, at rest in each."""
        trajectory = PlatformTrajectory()
        trajectory.header.frame_id = frame_id
        for k, pose in enumerate((self.here(), *ends)):
            point = PlatformTrajectoryPoint(pose=messages.to_pose(pose), time_from_start=duration_message(k * seconds))
            trajectory.points.append(point)
        return FollowPlatformTrajectory.Goal(trajectory=trajectory)

    def offset(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
        pose = self.home.copy()
        pose[:3] += x, y, z
        return pose

    def send(self, goal: FollowPlatformTrajectory.Goal, feedback: Any = None) -> Any:
        sent = self.graph.in_executor(lambda: self.client.send_goal_async(goal, feedback_callback=feedback))
        self.graph.wait(sent.done)
        return sent.result()

    def result(self, handle: Any) -> Any:
        done = self.graph.in_executor(handle.get_result_async)
        self.graph.wait(done.done)
        return done.result().result

    def follow(self, goal: FollowPlatformTrajectory.Goal) -> Any:
        return self.result(self.send(goal))


@pytest.fixture(scope="module")
def robot(shared_graph: Graph) -> Iterator[Robot]:
    group = ProcessGroup()
    try:
        yield Robot(shared_graph, group)
    finally:
        group.stop()


# Without the robot of this module, which runs until the file ends: first


def test_the_main_job_ends_with_a_report_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pkm_bringup.runner", "delta", "--rate", "250", "--cycles", "2"]
    command += ["--page", "false", "--report", str(tmp_path), "--namespace", "main_job", "--natural-frequency", "40"]
    environment = {**os.environ, "ROS_DOMAIN_ID": str((int(os.environ["ROS_DOMAIN_ID"]) + 50) % 101)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    assert "cycles per minute" in done.stdout
    assert "2 of 2 in" in done.stdout
    assert "deadlines missed" in done.stdout
    assert (tmp_path / "main_job" / "delta_pick_and_place.png").stat().st_size > 10_000
    left = [p for p in Path("/proc").iterdir() if p.name.isdigit() and b"--namespace\0main_job" in _command_of(p)]
    assert not left


def test_holds_at_home_against_gravity(robot: Robot) -> None:
    assert np.linalg.norm(messages.pose_of(robot.states[-1].measured_pose)[:3] - robot.home[:3]) < 0.01
    robot.graph.wait(lambda: robot.efforts)
    assert np.abs(robot.efforts[-1].effort).min() > 1.0


def test_follows_a_motion(robot: Robot) -> None:
    heard: list[Any] = []
    goal = robot.way(robot.offset(0.04, 0.0, 0.03), robot.offset())
    goal.goal_position_tolerance = 0.002
    goal.goal_time_tolerance.sec = 2
    result = robot.result(robot.send(goal, heard.append))
    assert result.error_code == Outcome.SUCCESSFUL, result.error_string
    assert 0.0 < result.rms_position_error <= result.max_position_error < 0.02
    assert heard

    def missed() -> float:
        """Of the goal, by the newest state, which may come after the result."""
        return float(np.linalg.norm(messages.pose_of(robot.states[-1].measured_pose)[:3] - robot.home[:3]))

    robot.graph.wait(lambda: missed() < 0.002, 5.0)


def test_repeats_a_motion(robot: Robot) -> None:
    goal = robot.way(robot.offset(0.02), robot.here(), seconds=0.2)
    goal.trajectory.repetitions = 3
    began = time.monotonic()
    assert robot.follow(goal).error_code == Outcome.SUCCESSFUL
    assert time.monotonic() - began > 1.1  # 3 times 0.4 s, less what stamps may lag


def test_a_motion_by_topic(robot: Robot) -> None:
    out = robot.graph.client.create_publisher(PlatformTrajectory, topics.PLATFORM_TRAJECTORY, topics.EVENTS)
    robot.graph.wait(lambda: out.get_subscription_count() > 0)
    out.publish(robot.way(robot.offset(0.0, 0.02), seconds=0.3).trajectory)
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.TRACKING)
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)
    robot.graph.wait(lambda: abs(robot.here()[1] - 0.02 - robot.home[1]) < 1e-6)


def multi_dof(robot: Robot, name: str, *ends: np.ndarray) -> MultiDOFJointTrajectory:
    message = MultiDOFJointTrajectory(joint_names=[name])
    for k, pose in enumerate((robot.here(), *ends)):
        transform = Transform(translation=messages.to_vector(pose[:3]), rotation=messages.to_pose(pose).orientation)
        point = MultiDOFJointTrajectoryPoint(transforms=[transform], time_from_start=duration_message(0.4 * k))
        message.points.append(point)
    return message


def test_a_motion_of_one_joint_with_many_freedoms(robot: Robot) -> None:
    told = robot.graph.listen(Log, "/rosout")
    topic = topics.MULTI_DOF_TRAJECTORY
    out = robot.graph.client.create_publisher(MultiDOFJointTrajectory, topic, topics.EVENTS)
    robot.graph.wait(lambda: out.get_subscription_count() > 0)
    robot.graph.wait(lambda: robot.graph.client.count_publishers("/rosout") > 1)
    out.publish(multi_dof(robot, "gripper", robot.offset()))
    refused = "trajectory refused: joint_names is ['gripper']; this robot has one such joint, ['platform']"
    robot.graph.wait(lambda: any(one.msg == refused for one in told))
    out.publish(multi_dof(robot, "platform", robot.offset(0.02), robot.offset(0.02, 0.02)))
    robot.graph.wait(lambda: np.abs(robot.here()[:3] - robot.offset(0.02, 0.02)[:3]).max() < 1e-6)
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)


def test_cancel_holds(robot: Robot) -> None:
    handle = robot.send(robot.way(robot.offset(0.05), seconds=5.0))
    time.sleep(0.3)
    robot.graph.wait(robot.graph.in_executor(handle.cancel_goal_async).done)
    result = robot.result(handle)
    assert result.error_code == Outcome.PREEMPTED
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)


def _nan(robot: Robot) -> FollowPlatformTrajectory.Goal:
    goal = robot.way(robot.offset(0.01))
    goal.trajectory.points[1].pose.position.x = float("nan")
    return goal


def _hole(robot: Robot) -> FollowPlatformTrajectory.Goal:
    goal = robot.way(robot.offset(0.01), robot.offset(0.02))
    goal.trajectory.points[2].time_from_start = goal.trajectory.points[1].time_from_start
    return goal


def _jump(robot: Robot) -> FollowPlatformTrajectory.Goal:
    goal = robot.way(robot.offset(0.01))
    goal.trajectory.points[0].pose.position.y += 0.1
    return goal


def _past(robot: Robot) -> FollowPlatformTrajectory.Goal:
    goal = robot.way(robot.offset(0.01))
    goal.trajectory.header.stamp.sec = 1
    return goal


def _event(robot: Robot, **fields: Any) -> FollowPlatformTrajectory.Goal:
    goal = robot.way(robot.offset(0.01))
    goal.trajectory.outputs = [OutputEvent(**{"name": "gripper", **fields})]
    return goal


def _payload(robot: Robot, mass: float, seconds: float = 0.0) -> FollowPlatformTrajectory.Goal:
    goal = robot.way(robot.offset(0.01))
    change = PayloadChange(time_from_start=duration_message(seconds))
    change.payload.m = mass
    goal.trajectory.payloads = [change]
    return goal


BAD = {
    "an output without a name": (lambda r: _event(r, name=""), "'' is not a valid output name"),
    "a value that is none": (lambda r: _event(r, value=math.nan), "the value of 'gripper' is nan"),
    "an output after the end": (lambda r: _event(r, time_from_start=duration_message(9.0)), "its time 9 s"),
    "a payload less than nothing": (lambda r: _payload(r, -1.0), "payload"),
    "a payload before the start": (lambda r: _payload(r, 1.0, -1.0), "its time -1 s"),
    "too heavy a payload": (lambda r: _payload(r, 500.0), "effort of limb"),
    "wrong frame": (lambda r: r.way(r.offset(0.01), frame_id="world"), "world"),
    "not finite": (_nan, "not finite"),
    "times do not rise": (_hole, "time"),
    "unreachable": (lambda r: r.way(r.offset(0.0, 0.0, -2.0)), "point 1"),
    "begins elsewhere": (_jump, "from where the platform is"),
    "began long ago": (_past, "ago"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_goals_are_refused_with_a_reason(robot: Robot, case: str) -> None:
    make, word = BAD[case]
    result = robot.follow(make(robot))
    assert result.error_code == Outcome.INVALID_GOAL
    assert word in result.error_string
    assert robot.states[-1].mode == Mode.HOLDING


def test_an_empty_goal_is_rejected(robot: Robot) -> None:
    client = ActionClient(robot.graph.client, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
    robot.graph.wait(client.server_is_ready)
    sent = robot.graph.in_executor(lambda: client.send_goal_async(FollowPlatformTrajectory.Goal()))
    robot.graph.wait(sent.done)
    assert not sent.result().accepted
    assert robot.states[-1].mode == Mode.HOLDING


def test_loop_statistics_are_honest(robot: Robot) -> None:
    """Over a second or two, what was done and what was missed are all the periods that there were."""
    robot.graph.wait(lambda: len(robot.loops) > 1)
    before, loop = robot.loops[-2:]
    assert loop.period == pytest.approx(1.0 / RATE)
    elapsed = 1e-9 * (Time.from_msg(loop.header.stamp) - Time.from_msg(before.header.stamp)).nanoseconds
    cycles, missed = loop.cycles - before.cycles, loop.missed_deadlines - before.missed_deadlines
    assert loop.rate == pytest.approx(cycles / elapsed, rel=0.01)
    assert 0.99 * RATE * elapsed - 1 <= cycles + missed
    assert cycles <= 1.01 * RATE * elapsed + 1


def test_a_fault_of_a_node_ends_the_motion_and_is_in_the_report(
    robot: Robot, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    graph = robot.graph
    publisher = graph.client.create_publisher(DiagnosticArray, topics.DIAGNOSTICS, topics.EVENTS)

    def diagnose(level: bytes) -> None:
        """Speak for a page, which does not run here."""
        status = DiagnosticStatus(level=level, name="page", message="it burns", hardware_id=graph.namespace)
        publisher.publish(DiagnosticArray(status=[status]))

    remap = {"actuated_joint_states": "hardware/joint_states"}
    settings = {"wait_for": ["page"], "cycles": 1000, "report": str(tmp_path), "motion": "circle"}
    player = graph.start(MotionPlayer, remap, rate=RATE, **settings)
    graph.wait(lambda: publisher.get_subscription_count() > 0)
    diagnose(DiagnosticStatus.OK)
    graph.wait(lambda: player._run is not None and player._run.recorder is not None)
    graph.wait(lambda: player._run.recorder.count > 100)
    diagnose(DiagnosticStatus.ERROR)
    graph.wait(lambda: player.exit_code is not None)
    assert player.exit_code == 1
    report = capfd.readouterr().out
    assert "page: it burns" in report
    assert re.search(r"\b\d\.\d of 1000 in", report)
    assert (tmp_path / graph.namespace.strip("/") / "delta_circle.csv").exists()
    graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)


def test_who_leaves_a_stream_and_comes_back_hears_it_within_a_second(robot: Robot) -> None:
    """What nobody listens to is not made."""
    graph = robot.graph
    graph.start(KinematicsNode, {"actuated_joint_states": "hardware/joint_states"})
    graph.start(DynamicsNode)
    streams = {topics.PLATFORM_STATE: PlatformState, topics.JOINT_STATES: JointState}
    streams[topics.REFERENCE_EFFORTS] = JointState
    for patience in (60.0, 1.0, 1.0, 1.0):  # s; at first the nodes build their robot
        for topic, kind in streams.items():
            heard: list[Any] = []
            listener = graph.client.create_subscription(kind, topic, heard.append, topics.STREAM_IN)
            graph.wait(lambda heard=heard: heard, patience)
            # in the thread that waits for it, which another would take it away from
            graph.in_executor(partial(graph.client.destroy_subscription, listener))


def _stranger(robot: Robot, topic: str, message: JointState) -> Iterator[None]:
    """While it is gone through: a node that publishes a message again and again."""
    node = Node("stranger", context=robot.graph.context, namespace=robot.graph.namespace)
    out = node.create_publisher(JointState, topic, topics.STREAM_OUT)
    try:
        while True:
            out.publish(message)
            time.sleep(0.002)
            yield
    finally:
        node.destroy_node()


@pytest.mark.parametrize("topic", [topics.HARDWARE_STATES, topics.HARDWARE_COMMANDS])
def test_what_a_stranger_publishes_moves_nothing(robot: Robot, topic: str) -> None:
    """Between machine and controller there is no topic."""
    state = robot.states[-1]
    before = messages.pose_of(state.measured_pose)
    elsewhere = robot.kinematics.inverse(before).actuated + 0.15
    message = JointState(name=list(state.actuated_names), position=elsewhere, velocity=[0.0] * 3, effort=[-180.0] * 3)
    deadline = time.monotonic() + 2.0
    stranger, heard = _stranger(robot, topic, message), len(robot.states)
    for _ in stranger:
        if time.monotonic() > deadline:
            break
    stranger.close()
    since = robot.states[heard:]
    assert len(since) > 20
    assert all(one.mode == Mode.HOLDING for one in since)
    poses = np.array([messages.pose_of(one.measured_pose) for one in since])
    assert np.abs(poses - before).max() < 1e-4


def test_silence_stops_efforts_and_states_bring_them_back(robot: Robot) -> None:
    def change(transition: int) -> None:
        request = ChangeState.Request()
        request.transition.id = transition
        assert robot.graph.call(ChangeState, "hardware/change_state", request).success

    get = robot.graph.call(GetState, "hardware/get_state", GetState.Request())
    if get.current_state.label == "inactive":  # where an attempt before this one ended
        change(3)
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)
    handle = robot.send(robot.way(robot.offset(0.02), seconds=5.0))
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.TRACKING)
    change(4)  # deactivate: brakes
    lost = robot.result(handle)
    assert lost.error_code == Outcome.STATE_LOST
    assert "disabled" in lost.error_string
    assert robot.states[-1].mode == Mode.WAITING
    change(2)  # clean up: no more states
    robot.graph.wait(lambda: "not been configured" in robot.states[-1].reason)
    assert not np.any(robot.states[-1].effort)
    result = robot.follow(robot.way(robot.offset(0.01)))
    assert result.error_code == Outcome.INVALID_GOAL
    change(1)  # configure
    change(3)  # activate
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)
    assert robot.follow(robot.way(robot.offset(0.01))).error_code == Outcome.SUCCESSFUL


def _command_of(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
