# SPDX-License-Identifier: Apache-2.0
"""The services of a robot on a rail: the rail is at home, unless a seed says where; and what motions say of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from pkm_control.controllers.controller import Reference
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.ros.motion_messages import points_of, reference_message, reference_numbers, trajectory_message
from pkm_description import load_mechanism
from pkm_description.ros import messages
from pkm_description.ros.raw_rows import RawRows
from pkm_dynamics import Dynamics
from pkm_dynamics.ros.dynamics_services import direct_dynamics, inverse_dynamics
from pkm_interfaces.msg import PlatformMotion, PlatformTrajectory, PlatformTrajectoryPoint, SolveStatus
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


def test_services_take_the_rail_along(robot: SimpleNamespace) -> None:
    """Where it is and how it moves count in both directions."""
    rng, names = np.random.default_rng(1), robot.kinematics.redundant_names
    pose, twist, acceleration = np.append(robot.home, 0.2), rng.normal(size=7), rng.normal(size=7)
    twist[3:6] = acceleration[3:6] = 0.0
    one = motion(robot.home, twist, acceleration)
    one.redundant_positions, one.redundant_velocities = [0.2], [twist[6]]
    one.redundant_accelerations = [acceleration[6]]
    efforts = InverseDynamics.Response()
    inverse_dynamics(robot.dynamics, InverseDynamics.Request(motions=[one], redundant_names=names), efforts)
    assert efforts.solutions[0].status.code == SolveStatus.CONVERGED
    assert np.array_equal(efforts.solutions[0].effort, robot.dynamics.inverse(pose, twist, acceleration).effort)
    given = JointState(name=list(efforts.actuated_names), effort=list(efforts.solutions[0].effort))
    request = DirectDynamics.Request(motions=[one], redundant_names=names, efforts=[given])
    answer = DirectDynamics.Response()
    direct_dynamics(robot.dynamics, request, answer)
    assert list(answer.redundant_names) == ["rail"]
    assert abs(answer.solutions[0].redundant_accelerations[0] - acceleration[6]) < 1e-9
    assert np.abs(messages.vector_of(answer.solutions[0].acceleration.linear) - acceleration[:3]).max() < 1e-9
    one.redundant_velocities = []
    with pytest.raises(PkmError, match="motion 0: it has 0 redundant_velocities, and 1 joints are in redundant_names"):
        inverse_dynamics(robot.dynamics, InverseDynamics.Request(motions=[one], redundant_names=names), efforts)


def test_goals_command_the_rail(robot: SimpleNamespace) -> None:
    rng, names = np.random.default_rng(0), robot.kinematics.redundant_names
    poses = np.hstack([np.tile(robot.home, (2, 1)), [[0.1], [0.3]]])
    points = MotionPoints(np.array([0.0, 1.0]), poses, rng.normal(size=(2, 7)), rng.normal(size=(2, 7)))
    back = points_of(trajectory_message(points, "base_link", names), names)
    for field in ("times", "poses", "twists", "accelerations"):
        np.testing.assert_allclose(getattr(back, field), getattr(points, field), rtol=0.0, atol=1e-15)
    bare = replace(points, poses=poses[:, :7], twists=points.twists[:, :6], accelerations=points.accelerations[:, :6])
    assert points_of(trajectory_message(bare, "base_link", names), names).poses.shape == (2, 7)


def test_redundant_joints_come_in_the_order_of_the_robot() -> None:
    message = PlatformTrajectory(redundant_names=["b", "a"])
    for k in (1.0, 2.0):
        place = {f"redundant_{what}": [k, 10.0 * k] for what in ("positions", "velocities", "accelerations")}
        message.points.append(PlatformTrajectoryPoint(**place))
    assert points_of(message, ["a", "b"]).poses[:, 7:].tolist() == [[10.0, 1.0], [20.0, 2.0]]


@pytest.mark.parametrize(
    ("names", "values", "reason"),
    [
        (["rail", "slide"], [0.1, 0.2], r"redundant_names is \['rail', 'slide'\]; name all of rail"),
        ([], [0.1], "point 0: it has 1 redundant_positions, and 0 joints are in redundant_names"),
        (["rail"], [], "point 0: it has 0 redundant_positions, and 1 joints are in redundant_names"),
    ],
)
def test_wrong_values_of_redundant_joints_are_refused(names: list[str], values: list[float], reason: str) -> None:
    point = PlatformTrajectoryPoint(redundant_positions=values)
    with pytest.raises(PkmError, match=reason):
        points_of(PlatformTrajectory(redundant_names=names, points=[point]), ["rail"])


def test_references_tell_the_rail(robot: SimpleNamespace) -> None:
    """What a reference says nothing of is where the description has it; the layout of its messages is known."""
    k = robot.kinematics
    numbers = np.arange(1.0, 23.0)
    message = reference_message(numbers, Time(sec=1), "base_link")
    rows = RawRows(type(message), messages.reference_numbers)
    assert np.array_equal(rows.row(bytes(serialize_message(message)))[1], numbers)
    assert rows.knows(bytes(serialize_message(message)))
    assert reference_numbers(Reference.at_rest(robot.home), k)[:3].tolist() == [0.0, 0.0, 0.0]
    whole = Reference(np.append(robot.home, 0.3), np.zeros(7), np.zeros(7))
    assert reference_numbers(whole, k)[:10].tolist() == [0.3, 0.0, 0.0, *robot.home]
