# SPDX-License-Identifier: Apache-2.0
"""A robot description that never comes, comes late, or cannot be used."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Pose
from rcl_interfaces.msg import Log
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from pkm_bringup.nodes.controller_node import ControllerNode
from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_description import Mechanism, load_mechanism
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.gallery import robot_path
from pkm_description.ros import topics
from pkm_description.ros.messages import INTERNAL_ERROR
from pkm_description.ros.robot_description import DescriptionNode
from pkm_dynamics.ros.dynamics_node import DynamicsNode
from pkm_interfaces.msg import PlatformMotion, PlatformState, SolveStatus
from pkm_interfaces.srv import DirectDynamics, InverseDynamics, SolveForward, SolveInverse
from pkm_kinematics import Kinematics
from pkm_kinematics.ros.kinematics_node import KinematicsNode

from .conftest import Graph


def ask(graph: Graph) -> SolveStatus:
    return graph.call(SolveInverse, topics.SOLVE_INVERSE, SolveInverse.Request(poses=[Pose()])).status


def heard_logs(graph: Graph) -> list[str]:
    """Texts of the log, as they come."""
    texts: list[str] = []
    graph.client.create_subscription(Log, "/rosout", lambda message: texts.append(message.msg), 100)
    return texts


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


def test_a_node_that_waits_in_vain_ends_and_says_for_whom(graph: Graph) -> None:
    said = heard_logs(graph)
    node = graph.start(KinematicsNode, description_patience=4.0)
    patient = graph.start(DynamicsNode)
    graph.wait(lambda: getattr(node, "exit_code", None) == 1, 20.0)
    assert getattr(patient, "exit_code", None) is None
    graph.wait(lambda: any("robot_state_publisher" in text for text in said), 10.0)


def test_a_broken_description_is_refused_with_its_reason(graph: Graph) -> None:
    graph.start(KinematicsNode)
    graph.describe("<robot name='nothing'><link name='base'/></robot>")
    graph.wait(lambda: "cannot be used" in ask(graph).reason)
    assert ask(graph).code == SolveStatus.NOT_READY
    graph.describe(load_mechanism("delta").urdf)
    graph.wait(lambda: ask(graph).code != SolveStatus.NOT_READY)
    graph.describe("this is not XML")  # the node keeps the robot it has
    assert ask(graph).code != SolveStatus.NOT_READY


def test_a_refused_description_is_in_the_diagnostics(graph: Graph) -> None:
    """Where the node has no robot, as an error; where it goes on with another, as a warning until one is taken."""
    told: list[DiagnosticArray] = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)

    def last() -> DiagnosticStatus:
        found = [s for array in list(told) for s in array.status if s.name.endswith("/dynamics")]
        return found[-1] if found else DiagnosticStatus(level=DiagnosticStatus.OK)

    graph.start(DynamicsNode)
    graph.describe("<robot name='nothing'><link name='base'/></robot>")
    graph.wait(lambda: last().level == DiagnosticStatus.ERROR and "cannot be used" in last().message)
    delta = load_mechanism("delta").urdf
    graph.describe(delta)
    graph.wait(lambda: last().level == DiagnosticStatus.OK and "ready" in last().message)
    graph.describe("this is not XML")
    graph.wait(lambda: last().level == DiagnosticStatus.WARN)
    assert "another robot description is refused" in last().message
    assert "XML" in {value.key: value.value for value in last().values}["refused robot description"]
    graph.describe(delta)
    graph.wait(lambda: last().level == DiagnosticStatus.OK)
    assert "refused" not in last().message


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
        before = node._description._seen
        graph.describe(text)
        graph.wait(lambda before=before: node._description._seen != before)
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


def states(graph: Graph, mechanism: Mechanism, every: float = 0.01) -> threading.Event:
    """Publish the driven joints at home until the event is set."""
    stop = threading.Event()
    publisher = graph.client.create_publisher(JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_OUT)
    kinematics = Kinematics(mechanism)
    home = [float(q) for q in kinematics.inverse(kinematics.home).actuated]
    zero = [0.0] * len(home)

    def publish() -> None:
        while not stop.wait(every):
            message = JointState(name=kinematics.actuated_names, position=home, velocity=zero)
            message.header.stamp = graph.client.get_clock().now().to_msg()
            publisher.publish(message)

    threading.Thread(target=publish, daemon=True).start()
    return stop


@pytest.mark.parametrize("make", [KinematicsNode, ControllerNode])
def test_another_robot_is_refused_while_readings_come_and_taken_when_they_do_not(graph: Graph, make: type) -> None:
    delta, five_bar = load_mechanism("delta"), load_mechanism("five_bar")
    node: Any = graph.start(make)
    logged = heard_logs(graph)
    graph.describe(delta.urdf)
    graph.wait(lambda: node._description.mechanism is not None)
    stop = states(graph, delta)
    graph.wait(lambda: node._description._busy())
    graph.describe(five_bar.urdf)
    graph.wait(lambda: any("another robot description is refused" in text for text in logged))
    assert node._description.mechanism.name == "delta"
    stop.set()
    graph.wait(lambda: not node._description._busy())
    graph.describe(five_bar.urdf)
    graph.wait(lambda: node._description.mechanism.name == "five_bar")


def test_the_machine_is_exchanged_when_it_is_cleaned_up(graph: Graph) -> None:
    delta, five_bar = load_mechanism("delta"), load_mechanism("five_bar")
    node: Any = graph.start(HardwareNode)
    read = graph.listen(JointState, topics.HARDWARE_STATES)
    graph.describe(delta.urdf)
    graph.wait(lambda: read)
    logged = heard_logs(graph)
    graph.describe(five_bar.urdf)
    graph.wait(lambda: any("another robot description is refused" in text for text in logged))
    assert len(node._alone.machine.limits.names) == 3
    graph.in_executor(node.trigger_deactivate)
    graph.in_executor(node.trigger_cleanup)
    read.clear()
    graph.describe(five_bar.urdf)
    graph.wait(lambda: read and list(read[-1].name) == list(five_bar.actuated_joints))  # after what was on its way


def test_tracking_does_not_wait_for_a_service(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = load_mechanism("delta")
    asked, go_on = threading.Event(), threading.Event()

    def slow(kinematics: Kinematics, request: Any, response: Any, measured: Any) -> None:
        asked.set()
        assert go_on.wait(60.0)
        raise np.linalg.LinAlgError("nobody thought of that")

    monkeypatch.setattr("pkm_kinematics.ros.kinematics_node.solve_inverse", slow)
    graph.start(KinematicsNode)
    graph.describe(delta.urdf)
    stop = states(graph, delta)
    tracked = graph.listen(PlatformState, topics.PLATFORM_STATE)
    graph.wait(lambda: any(state.status.code == SolveStatus.CONVERGED for state in tracked))
    client = graph.client.create_client(SolveInverse, topics.SOLVE_INVERSE)
    assert client.wait_for_service(30.0)
    answer = client.call_async(SolveInverse.Request(poses=[Pose()]))
    assert asked.wait(30.0)
    tracked.clear()
    graph.wait(lambda: len(tracked) > 20)
    assert not answer.done()
    go_on.set()
    graph.wait(answer.done)
    assert answer.result().status.code == INTERNAL_ERROR
    assert "nobody thought of that" in answer.result().status.reason
    tracked.clear()
    graph.wait(lambda: len(tracked) > 20)  # the node goes on
    stop.set()
