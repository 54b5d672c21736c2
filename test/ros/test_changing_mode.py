# SPDX-License-Identifier: Apache-2.0
"""A five-bar changes its working mode on request, and every node knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from pkm_bringup.runner import ProcessGroup
from pkm_control.loop.follower import CHANGING
from pkm_control.operator_interface import Mode, Outcome
from pkm_description.ros import messages, topics
from pkm_interfaces.msg import PlatformState
from pkm_interfaces.srv import ChangeWorkingMode

from .conftest import Graph
from .test_running_robot import Robot


@pytest.fixture(scope="module")
def robot(shared_graph: Graph) -> Iterator[Robot]:
    group = ProcessGroup()
    try:
        yield Robot(shared_graph, group, "five_bar", "kinematics", "dynamics")
    finally:
        group.stop()


def change(robot: Robot, label: str) -> Any:
    request = ChangeWorkingMode.Request(working_mode=label)
    return robot.graph.call(ChangeWorkingMode, topics.CHANGE_WORKING_MODE, request)


@pytest.mark.slow
def test_it_changes_moves_in_the_new_mode_and_comes_back(robot: Robot) -> None:
    platform: list[PlatformState] = robot.graph.listen(PlatformState, topics.PLATFORM_STATE)
    efforts: list[JointState] = robot.graph.listen(JointState, topics.REFERENCE_EFFORTS)
    robot.graph.wait(lambda: platform and platform[-1].working_mode == "++", 60.0)
    impossible = change(robot, "--")
    assert not impossible.success
    assert "type 2" in impossible.message
    answer = change(robot, "-+")
    assert answer.success, answer.message
    assert "mm" in answer.message
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.TRACKING)
    refused = robot.follow(robot.way(robot.offset(0.01)))
    assert refused.error_code == Outcome.INVALID_GOAL
    assert CHANGING in refused.error_string
    assert robot.graph.call(Trigger, topics.STOP, Trigger.Request()).success
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.PAUSED)
    assert change(robot, "-+").success  # go on
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING, 60.0)
    robot.graph.wait(lambda: platform[-1].working_mode == "-+")
    np.testing.assert_allclose(messages.pose_of(platform[-1].pose)[:3], robot.home[:3], atol=1e-3)
    goal = robot.way(robot.offset(0.03, 0.02), robot.offset(), seconds=1.0)
    goal.goal_position_tolerance = 0.002
    goal.goal_time_tolerance.sec = 2
    assert robot.follow(goal).error_code == Outcome.SUCCESSFUL
    assert {state.working_mode for state in platform[-50:]} == {"-+"}
    assert len(efforts) > 10
    assert np.isfinite(efforts[-1].effort).all()
    assert change(robot, "++").success
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.TRACKING)
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING, 60.0)
    robot.graph.wait(lambda: platform[-1].working_mode == "++")
    np.testing.assert_allclose(messages.pose_of(platform[-1].pose)[:3], robot.home[:3], atol=1e-3)
