# SPDX-License-Identifier: Apache-2.0
"""A controller told of a kilohertz, before a machine that gives a tenth of it: gains that its readings carry."""

from __future__ import annotations

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.action import ActionClient

from pkm_bringup.nodes.controller_node import ControllerNode
from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.ros.motion_messages import duration_message
from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, PlatformTrajectory, PlatformTrajectoryPoint

from .conftest import Graph

REMAP = {"actuated_joint_states": "hardware/joint_states", "joint_commands": "hardware/joint_commands"}


def test_a_motion_is_followed_with_what_the_rate_carries(graph: Graph) -> None:
    graph.describe(load_mechanism("delta").urdf)
    states: list[ControllerState] = graph.listen(ControllerState, topics.CONTROLLER_STATE)
    health: list[DiagnosticArray] = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    graph.start(ControllerNode, REMAP, rate=1000.0, stale_periods=200, natural_frequency=120.0)
    graph.start(HardwareNode, None, rate=100.0)
    graph.wait(lambda: states and states[-1].mode == Mode.HOLDING, 120.0)

    def readings() -> float:
        own = [status for array in list(health) for status in array.status if status.name.endswith("controller")]
        values = {one.key: one.value for one in own[-1].values} if own else {}
        return float(values.get("readings [Hz]", "nan"))

    graph.wait(lambda: abs(readings() - 100.0) < 15.0)
    client = ActionClient(graph.client, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
    graph.wait(client.server_is_ready)
    here = messages.pose_of(states[-1].reference.pose)
    there = here + np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    trajectory = PlatformTrajectory()
    for at, pose in ((0.0, here), (1.0, there), (2.0, here)):
        trajectory.points.append(
            PlatformTrajectoryPoint(pose=messages.to_pose(pose), time_from_start=duration_message(at))
        )
    sent = graph.in_executor(lambda: client.send_goal_async(FollowPlatformTrajectory.Goal(trajectory=trajectory)))
    graph.wait(sent.done)
    done = graph.in_executor(sent.result().get_result_async)
    graph.wait(done.done)
    result = done.result().result
    assert result.error_code == Outcome.SUCCESSFUL, result.error_string
    assert result.max_position_error < 5e-3  # with the gains of a kilohertz it was 0.15 m
