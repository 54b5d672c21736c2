# SPDX-License-Identifier: Apache-2.0
"""A robot description that never comes, comes late, or cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from rcl_interfaces.msg import Log
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from pkm_description import Mechanism, load_mechanism
from pkm_description.gallery import robot_path
from pkm_description.mjcf.export import export_mjcf
from pkm_description.ros import topics
from pkm_description.ros.description_node import DescriptionNode
from pkm_dynamics.ros.dynamics_node import DynamicsNode
from pkm_interfaces.msg import PlatformMotion, SolveStatus
from pkm_interfaces.srv import DirectDynamics, InverseDynamics, SolveForward, SolveInverse
from pkm_kinematics.ros.kinematics_node import KinematicsNode

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


PROGRAM = "${[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0](['touch', '%s'])}"


def test_a_description_is_data_and_ends_no_node(graph: Graph, tmp_path: Path) -> None:
    """What a text from anywhere may try: to name a robot or a file, to run a program, to read a file, to take long."""
    touched, secret = tmp_path / "touched", tmp_path / "secret.yaml"
    secret.write_text("word: mellon")
    xacro = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    node = graph.start(KinematicsNode)
    heard = graph.listen(Log, "/rosout")
    texts = [
        "delta",
        str(robot_path("delta")),
        "x" * 300,
        robot_path("five_bar").read_text(),
        export_mjcf(load_mechanism("five_bar")),
        f'<robot {xacro} name="{PROGRAM % touched}"><link name="{PROGRAM % touched}"/></robot>',
        f"<robot {xacro} name=\"${{xacro.load_yaml('{secret}')}}\"/>",
        f'<robot {xacro} name="r"><xacro:include filename="{secret}"/></robot>',
        '<!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/passwd">]><robot name="&f;"/>',
        "<robot>" + "<a>" * 100_000,
        "<robot name='r'><link name='" + "x" * 1_000_000 + "'/></robot>",
    ]
    for text in texts:
        before = node._description._text
        graph.describe(text)
        graph.wait(lambda before=before: node._description._text != before)
        status = ask(graph)
        assert status.code == SolveStatus.NOT_READY
        assert "cannot be used" in status.reason
        assert len(status.reason) < 4000
    assert not touched.exists()
    graph.wait(lambda: sum("cannot be used" in message.msg for message in heard) == len(texts))
    assert not any("mellon" in message.msg or "root:" in message.msg for message in heard)
    graph.describe(load_mechanism("delta").urdf)
    graph.wait(lambda: ask(graph).code != SolveStatus.NOT_READY)


def test_an_error_that_nobody_thought_of_ends_no_node(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> Mechanism:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr("pkm_description.ros.robot_description.shared_mechanism", fail)
    graph.start(KinematicsNode)
    graph.describe("<robot/>")
    graph.wait(lambda: "SVD did not converge" in ask(graph).reason)


def test_the_description_node_latches_what_it_is_given(graph: Graph) -> None:
    text = load_mechanism("five_bar").urdf
    graph.start(DescriptionNode, robot_description=text)
    heard: list[str] = []
    graph.client.create_subscription(String, topics.ROBOT_DESCRIPTION, lambda m: heard.append(m.data), topics.LATCHED)
    graph.wait(lambda: heard)
    assert heard == [text]
