# SPDX-License-Identifier: Apache-2.0
"""Requests and messages that nobody in his right mind sends: the nodes of a whole run live on, and answer the next."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Log, Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters, SetParametersAtomically
from rclpy.impl.implementation_singleton import rclpy_implementation
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from pkm_control.operator_interface import Mode
from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_hardware.machine import NO_FAULT
from pkm_interfaces.msg import ControllerState, PlatformState
from pkm_interfaces.srv import PlayMotion

from .conftest import Graph

NODES = ("description", "hardware", "kinematics", "dynamics", "controller", "motion_player")
TOGETHER = {"control": ("hardware", "controller")}  # nodes by their process, where that holds several
HUGE = 100_000_000  # letters
_KEPT = 20_000_000  # bytes, of a text of 100 MB that was refused
_PATIENCE = 10.0  # s, for an answer


class Run:
    """A robot over ROS in a process group of its own, whose nodes are known by their process names."""

    def __init__(self, graph: Graph, *options: str) -> None:
        self.graph = graph
        command = [sys.executable, "-m", "pkm_bringup.runner", "delta", "--motion=none", "--page=false"]
        command += ["--rate=250", "--realtime-priority=0", f"--namespace={graph.namespace}", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def nodes(self) -> dict[str, int]:
        """Processes by the node that they hold."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
            except (OSError, ValueError):
                continue
            if int(status["PPid"]) == self.process.pid and status["State"][0] != "Z":
                start = status["Name"].removeprefix("pkm ")  # the kernel keeps 15 letters
                held = TOGETHER.get(start, [name for name in NODES if name.startswith(start)])
                found.update(dict.fromkeys(held, int(folder.name)))
        return found

    def end(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(60.0)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def robot(shared_graph: Graph) -> Iterator[Run]:
    run = Run(shared_graph)
    try:
        shared_graph.wait(lambda: len(run.nodes()) == len(NODES), 120.0)
        for name in NODES:
            alive(run, name)
        yield run
    finally:
        code = run.end()
    assert code == 0


def alive(run: Run, name: str) -> None:
    """The node answers an ordinary request; asked again, as its first answer may come before it has found who asks."""
    request = GetParameters.Request(names=["use_sim_time"])
    for _ in range(12):
        try:
            answer = run.graph.call(GetParameters, f"{name}/get_parameters", request, 5.0)
        except AssertionError:
            continue
        assert len(answer.values) == 1
        return
    raise AssertionError(f"{name} does not answer")


def memory(process: int) -> int:
    """Bytes of memory that are a process's own."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not say")


@pytest.mark.parametrize("name", NODES)
def test_a_parameter_of_an_unknown_type_is_refused(robot: Run, name: str) -> None:
    before = robot.nodes()[name]
    bad = Parameter(name="use_sim_time", value=ParameterValue(type=255))
    good = Parameter(name="use_sim_time", value=ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=False))
    request = SetParameters.Request(parameters=[good, bad])
    answer = robot.graph.call(SetParameters, f"{name}/set_parameters", request, _PATIENCE)
    assert [one.successful for one in answer.results] == [True, False]
    assert "255" in answer.results[1].reason
    atomic = SetParametersAtomically.Request(parameters=[bad])
    answer = robot.graph.call(SetParametersAtomically, f"{name}/set_parameters_atomically", atomic, _PATIENCE)
    assert not answer.result.successful
    assert "255" in answer.result.reason
    alive(robot, name)
    assert robot.nodes()[name] == before


@pytest.mark.parametrize("name", NODES)
def test_a_clock_is_not_exchanged_while_a_node_runs(robot: Run, name: str) -> None:
    value = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
    request = SetParameters.Request(parameters=[Parameter(name="use_sim_time", value=value)])
    answer = robot.graph.call(SetParameters, f"{name}/set_parameters", request, _PATIENCE)
    assert not answer.results[0].successful
    assert "start it again with use_sim_time" in answer.results[0].reason


@pytest.mark.parametrize("name", NODES)
def test_other_nonsense_about_parameters_gets_an_answer(robot: Run, name: str) -> None:
    before = robot.nodes()[name]
    graph, strange = robot.graph, ["", "\x00", "a" * 10_000, "use_sim_time", "x.y", "~/x", "<b>"]
    values = [ParameterValue(type=kind) for kind in range(11)]
    every = [Parameter(name=word, value=value) for word in strange for value in values]
    for kind, service, request in (
        (GetParameters, "get_parameters", GetParameters.Request(names=strange)),
        (DescribeParameters, "describe_parameters", DescribeParameters.Request(names=strange)),
        (ListParameters, "list_parameters", ListParameters.Request(prefixes=strange, depth=2**64 - 1)),
        (SetParameters, "set_parameters", SetParameters.Request(parameters=every)),
        (SetParametersAtomically, "set_parameters_atomically", SetParametersAtomically.Request(parameters=every)),
    ):
        assert graph.call(kind, f"{name}/{service}", request, _PATIENCE) is not None
    alive(robot, name)
    assert robot.nodes()[name] == before


@pytest.mark.parametrize("number", [0, 9, 10, 42, 100, 255])
def test_a_transition_that_is_none_is_refused(robot: Run, number: int) -> None:
    """In whichever state: here inactive and, below, active."""
    before = robot.nodes()["hardware"]
    for activate in (False, True):
        if activate:
            change(robot, Transition.TRANSITION_ACTIVATE)
        was = state(robot)
        assert not change(robot, number)
        assert state(robot) == was
        if activate:
            change(robot, Transition.TRANSITION_DEACTIVATE)
    assert robot.nodes()["hardware"] == before


def change(run: Run, number: int) -> bool:
    request = ChangeState.Request(transition=Transition(id=number))
    return bool(run.graph.call(ChangeState, "hardware/change_state", request, _PATIENCE).success)


def state(run: Run) -> str:
    answer = run.graph.call(GetState, "hardware/get_state", GetState.Request(), _PATIENCE)
    return str(answer.current_state.label)


def test_messages_that_are_none_are_dropped(robot: Run) -> None:
    """Bytes that no message serialises to, on every topic that the nodes hear."""
    before, client = robot.nodes(), robot.graph.client
    heard: dict[str, str] = {}
    for name in NODES:
        for topic, kinds in client.get_subscriber_names_and_types_by_node(name, robot.graph.namespace):
            if "/_action/" not in topic:
                heard[topic] = kinds[0]
    assert len(heard) > 10
    sent = 0
    for topic, kind in sorted(heard.items()):
        package, _, message = kind.split("/")
        module = __import__(f"{package}.msg", fromlist=[message])
        publisher = client.create_publisher(getattr(module, message), topic, topics.LATCHED_EVENTS)
        robot.graph.wait(lambda p=publisher: p.get_subscription_count() > 0)
        for garbage in (b"", b"\x00\x01\x00\x00", b"\x00\x01\x00\x00\xff\xff\xff\x7f", b"\xff" * 64):
            with contextlib.suppress(rclpy_implementation.RCLError):
                publisher.publish(garbage)  # the middleware itself may refuse it
                sent += 1
        time.sleep(0.05)
        client.destroy_publisher(publisher)
    assert sent > 2 * len(heard)
    for name in NODES:
        alive(robot, name)
    assert robot.nodes() == before
    loops_run(robot)


def loops_run(run: Run) -> None:
    """The threads of the machine, the controller and the tracking, which no executor serves, live on."""

    def reset() -> bool:  # a second commander is a fault
        answer = run.graph.call(Trigger, "hardware/reset", Trigger.Request())
        return answer.success or answer.message == NO_FAULT

    run.graph.wait(reset, 20.0)
    for kind, topic in (
        (JointState, topics.HARDWARE_STATES),
        (ControllerState, topics.CONTROLLER_STATE),
        (PlatformState, topics.PLATFORM_STATE),
    ):
        heard = run.graph.listen(kind, topic)
        run.graph.wait(lambda heard=heard: len(heard) > 50, _PATIENCE)


@pytest.mark.slow
def test_a_huge_description_is_refused_and_not_kept(robot: Run) -> None:
    nodes = {name: process for name, process in robot.nodes().items() if name != "description"}
    before = {name: memory(process) for name, process in nodes.items()}
    told = robot.graph.listen(Log, "/rosout")
    robot.graph.describe("x" * HUGE)
    robot.graph.wait(
        lambda: {log.name.rpartition(".")[2] for log in list(told) if "100000000 characters" in log.msg} >= set(nodes)
    )
    for name in nodes:
        alive(robot, name)
    assert robot.nodes().items() >= nodes.items()

    def kept() -> dict[str, int]:
        return {name: memory(process) - before[name] for name, process in nodes.items()}

    try:
        robot.graph.wait(lambda: all(size < _KEPT for size in kept().values()), 20.0)
    except AssertionError as error:
        raise AssertionError(f"kept: {kept()}") from error


def test_the_robot_still_moves_after_all_that(robot: Run) -> None:
    answers: list[str] = []
    if state(robot) == "inactive":
        assert change(robot, Transition.TRANSITION_ACTIVATE)

    def plays() -> bool:
        request = PlayMotion.Request(motion="circle", cycles=1)
        answer = robot.graph.call(PlayMotion, topics.PLAY_MOTION, request, 60.0)
        answers.append(answer.message)
        return bool(answer.success)

    states: list[ControllerState] = robot.graph.listen(ControllerState, topics.CONTROLLER_STATE)
    try:
        robot.graph.wait(plays, 40.0)
    except AssertionError as error:
        raise AssertionError(answers[-1]) from error
    robot.graph.wait(lambda: states and states[-1].mode == Mode.TRACKING)
    time.sleep(4.0)  # on the way to the start, it holds there, on its circle
    robot.graph.wait(lambda: states[-1].mode == Mode.HOLDING)


@pytest.mark.slow
def test_a_description_that_is_none_before_the_right_one_ends_nothing(shared_graph: Graph) -> None:
    graph = Graph(f"{shared_graph.namespace}_late")
    try:
        graph.describe("<robot name='nothing'")
        run = Run(graph, "--description=other", "--motion=auto", "--cycles=1", "--report=")
        graph.wait(lambda: len(run.nodes()) == len(NODES) - 1, 120.0)
        for name in NODES[1:]:
            alive(run, name)
        time.sleep(2.0)
        assert run.process.poll() is None
        late = graph.client.create_publisher(String, topics.ROBOT_DESCRIPTION, topics.LATCHED)
        told = graph.listen(Log, "/rosout")
        late.publish(String(data=load_mechanism("delta").urdf))
        graph.wait(lambda: sum("robot 'delta'" in log.msg for log in list(told)) >= len(NODES) - 1)
    finally:
        graph.close()
        run.end()
