# SPDX-License-Identifier: Apache-2.0
"""A robot description that never comes, comes late, or cannot be used."""

from __future__ import annotations

from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState

from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_dynamics.node import DynamicsNode
from pkm_interfaces.msg import PlatformMotion, SolveStatus
from pkm_interfaces.srv import DirectDynamics, InverseDynamics, SolveForward, SolveInverse
from pkm_kinematics.node import KinematicsNode

from .conftest import Graph


def ask(graph: Graph) -> SolveStatus:
    return graph.call(SolveInverse, topics.SOLVE_INVERSE, SolveInverse.Request(poses=[Pose()])).status


def test_services_say_that_no_description_has_come(graph: Graph) -> None:
    graph.start(KinematicsNode)
    graph.start(DynamicsNode)
    requests = (
        (SolveInverse, topics.SOLVE_INVERSE, SolveInverse.Request(poses=[Pose()])),
        (SolveForward, topics.SOLVE_FORWARD, SolveForward.Request(joints=[JointState()])),
        (InverseDynamics, topics.INVERSE_DYNAMICS, InverseDynamics.Request(motions=[PlatformMotion()])),
        (DirectDynamics, topics.DIRECT_DYNAMICS, DirectDynamics.Request(motions=[PlatformMotion()])),
    )
    for kind, name, request in requests:
        status = graph.call(kind, name, request).status
        assert status.code == SolveStatus.NOT_READY
        assert f"{graph.namespace}/robot_description" in status.reason


def test_a_late_description_is_taken(graph: Graph) -> None:
    graph.start(KinematicsNode)
    assert ask(graph).code == SolveStatus.NOT_READY
    graph.describe(load_mechanism("delta").urdf)
    graph.wait(lambda: ask(graph).code != SolveStatus.NOT_READY)


def test_a_broken_description_is_refused_with_its_reason(graph: Graph) -> None:
    graph.start(KinematicsNode)
    graph.describe("<robot name='nothing'><link name='base'/></robot>")
    graph.wait(lambda: "cannot be used" in ask(graph).reason)
    assert ask(graph).code == SolveStatus.NOT_READY
    graph.describe(load_mechanism("delta").urdf)
    graph.wait(lambda: ask(graph).code != SolveStatus.NOT_READY)
    graph.describe("this is not XML")  # the node keeps the robot it has
    assert ask(graph).code != SolveStatus.NOT_READY


def test_the_description_may_be_a_parameter(graph: Graph) -> None:
    graph.start(KinematicsNode, robot_description=load_mechanism("delta").urdf)
    assert ask(graph).code != SolveStatus.NOT_READY
