# SPDX-License-Identifier: Apache-2.0
"""What an operator asks of the controller node, with the simulated machine as a process beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.action import ActionClient
from sensor_msgs.msg import Joy
from std_srvs.srv import Trigger

from pkm_bringup.nodes.joystick_node import JoystickNode
from pkm_bringup.runner import ProcessGroup
from pkm_control.motion.point_trajectory import MOST_POINTS
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.ros.motion_messages import duration_message
from pkm_description.ros import messages, topics
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import PlatformTrajectoryPoint
from pkm_interfaces.srv import ChangeWorkingMode, SetSpeedOverride

from .conftest import Graph
from .test_running_robot import Robot


@pytest.fixture(scope="module")
def robot(shared_graph: Graph) -> Iterator[Robot]:
    group = ProcessGroup()
    try:
        yield Robot(shared_graph, group)
    finally:
        group.stop()


def ask(robot: Robot, name: str) -> Any:
    return robot.graph.call(Trigger, name, Trigger.Request())


def set_speed(robot: Robot, fraction: float) -> Any:
    return robot.graph.call(SetSpeedOverride, topics.SET_SPEED_OVERRIDE, SetSpeedOverride.Request(fraction=fraction))


def wait_for(robot: Robot, mode: Mode) -> None:
    robot.graph.wait(lambda: robot.states[-1].mode == mode)


def back_home(robot: Robot) -> None:
    robot.follow(robot.way(robot.offset(), seconds=1.0))
    wait_for(robot, Mode.HOLDING)


def test_a_curve_that_throws_the_robot_is_refused_with_its_time(robot: Robot) -> None:
    goal = robot.way(robot.offset(0.05), robot.offset(0.0), seconds=0.6)
    goal.trajectory.points[1].twist.linear.x = -30.0
    result = robot.follow(goal)
    assert result.error_code == Outcome.INVALID_GOAL
    assert result.error_string.startswith("at 0.")
    assert robot.states[-1].mode == Mode.HOLDING


@pytest.mark.slow
def test_too_many_points_and_a_burst_of_goals_are_answered_soon(robot: Robot) -> None:
    goal = robot.way(robot.offset(0.01))
    point = PlatformTrajectoryPoint(pose=messages.to_pose(robot.offset()))
    goal.trajectory.points = [point] * (MOST_POINTS + 1)
    handle = robot.send(goal)
    assert robot.result(handle).error_code == Outcome.INVALID_GOAL
    many = {f"{service}_service_qos_profile": topics.MANY_AT_ONCE for service in ("goal", "result")}
    client = ActionClient(robot.graph.client, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY, **many)
    robot.graph.wait(client.server_is_ready)
    began = time.monotonic()
    done = [robot.graph.in_executor(lambda: client.send_goal_async(robot.way(robot.offset(0.005)))) for _ in range(60)]
    robot.graph.wait(lambda: all(one.done() for one in done))
    results = [robot.graph.in_executor(one.result().get_result_async) for one in done]
    robot.graph.wait(lambda: all(one.done() for one in results))
    assert time.monotonic() - began < 30.0
    codes = {one.result().result.error_code for one in results}
    assert codes <= {Outcome.SUCCESSFUL, Outcome.PREEMPTED, Outcome.INVALID_GOAL}
    wait_for(robot, Mode.HOLDING)
    back_home(robot)


def test_pause_resume_and_what_is_refused_meanwhile(robot: Robot) -> None:
    assert not ask(robot, topics.PAUSE).success
    handle = robot.send(robot.way(robot.offset(0.06), robot.offset(), seconds=1.0))
    robot.graph.wait(lambda: robot.states[-1].reference.twist.linear.x > 0.02)
    assert ask(robot, topics.PAUSE).success
    wait_for(robot, Mode.PAUSED)
    assert robot.states[-1].speed_override == 0.0
    stood = robot.here()
    refused = robot.follow(robot.way(robot.offset(0.01)))
    assert refused.error_code == Outcome.INVALID_GOAL
    assert "paused" in refused.error_string
    np.testing.assert_array_equal(robot.here(), stood)
    assert ask(robot, topics.RESUME).success
    assert robot.result(handle).error_code == Outcome.SUCCESSFUL


def test_a_cancel_of_a_paused_motion_ends_it(robot: Robot) -> None:
    handle = robot.send(robot.way(robot.offset(0.06), robot.offset(), seconds=1.0))
    robot.graph.wait(lambda: robot.states[-1].reference.twist.linear.x > 0.02)
    assert ask(robot, topics.PAUSE).success
    wait_for(robot, Mode.PAUSED)
    robot.graph.wait(robot.graph.in_executor(handle.cancel_goal_async).done)
    assert robot.result(handle).error_code == Outcome.PREEMPTED
    wait_for(robot, Mode.HOLDING)
    back_home(robot)


def test_stop_ends_a_motion_smoothly(robot: Robot) -> None:
    handle = robot.send(robot.way(robot.offset(0.08), seconds=2.0))
    robot.graph.wait(lambda: robot.states[-1].reference.twist.linear.x > 0.03)
    began = len(robot.states)
    assert ask(robot, topics.STOP).success
    result = robot.result(handle)
    assert result.error_code == Outcome.PREEMPTED
    assert "operator" in result.error_string
    wait_for(robot, Mode.HOLDING)
    speeds = [state.reference.twist.linear.x for state in robot.states[began:]]
    assert np.abs(np.diff(speeds)).max() < 0.05
    back_home(robot)


def test_speed_override(robot: Robot) -> None:
    for nonsense in (-0.5, 1.5, float("nan")):
        answer = set_speed(robot, nonsense)
        assert not answer.success
        assert answer.fraction == 1.0
    answer = set_speed(robot, 0.25)
    assert answer.success
    assert answer.fraction == 0.25
    began = time.monotonic()
    assert robot.follow(robot.way(robot.offset(0.02), seconds=0.4)).error_code == Outcome.SUCCESSFUL
    assert time.monotonic() - began > 1.5
    assert set_speed(robot, 1.0).success
    back_home(robot)


def test_a_motion_that_takes_over_lets_the_one_before_come_to_rest(robot: Robot) -> None:
    first = robot.send(robot.way(robot.offset(0.08), seconds=3.0))
    robot.graph.wait(lambda: robot.states[-1].reference.twist.linear.x > 0.02)
    began = len(robot.states)
    second = FollowPlatformTrajectory.Goal()
    point = PlatformTrajectoryPoint(pose=messages.to_pose(robot.offset(0.0, 0.02)))
    point.time_from_start = duration_message(1.0)
    second.trajectory.points = [point]
    assert robot.follow(second).error_code == Outcome.SUCCESSFUL
    assert robot.result(first).error_code == Outcome.PREEMPTED
    speeds = [state.reference.twist.linear.x for state in robot.states[began:]]
    assert np.abs(np.diff(speeds)).max() < 0.05
    back_home(robot)


def steer(robot: Robot, while_: Callable[[], bool], **linear: float) -> None:
    out = _publisher(robot, TwistStamped, topics.JOG_TWIST)
    message = TwistStamped()
    for axis, value in linear.items():
        setattr(message.twist.linear, axis, value)
    deadline = time.monotonic() + 30.0
    while while_():
        assert time.monotonic() < deadline
        out.publish(message)
        time.sleep(0.05)


def _publisher(robot: Robot, kind: Any, name: str) -> Any:
    out = robot.graph.client.create_publisher(kind, name, topics.STREAM_OUT)
    robot.graph.wait(lambda: out.get_subscription_count() > 0)
    return out


def test_jog_by_twist_ends_when_it_is_not_renewed(robot: Robot) -> None:
    steer(robot, lambda: robot.here()[0] < robot.home[0] + 0.02, x=0.1)
    assert robot.states[-1].mode == Mode.JOGGING
    wait_for(robot, Mode.HOLDING)
    back_home(robot)


def test_jog_to_a_pose(robot: Robot) -> None:
    out = _publisher(robot, PoseStamped, topics.JOG_POSE)
    goal = robot.offset(0.0, 0.03, 0.01)
    out.publish(PoseStamped(pose=messages.to_pose(goal)))
    wait_for(robot, Mode.JOGGING)
    wait_for(robot, Mode.HOLDING)
    np.testing.assert_allclose(robot.here()[:3], goal[:3], atol=1e-5)
    back_home(robot)


def test_a_jog_does_not_disturb_a_motion(robot: Robot) -> None:
    handle = robot.send(robot.way(robot.offset(0.02), robot.offset(), seconds=0.5))
    wait_for(robot, Mode.TRACKING)
    steer(robot, lambda: robot.states[-1].mode == Mode.TRACKING and robot.here()[0] < robot.home[0] + 0.015, y=0.1)
    assert robot.result(handle).error_code == Outcome.SUCCESSFUL
    wait_for(robot, Mode.HOLDING)


def test_recover_says_that_nothing_is_wrong(robot: Robot) -> None:
    answer = ask(robot, topics.RECOVER)
    assert answer.success
    assert "well" in answer.message


def test_another_working_mode_is_refused_with_the_reason(robot: Robot) -> None:
    def change(label: str) -> Any:
        request = ChangeWorkingMode.Request(working_mode=label)
        return robot.graph.call(ChangeWorkingMode, topics.CHANGE_WORKING_MODE, request)

    assert change("+++").success
    unknown = change("nonsense")
    assert not unknown.success
    assert "+++" in unknown.message
    other = change("-++")
    assert not other.success
    assert "limb1_arm" in other.message  # whose limits forbid the arm that is turned inwards
    assert robot.states[-1].mode == Mode.HOLDING


@pytest.mark.slow
def test_a_joystick_moves_the_platform_while_its_button_is_held(robot: Robot) -> None:
    robot.graph.start(JoystickNode, silence=0.3)
    stick = robot.graph.client.create_publisher(Joy, topics.JOY, topics.EVENTS)
    robot.graph.wait(lambda: stick.get_subscription_count() == 1)
    robot.graph.wait(lambda: len(robot.graph.client.get_publishers_info_by_topic(stick_target(robot))) >= 1)
    pushed = [0.0] * 8
    pushed[4] = 1.0  # along z
    before = robot.here()
    stick.publish(Joy(axes=pushed, buttons=[0] * 11))
    time.sleep(0.3)
    assert robot.states[-1].mode == Mode.HOLDING
    np.testing.assert_array_equal(robot.here(), before)
    held = [0] * 11
    held[4] = 1
    stick.publish(Joy(axes=pushed, buttons=held))  # once: the node renews it until it counts as silent
    wait_for(robot, Mode.JOGGING)
    robot.graph.wait(lambda: robot.states[-1].reference.twist.linear.z > 0.02)
    wait_for(robot, Mode.HOLDING)
    moved = robot.here()[2] - before[2]
    assert 0.005 < moved < 0.2  # m: 0.1 m/s for 0.3 s and what it takes to come to rest
    back_home(robot)


def stick_target(robot: Robot) -> str:
    return f"{robot.graph.namespace}/{topics.JOG_TWIST}"
