# SPDX-License-Identifier: Apache-2.0
"""The services of a robot on a rail: the rail stays at home, unless a seed says where it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.ros.motion_messages import trajectory_message
from pkm_description import load_mechanism
from pkm_description.ros import messages
from pkm_dynamics import Dynamics
from pkm_dynamics.ros.dynamics_services import direct_dynamics, inverse_dynamics
from pkm_interfaces.msg import PlatformMotion, SolveStatus
from pkm_interfaces.srv import DirectDynamics, InverseDynamics, SolveForward, SolveInverse
from pkm_kinematics import Kinematics
from pkm_kinematics.ros.kinematics_services import solve_forward, solve_inverse
from pkm_runtime.errors import PkmError
from test.oracles.redundant_robots import on_a_rail


@pytest.fixture(scope="module")
def robot() -> SimpleNamespace:
    k = Kinematics(load_mechanism(on_a_rail("delta")))
    return SimpleNamespace(kinematics=k, dynamics=Dynamics(k), home=np.array(k.home))


def motion(pose: Any, twist: Any, acceleration: Any) -> PlatformMotion:
    return PlatformMotion(
        pose=messages.to_pose(pose),
        twist=messages.to_twist(twist),
        acceleration=messages.to_acceleration(acceleration),
    )


def test_positions(robot: SimpleNamespace) -> None:
    k = robot.kinematics
    rail = k.joint_names.index("rail")
    response = SolveInverse.Response()
    solve_inverse(k, SolveInverse.Request(poses=[messages.to_pose(robot.home)]), response, None)
    assert response.solutions[0].positions[rail] == 0.0
    seed = JointState(name=["rail"], position=[0.2])
    solve_inverse(k, SolveInverse.Request(poses=[messages.to_pose(robot.home)], seed=seed), response, None)
    solution = response.solutions[0]
    assert solution.status.code == SolveStatus.CONVERGED
    assert solution.positions[rail] == 0.2
    back = SolveForward.Response()
    joints = JointState(name=list(response.actuated_names), position=list(solution.actuated))
    solve_forward(k, SolveForward.Request(joints=[joints]), back, None)
    assert back.solutions[0].status.code == SolveStatus.CONVERGED
    assert np.abs(messages.pose_of(back.solutions[0].pose) - robot.home).max() < 1e-9


def test_efforts_and_accelerations(robot: SimpleNamespace) -> None:
    twist, acceleration = np.array([0.3, -0.1, 0.2, 0, 0, 0]), np.array([4.0, 3.0, -2.0, 0, 0, 0])
    one = motion(robot.home, twist, acceleration)
    efforts = InverseDynamics.Response()
    inverse_dynamics(robot.dynamics, InverseDynamics.Request(motions=[one]), efforts)
    assert efforts.solutions[0].status.code == SolveStatus.CONVERGED
    expected = robot.dynamics.inverse(robot.home, twist, acceleration).effort
    assert np.array_equal(efforts.solutions[0].effort, expected)
    given = JointState(name=list(efforts.actuated_names), effort=list(efforts.solutions[0].effort))
    answer = DirectDynamics.Response()
    direct_dynamics(robot.dynamics, DirectDynamics.Request(motions=[one], efforts=[given]), answer)
    found = answer.solutions[0].acceleration
    assert np.abs(messages.vector_of(found.linear) - acceleration[:3]).max() < 1e-9
    assert np.abs(messages.vector_of(found.angular)).max() < 1e-9


def test_goals_cannot_command_the_rail(robot: SimpleNamespace) -> None:
    poses, rates = np.tile(np.append(robot.home, 0.1), (2, 1)), np.zeros((2, 7))
    with pytest.raises(PkmError, match=r"redundant joints cannot be commanded over ROS.*follows=.*Robot.simulated"):
        trajectory_message(MotionPoints(np.array([0.0, 1.0]), poses, rates, rates), "base_link")
    there = trajectory_message(
        MotionPoints(np.array([0.0, 1.0]), poses[:, :7], rates[:, :6], rates[:, :6]), "base_link"
    )
    assert len(there.points) == 2
