# SPDX-License-Identifier: Apache-2.0
"""The commands that ask a running robot, and what they print."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from pkm_bringup.cli import main
from pkm_client import verbs
from pkm_client.client_errors import RefusedError
from pkm_control.operator_interface import Mode
from pkm_description import command_options
from pkm_hardware.machine import EMERGENCY_STOP
from pkm_runtime import local_services

from .conftest import running_nodes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def name() -> Iterator[str]:
    """Namespace of a Delta."""
    with running_nodes("verbs"):
        assert main(["move", "0", "0", "-0.85", "--namespace", "verbs", "--timeout", "120"]) == 0
        yield "verbs"


def said(capsys: pytest.CaptureFixture[str], name: str, *words: str, code: int = 0) -> str:
    """What a command prints, which ends as expected; without what it is doing, on a slow computer."""
    capsys.readouterr()
    assert main([words[0], "--namespace", name, *words[1:]]) == code
    out, err = capsys.readouterr()
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if not line.endswith(" s ...\n")) if code else out


# Without the robot of this module, which runs until the file ends: first


@pytest.mark.parametrize(("text", "found"), [("-90deg", (-np.pi / 2, "rad")), ("20 mm", (0.02, "m")), ("3", (3.0, ""))])
def test_a_number_has_its_unit_beside_it(text: str, found: tuple[float, str]) -> None:
    assert command_options.coordinate(text) == found
    assert command_options.turn_rate("-180deg/s") == -np.pi
    for wrong in ("1ft", "1e999mm", "nan", "5deg5"):
        with pytest.raises((ValueError, argparse.ArgumentTypeError)):
            command_options.coordinate(wrong)


def test_no_robot(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
    words = said(capsys, "nobody", "stop", "--timeout", "0.3", code=1)
    assert words.startswith("pkm stop: no robot answers in namespace '/nobody' within 0.3 s")


def test_a_name_is_served_once_and_given_back() -> None:
    node_parts = pytest.importorskip("pkm_bringup.nodes.node_parts", reason="there is no ROS")
    service, asked = f"/named_{os.getpid()}/stop", []

    def answer() -> SimpleNamespace:
        asked.append(None)
        return SimpleNamespace(success=True, message="é" * 40000)

    words = ["stop", "--namespace", service.removesuffix("/stop")]
    served = node_parts.LocalService(service, answer)
    try:
        with pytest.raises(OSError, match="in use"):
            node_parts.LocalService(service, answer)
        for _ in range(3):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gone:  # who asks may go at once
                gone.connect(local_services.address(service))
        assert local_services.asked_at_once(words) == 0
        assert len(asked) == 4
    finally:
        served.end()
    assert local_services.asked_at_once(words) is None
    node_parts.LocalService(service, answer).end()


STRANGER = "import os, socket, sys; os.setuid(65534); line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_stranger_is_not_answered() -> None:
    node_parts = pytest.importorskip("pkm_bringup.nodes.node_parts", reason="there is no ROS")
    service, asked = f"/strange_{os.getpid()}/stop", []
    served = node_parts.LocalService(service, lambda: asked.append(None))
    program = f"{STRANGER}line.connect('\\0' + sys.argv[1]); print(line.recv(9))"
    try:
        words = [sys.executable, "-S", "-c", program, local_services.address(service)[1:]]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "b''\n"
    finally:
        served.end()
    assert not asked


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_stranger_is_not_believed() -> None:
    namespace = f"/strange_{os.getpid()}"
    program = f"{STRANGER}line.bind('\\0' + sys.argv[1]); line.listen(); print(flush=True); line.accept()[0].send(b'1')"
    words = [sys.executable, "-S", "-c", program, local_services.address(f"{namespace}/stop")[1:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == "\n"
        assert local_services.asked_at_once(["stop", "--namespace", namespace]) is None


def test_an_emergency_stop_waits_for_no_import_that_it_does_not_need() -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
    program = "import sys, pkm_bringup.cli; pkm_bringup.cli.command('estop'); import pkm_client.ros.client_node\n"
    program += "print(*{'numpy', 'geometry_msgs', 'pkm_description.load', 'pkm_client.robot'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_session(capsys: pytest.CaptureFixture[str], name: str, tmp_path: Path) -> None:
    assert said(capsys, name, "move", "0.02", "0", "-0.9", "--speed", "0.2").startswith("done; at most")
    state = json.loads(said(capsys, name, "state", "--json"))
    assert state["mode"] == "HOLDING"
    assert state["reference"][:3] == pytest.approx([0.02, 0.0, -0.9], abs=1e-9)
    assert said(capsys, name, "move", "15mm", "0", "-90cm").startswith("done; at most")
    assert json.loads(said(capsys, name, "state", "--json"))["reference"][:3] == pytest.approx(
        [0.015, 0.0, -0.9], abs=1e-9
    )
    assert said(capsys, name, "speed", "0.5") == "motions run at 50% of their plan\n"
    text = said(capsys, name, "state")
    assert "motions run at 50% of their plan" in text
    assert re.search(r"platform at \(.*\) m, roll, pitch, yaw \(0.00, 0.00, 0.00\) deg", text)
    assert re.search(r"limb1_arm at -?[1-9]\d?\.\d\d deg$", text, re.MULTILINE)
    assert said(capsys, name, "speed", "1") == "motions run at 100% of their plan\n"
    assert said(capsys, name, "jog", "0", "0.02", "0", "--seconds", "0.5").startswith("moved by ")
    moved = said(capsys, name, "jog", "0", "0", "-1e5", "--seconds", "1e9")
    assert " m/s at most, not 1e+05; it goes no further: " in moved
    assert json.loads(said(capsys, name, "state", "--json"))["reference"][1] > 0.003
    assert said(capsys, name, "stop") == "nothing moved; the platform is held\n"
    assert said(capsys, name, "recover") == "nothing is wrong: the platform stands well\n"
    file = tmp_path / "way.csv"
    file.write_text("x [mm], y [mm], z [mm]\n0, 0, -860\n10, 0, -860\n")
    assert said(capsys, name, "follow", str(file)).startswith("done; at most")


def test_messages_of_others_that_make_no_sense_are_not_taken() -> None:
    """A node of others on the robot's topics ended programs that asked for its state with a ValueError."""
    RosLink = importlib.import_module("pkm_client.ros.link").RosLink
    joints = importlib.import_module("sensor_msgs.msg").JointState
    states = importlib.import_module("pkm_interfaces.msg").ControllerState
    link = RosLink.__new__(RosLink)
    link._states_lock, link._news, link._joints = threading.Lock(), threading.Condition(), {}
    link._state, link._heard, link._stopped = None, 0.0, 0.0
    good = joints(name=["a", "b"], position=[1.0, 2.0], velocity=[3.0, 4.0])
    bad = joints(name=["a", "b"], position=[1.0]), joints(name=["a", "b"], position=[1.0, 2.0], velocity=[3.0])
    messages = iter([good, *bad, None])
    link._states = SimpleNamespace(take=lambda: next(messages))
    link._read_joints()
    assert link._joints == {"a": (1.0, 3.0), "b": (2.0, 4.0)}
    link._take_state(states(mode=int(Mode.TRACKING)))
    link._take_state(states(mode=255))
    assert link._state.mode == Mode.TRACKING


@pytest.mark.slow
def test_an_interrupted_command_says_what_the_robot_does(capsys: pytest.CaptureFixture[str], name: str) -> None:
    said(capsys, name, "move", "0", "0", "-0.85")
    words = [sys.executable, "-m", "pkm_bringup.cli", "move", "0.05", "0", "-0.85", "--speed", "0.002"]
    link = importlib.import_module("pkm_client.ros.link").RosLink(name, 60.0, False)
    with subprocess.Popen([*words, "--namespace", name], stderr=subprocess.PIPE, text=True) as process:
        try:
            while not link.state().moving:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60.0)
        finally:
            process.kill()
            link.close()
    assert process.returncode == 130
    assert "pkm move: interrupted; the robot is holding, its platform at (" in errors


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("pause",), "pkm pause: no motion runs\n"),
        (("resume",), "pkm resume: nothing is paused\n"),
        (("speed", "1000"), "pkm speed: the fraction is 1000; give a number from 0 to 1\n"),
        (
            ("move", "0", "0"),
            "pkm move: give 3 numbers, platform_x [m], platform_y [m], platform_z [m], or 7",
        ),
        (("move", "1deg", "0", "-0.9"), "pkm move: platform_x is in m, not in a unit of rad\n"),
        (("move", "0", "0", "-9"), "pkm move: on the way to the goal: the platform cannot be at"),
        (("follow", "nonsense"), "pkm follow: nonsense: cannot be read"),
    ],
)
def test_what_is_not_done_is_said(
    capsys: pytest.CaptureFixture[str], name: str, words: tuple[str, ...], why: str
) -> None:
    assert said(capsys, name, *words, code=2 if words[0] == "follow" else 1).startswith(why)  # 2: asked wrongly


def test_who_waits_for_a_motion_that_is_paused_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whomever: it waits as long as the pause lasts."""
    monkeypatch.setattr(verbs, "_PAUSED", 0.02)
    robot = SimpleNamespace(state=SimpleNamespace(mode=Mode.TRACKING))
    with verbs._pauses_told(robot):
        for mode in (Mode.TRACKING, Mode.PAUSED, Mode.TRACKING, Mode.PAUSED):
            robot.state = SimpleNamespace(mode=mode)
            time.sleep(0.2)
    assert capsys.readouterr().err.count("the robot is paused: 'pkm resume' goes on, 'pkm stop' ends it\n") == 2


def test_a_client_that_is_interrupted_while_it_begins_ends_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("pkm_client.ros.link")
    ends: list[Callable[[], None]] = []
    monkeypatch.setattr("pkm_client.ros.client_node.atexit.register", ends.append)
    monkeypatch.setattr(module, "PolledSubscription", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        module.RosLink("nobody", 0.1)
    for end in ends:
        end()
    assert ends


def test_a_motion_that_takes_long_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It was said only that the robot is looked for, after libraries had been loaded."""

    class Slow:
        state = SimpleNamespace(mode=Mode.TRACKING, moving=True)
        asked = 0.0

        def __enter__(self) -> Slow:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def move_to(self, *_: object, **__: object) -> None:
            time.sleep(0.3)
            raise RefusedError("no")

    monkeypatch.setattr("pkm_runtime.progress._SILENT_FOR", 0.1)
    monkeypatch.setattr("pkm_client.robot.Robot.connect", lambda *_, **__: Slow())
    slow = SimpleNamespace(namespace="", timeout=1.0)
    assert verbs.ask_robot("move", slow, lambda robot: str(robot.move_to())) == 1
    assert capsys.readouterr().err.startswith("pkm: the robot moves: 0 s ...\npkm move: no\n")


def test_a_robot_in_another_namespace_is_named(capsys: pytest.CaptureFixture[str], name: str) -> None:
    words = said(capsys, "nobody", "state", "--timeout", "0.3", code=1)
    assert words.endswith(f"; here, robots run in namespace '/{name}'\n")
    assert not local_services.elsewhere(name)


def test_what_stops_is_asked_through_a_socket_and_over_ros_alike(capsys: pytest.CaptureFixture[str], name: str) -> None:
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    program += "from pkm_runtime.local_services import asked_at_once\n"
    program += f"print([asked_at_once([word, '--namespace', {name!r}]) for word in ('stop', 'pause', 'estop')])\n"
    program += "print({'rclpy', 'socket', 'threading', 'typing'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    held, off, *rest = done.stdout.splitlines()
    assert (held, rest) == ("nothing moved; the platform is held", ["[0, 1, 0]", "set()"])
    assert done.stderr == "pkm pause: no motion runs\n"
    over_ros = "--timeout", "60"  # with options, the socket is not asked
    assert said(capsys, name, "estop", *over_ros) == f"{off}\n" == f"{EMERGENCY_STOP}\n"
    assert said(capsys, name, "reset") == "the machine is inactive\n"
    assert said(capsys, name, "enable") == "the machine is active\n"
    off = said(capsys, name, "disable")
    assert said(capsys, name, "disable", *over_ros) == off == "the machine is inactive\n"
    for words in (("jog", "0", "0", "0.01"), ("move", "0", "0", "-0.9")):
        begun = time.monotonic()
        refused = said(capsys, name, *words, *over_ros, code=1)
        assert "the controller is waiting: the machine is inactive: its drives do not follow commands" in refused
        assert time.monotonic() - begun < 30.0  # not as long as for a machine whose readings are still to come
    assert said(capsys, name, "enable") == "the machine is active\n"
