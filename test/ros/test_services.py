# SPDX-License-Identifier: Apache-2.0
"""The four services over real DDS, against the library called directly; and requests that cannot be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, Pose
from sensor_msgs.msg import JointState

from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial, frozen
from pkm_description.ros import messages, topics
from pkm_dynamics import Dynamics
from pkm_dynamics.ros.dynamics_node import DynamicsNode
from pkm_interfaces.msg import PlatformMotion, SolveStatus
from pkm_interfaces.srv import DirectDynamics, InverseDynamics, SolveForward, SolveInverse
from pkm_kinematics import Kinematics
from pkm_kinematics.ros.kinematics_node import KinematicsNode

from .conftest import Graph


class Robot:
    """The library and the services of the same robot."""

    def __init__(self, graph: Graph) -> None:
        mechanism = load_mechanism("delta")
        self.kinematics = Kinematics(mechanism)
        self.dynamics = Dynamics(self.kinematics)
        self.home = np.array(self.kinematics.home)
        graph.describe(mechanism.urdf)
        graph.start(KinematicsNode)
        graph.start(DynamicsNode)
        self._graph = graph
        graph.wait(lambda: self.inverse([self.home]).status.code != SolveStatus.NOT_READY)
        graph.wait(lambda: self.efforts([self.motion(self.home)]).status.code != SolveStatus.NOT_READY)

    def inverse(self, poses: list[Any], **fields: Any) -> Any:
        request = SolveInverse.Request(poses=[p if isinstance(p, Pose) else messages.to_pose(p) for p in poses])
        return self._graph.call(SolveInverse, topics.SOLVE_INVERSE, fill(request, fields))

    def forward(self, joints: list[JointState], **fields: Any) -> Any:
        return self._graph.call(SolveForward, topics.SOLVE_FORWARD, fill(SolveForward.Request(joints=joints), fields))

    def efforts(self, motions: list[PlatformMotion], **fields: Any) -> Any:
        return self._graph.call(
            InverseDynamics, topics.INVERSE_DYNAMICS, fill(InverseDynamics.Request(motions=motions), fields)
        )

    def accelerations(self, motions: list[PlatformMotion], efforts: list[JointState], **fields: Any) -> Any:
        request = DirectDynamics.Request(motions=motions, efforts=efforts)
        return self._graph.call(DirectDynamics, topics.DIRECT_DYNAMICS, fill(request, fields))

    def joints(self, positions: Any) -> JointState:
        return JointState(name=list(self.kinematics.actuated_names), position=[float(p) for p in positions])

    @staticmethod
    def motion(pose: Any, twist: Any = None, acceleration: Any = None) -> PlatformMotion:
        motion = PlatformMotion(pose=messages.to_pose(np.asarray(pose)))
        if twist is not None:
            motion.twist = messages.to_twist(np.asarray(twist))
        if acceleration is not None:
            motion.acceleration = messages.to_acceleration(np.asarray(acceleration))
        return motion


def fill(request: Any, fields: dict[str, Any]) -> Any:
    for name, value in fields.items():
        if name == "frame_id":
            request.header.frame_id = value
        else:
            setattr(request, name, value)
    return request


@pytest.fixture(scope="module")
def robot(shared_graph: Graph) -> Iterator[Robot]:
    return Robot(shared_graph)


def moved(pose: np.ndarray, *offset: float) -> np.ndarray:
    out = pose.copy()
    out[:3] += offset
    return out


def test_one_pose(robot: Robot) -> None:
    pose = moved(robot.home, 0.05, -0.03, 0.02)
    answer = robot.inverse([pose])
    assert answer.status.code == SolveStatus.CONVERGED
    assert tuple(answer.joint_names) == robot.kinematics.joint_names
    assert tuple(answer.actuated_names) == robot.kinematics.actuated_names
    (solution,) = answer.solutions
    wanted = robot.kinematics.inverse(pose)
    np.testing.assert_array_equal(solution.positions, wanted.joints)
    np.testing.assert_array_equal(solution.actuated, wanted.actuated)
    assert solution.residual < 1e-9


def test_batch_answers_each_pose(robot: Robot) -> None:
    poses = [moved(robot.home, 0.01 * k, 0.0, 0.0) for k in range(40)]
    poses[7] = moved(robot.home, 5.0, 0.0, 0.0)
    answer = robot.inverse(poses)
    assert [s.pose_index for s in answer.solutions] == list(range(40))
    codes = [s.status.code for s in answer.solutions]
    assert codes[7] == SolveStatus.UNREACHABLE
    assert all(code == SolveStatus.CONVERGED for k, code in enumerate(codes) if k != 7)
    assert answer.status.code == SolveStatus.UNREACHABLE
    assert answer.status.reason.startswith("pose 7")
    assert not len(answer.solutions[7].positions)


def test_all_working_modes(robot: Robot) -> None:
    answer = robot.inverse([robot.home, moved(robot.home, 0.02, 0.01, 0.0)], all_modes=True)
    assert len(answer.solutions) == 16
    labels = {s.working_mode for s in answer.solutions if s.pose_index == 0}
    assert len(labels) == 8
    reached = [s for s in answer.solutions if len(s.actuated)]
    for s in reached:  # each working mode leads back to the pose it belongs to
        back = robot.kinematics.forward_all(np.array(s.actuated))
        pose = robot.home if s.pose_index == 0 else moved(robot.home, 0.02, 0.01, 0.0)
        assert min(np.linalg.norm(f.pose[:3] - pose[:3]) for f in back) < 1e-8


def test_seed_picks_the_working_mode(robot: Robot) -> None:
    usual = robot.kinematics.inverse(robot.home).actuated
    modes = [s for s in robot.inverse([robot.home], all_modes=True).solutions if len(s.positions)]
    other = next(s for s in modes if np.linalg.norm(np.array(s.actuated) - usual) > 0.1)
    seed = JointState(name=list(robot.kinematics.joint_names), position=list(other.positions))
    (solution,) = robot.inverse([robot.home], seed=seed).solutions
    np.testing.assert_allclose(solution.actuated, other.actuated, atol=1e-9)


def test_a_joint_named_twice_in_the_seed_is_refused(robot: Robot) -> None:
    name, *others = robot.kinematics.joint_names
    seed = JointState(name=[name, *others, name], position=[0.0] * (len(others) + 2))
    answer = robot.inverse([robot.home], seed=seed)
    assert answer.status.code == SolveStatus.INVALID_INPUT
    assert answer.status.reason == f"seed: {name} is named more than once"
    twice = robot.joints(np.zeros(3))
    twice.name[1] = twice.name[0]
    answer = robot.forward([twice])
    assert f"{twice.name[0]} is named more than once" in answer.status.reason


@pytest.mark.parametrize("length", [1.0 - 2e-3, 1.0 - 9e-4, 1.0 - 1e-5, 1.0 + 9e-4, 1.0 + 2e-3])
def test_services_and_library_take_the_same_quaternions(length: float, robot: Robot) -> None:
    pose = robot.home.copy()
    pose[3:] *= length
    answer, wanted = robot.inverse([pose]), robot.kinematics.inverse(pose)
    assert answer.status.code == wanted.status
    assert (answer.status.code == SolveStatus.CONVERGED) == (abs(length - 1.0) < 1e-3)


def test_forward_returns_the_pose(robot: Robot) -> None:
    poses = [moved(robot.home, 0.02 * k, -0.01 * k, 0.01 * k) for k in range(4)]
    q = robot.kinematics.inverse(np.array(poses)).actuated
    answer = robot.forward([robot.joints(row) for row in q], near=[messages.to_pose(robot.home)])
    assert answer.status.code == SolveStatus.CONVERGED
    assert answer.header.frame_id == "base_link"
    for solution, pose in zip(answer.solutions, poses, strict=True):
        np.testing.assert_allclose(messages.pose_of(solution.pose)[:3], pose[:3], atol=1e-9)
        assert len(solution.positions) == len(answer.joint_names)


def test_both_assembly_modes(robot: Robot) -> None:
    q = robot.kinematics.inverse(moved(robot.home, 0.03, 0.02, 0.0)).actuated
    answer = robot.forward([robot.joints(q)], all_modes=True)
    below, above = sorted(answer.solutions, key=lambda s: s.pose.position.z)
    assert below.status.code == SolveStatus.CONVERGED
    assert above.status.code == SolveStatus.JOINT_LIMIT  # it would be above the base, where the ball joints do not go
    assert above.pose.position.z > 0.5
    assert answer.status.code == SolveStatus.CONVERGED


def test_joint_states_may_come_in_any_order_and_hold_more(robot: Robot) -> None:
    q = robot.kinematics.inverse(robot.home).actuated
    message = robot.joints(q)
    message.name = [*reversed(message.name), "gripper"]
    message.position = [*reversed(message.position), 3.0]
    assert robot.forward([message]).status.code == SolveStatus.CONVERGED


def test_inverse_dynamics(robot: Robot) -> None:
    rng = np.random.default_rng(1)
    motions = []
    for _ in range(5):
        twist, acceleration = np.zeros(6), np.zeros(6)  # the platform cannot turn
        twist[:3], acceleration[:3] = rng.normal(size=(2, 3))
        motions.append((moved(robot.home, *rng.uniform(-0.05, 0.05, 3)), twist, acceleration))
    answer = robot.efforts([robot.motion(*m) for m in motions])
    assert answer.status.code == SolveStatus.CONVERGED
    for solution, motion in zip(answer.solutions, motions, strict=True):
        np.testing.assert_allclose(solution.effort, robot.dynamics.inverse(*motion).effort, rtol=1e-12, atol=1e-12)


def test_payload_is_carried(robot: Robot) -> None:
    payload = Inertia(m=1.5)
    answer = robot.efforts([robot.motion(robot.home)], payload=payload)
    body = Inertial(1.5, frozen(np.zeros(3)), frozen(np.zeros((3, 3))))
    wanted = robot.dynamics.inverse(robot.home, payload=body).effort
    np.testing.assert_allclose(answer.solutions[0].effort, wanted, rtol=1e-12)
    assert np.abs(wanted).max() > np.abs(robot.dynamics.gravity(robot.home).effort).max()


def test_direct_dynamics_undoes_the_inverse(robot: Robot) -> None:
    motion = robot.motion(moved(robot.home, 0.03, 0.0, 0.0), [0.5, 0.1, -0.2, 0, 0, 0], [3.0, -2.0, 1.0, 0, 0, 0])
    effort = robot.efforts([motion]).solutions[0].effort
    answer = robot.accelerations([motion], [JointState(name=list(robot.kinematics.actuated_names), effort=effort)])
    assert answer.status.code == SolveStatus.CONVERGED
    np.testing.assert_allclose(
        messages.twist_of(answer.solutions[0].acceleration), [3.0, -2.0, 1.0, 0, 0, 0], rtol=1e-9, atol=1e-9
    )


NAN = float("nan")


def _stretched(pose: np.ndarray) -> np.ndarray:
    out = pose.copy()
    out[3:] *= 1.1
    return out


def _with_nan(pose: np.ndarray) -> np.ndarray:
    out = pose.copy()
    out[1] = NAN
    return out


BAD: dict[str, tuple[Callable[[Robot], Any], int, str]] = {
    "no poses": (lambda r: r.inverse([]), SolveStatus.INVALID_INPUT, "empty"),
    "wrong frame": (lambda r: r.inverse([r.home], frame_id="map"), SolveStatus.INVALID_INPUT, "map"),
    "pose not finite": (lambda r: r.inverse([_with_nan(r.home)]), SolveStatus.INVALID_INPUT, "finite"),
    "quaternion not unit": (lambda r: r.inverse([_stretched(r.home)]), SolveStatus.INVALID_INPUT, "unit"),
    "no rotation at all": (lambda r: r.inverse([np.zeros(7)]), SolveStatus.INVALID_INPUT, "unit"),
    "unreachable": (lambda r: r.inverse([moved(r.home, 0, 0, -3.0)]), SolveStatus.UNREACHABLE, "reach"),
    "turned platform": (
        lambda r: r.inverse([np.array([*r.home[:3], 0.1, 0, 0, np.sqrt(0.99)])]),
        SolveStatus.INVALID_INPUT,
        "motion space",
    ),
    "seed of another robot": (
        lambda r: r.inverse([r.home], seed=JointState(name=["elbow"], position=[0.0])),
        SolveStatus.INVALID_INPUT,
        "elbow",
    ),
    "seed mis-sized": (
        lambda r: r.inverse([r.home], seed=JointState(name=["limb1_arm"], position=[0.0, 1.0])),
        SolveStatus.INVALID_INPUT,
        "2 values",
    ),
    "no joint states": (lambda r: r.forward([]), SolveStatus.INVALID_INPUT, "empty"),
    "a joint missing": (
        lambda r: r.forward([JointState(name=["limb1_arm"], position=[0.1])]),
        SolveStatus.INVALID_INPUT,
        "limb2_arm",
    ),
    "joint not finite": (lambda r: r.forward([r.joints([0.1, NAN, 0.1])]), SolveStatus.INVALID_INPUT, "limb2_arm"),
    "joints infinite": (
        lambda r: r.forward([r.joints([0.1, float("inf"), 0.1])]),
        SolveStatus.INVALID_INPUT,
        "limb2_arm",
    ),
    "near mis-sized": (
        lambda r: r.forward([r.joints([0.1] * 3)], near=[messages.to_pose(r.home)] * 2),
        SolveStatus.INVALID_INPUT,
        "near",
    ),
    "no motions": (lambda r: r.efforts([]), SolveStatus.INVALID_INPUT, "empty"),
    "motion in a wrong frame": (
        lambda r: r.efforts([r.motion(r.home)], frame_id="tool"),
        SolveStatus.INVALID_INPUT,
        "tool",
    ),
    "twist not finite": (
        lambda r: r.efforts([r.motion(r.home, [NAN, 0, 0, 0, 0, 0])]),
        SolveStatus.INVALID_INPUT,
        "finite",
    ),
    "payload of negative mass": (
        lambda r: r.efforts([r.motion(r.home)], payload=Inertia(m=-1.0)),
        SolveStatus.INVALID_INPUT,
        "payload",
    ),
    "efforts missing": (lambda r: r.accelerations([r.motion(r.home)], []), SolveStatus.INVALID_INPUT, "0 efforts"),
    "effort of a joint missing": (
        lambda r: r.accelerations([r.motion(r.home)], [JointState(name=["limb1_arm"], effort=[1.0])]),
        SolveStatus.INVALID_INPUT,
        "limb2_arm",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_requests_get_a_status_and_a_reason(robot: Robot, case: str) -> None:
    ask, code, word = BAD[case]
    answer = ask(robot)
    assert answer.status.code == code, answer.status
    assert word in answer.status.reason
    assert robot.inverse([robot.home]).status.code == SolveStatus.CONVERGED  # the node goes on
    assert robot.efforts([robot.motion(robot.home)]).status.code == SolveStatus.CONVERGED


def test_joint_limit_names_the_joint(robot: Robot) -> None:
    low = next(
        pose
        for z in np.arange(0.0, 0.8, 0.01)
        if robot.kinematics.inverse(pose := moved(robot.home, 0, 0, z)).status == SolveStatus.JOINT_LIMIT
    )
    answer = robot.inverse([low])
    assert answer.status.code == SolveStatus.JOINT_LIMIT
    assert "arm" in answer.status.reason
    assert len(answer.solutions[0].positions)


def test_one_bad_joint_state_does_not_spoil_the_others(robot: Robot) -> None:
    q = robot.kinematics.inverse(robot.home).actuated
    answer = robot.forward([robot.joints(q), robot.joints([NAN, 0, 0]), robot.joints(q)])
    assert [s.status.code for s in answer.solutions] == [
        SolveStatus.CONVERGED,
        SolveStatus.INVALID_INPUT,
        SolveStatus.CONVERGED,
    ]
    assert answer.status.reason.startswith("joint state 1")


def test_too_much_at_once_is_refused_soon(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are those of the services' texts; lowered for all services but one, as it takes seconds to ask."""
    pose, joints, motion = Pose(), robot.joints(np.zeros(3)), PlatformMotion()
    began = time.monotonic()
    assert "10001 poses at once, more than 10000" in robot.inverse([pose] * 10_001).status.reason
    assert time.monotonic() - began < 30.0
    assert len(robot.inverse([robot.home] * 10_000).solutions) == 10_000
    monkeypatch.setattr(messages, "MOST_ROWS", 100)
    for answer, bound in (
        (robot.inverse([pose] * 101), "101 poses at once, more than 100"),
        (robot.inverse([pose] * 21, all_modes=True), "21 poses at once, more than 20 with all modes"),
        (robot.forward([joints] * 101), "101 joints at once, more than 100"),
        (robot.forward([joints] * 21, all_modes=True), "21 joints at once, more than 20 with all modes"),
        (robot.forward([joints], near=[pose] * 101), "101 poses in near for 1 joint states"),
        (robot.efforts([motion] * 101), "101 motions at once, more than 100"),
        (robot.accelerations([motion] * 101, [joints] * 101), "101 motions at once, more than 100"),
        (robot.accelerations([motion], [joints] * 101), "101 efforts for 1 motions"),
    ):
        assert answer.status.code == SolveStatus.INVALID_INPUT
        assert bound in answer.status.reason
        assert not answer.solutions


@pytest.mark.parametrize("kind", [SolveInverse, SolveForward, InverseDynamics, DirectDynamics])
def test_the_bounds_stand_in_the_texts_of_the_services(kind: Any) -> None:
    text = (Path(__file__).parents[2] / "pkm_interfaces" / "srv" / f"{kind.__name__}.srv").read_text()
    assert f"t most {messages.MOST_ROWS}" in text
    assert (f"with all_modes {messages.MOST_WITH_ALL_MODES}" in text) == hasattr(kind.Request(), "all_modes")
