# SPDX-License-Identifier: Apache-2.0
"""From the states of the actuated joints to the complete joint states and the state of the platform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState

from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_interfaces.msg import PlatformState, SolveStatus
from pkm_kinematics import Kinematics
from pkm_kinematics.ros.kinematics_node import KinematicsNode

from .conftest import Graph


class Machine:
    """Publishes actuated joint states as a machine would."""

    def __init__(self, graph: Graph) -> None:
        mechanism = load_mechanism("delta")
        self.kinematics = Kinematics(mechanism)
        graph.start(KinematicsNode, robot_description=mechanism.urdf, stale_after=0.3)
        self._graph = graph
        self._out = graph.client.create_publisher(JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_OUT)
        self.joints: list[JointState] = graph.listen(JointState, topics.JOINT_STATES)
        self.platform: list[PlatformState] = graph.listen(PlatformState, topics.PLATFORM_STATE)
        graph.wait(lambda: self._out.get_subscription_count() > 0)

    def say(self, positions: Any, velocities: Any = (), names: Any = None, **fields: Any) -> JointState:
        message = JointState(
            name=list(self.kinematics.actuated_names if names is None else names),
            position=[float(p) for p in positions],
            velocity=[float(v) for v in velocities],
        )
        message.header.stamp = self._graph.client.get_clock().now().to_msg()
        self._out.publish(message)
        return message

    def say_until(self, heard: list[Any], *args: Any, **options: Any) -> Any:
        """Publish until an answer to one of these messages has come; return message and answer."""
        sent: dict[tuple[int, int], JointState] = {}

        def answered() -> bool:
            message = self.say(*args, **options)
            sent[message.header.stamp.sec, message.header.stamp.nanosec] = message
            return any((m.header.stamp.sec, m.header.stamp.nanosec) in sent for m in list(heard))

        self._graph.wait(answered)
        return next(m for m in reversed(heard) if (m.header.stamp.sec, m.header.stamp.nanosec) in sent)


@pytest.fixture
def machine(graph: Graph) -> Machine:
    return Machine(graph)


def test_joint_states_are_complete(machine: Machine) -> None:
    kinematics = machine.kinematics
    pose = np.array(kinematics.home)
    pose[:3] += 0.03, -0.02, 0.05
    wanted = kinematics.motion(pose, np.array([0.4, -0.1, 0.2, 0, 0, 0]))
    joints = machine.say_until(machine.joints, wanted.actuated, wanted.actuated_velocities)
    assert tuple(joints.name) == kinematics.joint_names
    moving = [j.name for j in kinematics.mechanism.joints if j.type.dof]
    assert set(moving) == set(joints.name)
    np.testing.assert_allclose(joints.position, wanted.joints, atol=1e-8)
    np.testing.assert_allclose(joints.velocity, wanted.velocities, atol=1e-7)


def test_platform_state_follows(machine: Machine) -> None:
    kinematics = machine.kinematics
    pose = np.array(kinematics.home)
    pose[:3] += 0.02, 0.04, 0.01
    twist = np.array([0.1, 0.2, -0.3, 0, 0, 0])
    motion = kinematics.motion(pose, twist)
    state = machine.say_until(machine.platform, motion.actuated, motion.actuated_velocities)
    assert state.status.code == SolveStatus.CONVERGED
    assert (state.header.frame_id, state.child_frame_id) == ("base_link", "platform")
    np.testing.assert_allclose(messages.pose_of(state.pose), pose, atol=1e-9)
    np.testing.assert_allclose(messages.twist_of(state.twist), twist, atol=1e-8)
    margins = kinematics.singularity(pose)
    assert state.type1_distance == pytest.approx(float(margins.type1))
    assert state.type2_distance == pytest.approx(float(margins.type2))
    assert (state.type1_unit, state.type2_unit) == ("m/s per rad/s", "rad/s per m/s")


def test_modes_are_named_and_a_change_is_told(graph: Graph, machine: Machine) -> None:
    """The first arm goes over to where another working mode has it, in steps that the node follows."""
    told: list[DiagnosticArray] = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    kinematics = machine.kinematics
    home = kinematics.inverse(kinematics.home).actuated
    state = machine.say_until(machine.platform, home, [0.0] * 3)
    assert (state.working_mode, state.assembly_mode) == ("+++", "+1")
    goal = next(one for one in kinematics.inverse_all(kinematics.home) if one.label == "-++")
    for part in np.linspace(0.0, 1.0, 21):
        state = machine.say_until(machine.platform, home + part * (goal.actuated - home), [0.0] * 3)
    assert (state.working_mode, state.assembly_mode) == (goal.label, "+1")
    expected = "working mode +++ left for -++"

    def warned() -> bool:
        machine.say(goal.actuated, [0.0] * 3)
        statuses = [status for array in list(told) for status in array.status if status.name.endswith("/kinematics")]
        return any(s.level == DiagnosticStatus.WARN and s.message.startswith(expected) for s in statuses)

    graph.wait(warned)
    machine.platform.clear()
    state = machine.say_until(machine.platform, [3.1, 0.0, 0.0], [0.0] * 3)
    assert (state.working_mode, state.assembly_mode) == ("", "")  # lost: no pose fits


def test_silence_is_told(graph: Graph, machine: Machine) -> None:
    machine.say_until(machine.platform, machine.kinematics.inverse(machine.kinematics.home).actuated, [0.0] * 3)
    graph.wait(lambda: machine.platform[-1].status.code == SolveStatus.NOT_READY)
    assert "silent" in machine.platform[-1].status.reason
    machine.joints.clear()
    machine.say_until(machine.joints, machine.kinematics.inverse(machine.kinematics.home).actuated, [0.0] * 3)


BAD = {
    "not finite": ({"positions": [0.1, float("nan"), 0.1]}, "finite"),
    "a joint missing": ({"positions": [0.1, 0.1], "names": ["limb1_arm", "limb2_arm"]}, "limb3_arm"),
    "mis-sized": ({"positions": [0.1, 0.1]}, "2 values"),
    "empty": ({"positions": [], "names": []}, "limb1_arm"),
    "velocity not finite": ({"positions": [0.1] * 3, "velocities": [0.0, 0.0, float("inf")]}, "finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_states_are_told_and_the_node_goes_on(graph: Graph, machine: Machine, case: str) -> None:
    message, word = BAD[case]
    home = machine.kinematics.inverse(machine.kinematics.home).actuated
    machine.say_until(machine.joints, home, [0.0] * 3)

    def told() -> bool:
        machine.say(**message)
        status = machine.platform[-1].status if machine.platform else SolveStatus()  # it comes after the joints
        return status.code == SolveStatus.NOT_READY and word in status.reason

    graph.wait(told)
    machine.joints.clear()
    machine.say_until(machine.joints, home, [0.0] * 3)


def test_a_joint_beyond_its_limit_is_told(graph: Graph, machine: Machine) -> None:
    machine.say_until(machine.joints, machine.kinematics.inverse(machine.kinematics.home).actuated, [0.0] * 3)
    state = machine.say_until(machine.platform, [0.3, 1.7, 0.3], [0.0] * 3)
    assert state.status.code == SolveStatus.JOINT_LIMIT
    assert "limb2_arm" in state.status.reason
