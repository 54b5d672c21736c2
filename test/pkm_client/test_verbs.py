# SPDX-License-Identifier: Apache-2.0
"""The commands that ask a running robot, and what they print."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pkm_bringup.cli import main

from .conftest import running_nodes


@pytest.fixture(scope="module")
def name() -> Iterator[str]:
    """Namespace of a Delta."""
    with running_nodes("verbs"):
        assert main(["move", "0", "0", "-0.85", "--namespace", "verbs", "--timeout", "120"]) == 0
        yield "verbs"


def said(capsys: pytest.CaptureFixture[str], name: str, *words: str, code: int = 0) -> str:
    """What a command prints, which ends as expected; without that it waits for the robot, on a slow computer."""
    capsys.readouterr()
    assert main([words[0], "--namespace", name, *words[1:]]) == code
    out, err = capsys.readouterr()
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if "waiting for the running robot" not in line) if code else out


def test_a_session(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert said(capsys, name, "move", "0.02", "0", "-0.9", "--speed", "0.2").startswith("done; at most")
    state = json.loads(said(capsys, name, "state", "--json"))
    assert state["mode"] == "HOLDING"
    assert state["reference"][:3] == pytest.approx([0.02, 0.0, -0.9], abs=1e-9)
    assert said(capsys, name, "speed", "0.5") == "motions run at 50% of their plan\n"
    assert "motions run at 50% of their plan" in said(capsys, name, "state")
    assert said(capsys, name, "speed", "1") == "motions run at 100% of their plan\n"
    assert said(capsys, name, "jog", "0", "0.02", "0", "--seconds", "0.5").startswith("moved by ")
    moved = said(capsys, name, "jog", "0", "0", "-1e5", "--seconds", "1e9")
    assert " m/s at most, not 1e+05; it goes no further: " in moved
    assert json.loads(said(capsys, name, "state", "--json"))["reference"][1] > 0.003
    assert said(capsys, name, "stop") == "nothing moved; the platform is held\n"
    assert said(capsys, name, "recover") == "nothing is wrong: the platform stands well\n"
    assert said(capsys, name, "follow", "circle").startswith("done; at most")


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
        (("move", "0", "0"), "pkm move: give 3 numbers (platform_x, platform_y, platform_z) or 7 numbers ("),
        (("move", "0", "0", "-9"), "pkm move: on the way to the goal: the platform cannot be at"),
        (("follow", "nonsense"), "pkm follow: nonsense: cannot be read"),
    ],
)
def test_what_is_not_done_is_said(
    capsys: pytest.CaptureFixture[str], name: str, words: tuple[str, ...], why: str
) -> None:
    assert said(capsys, name, *words, code=2 if words[0] == "follow" else 1).startswith(why)  # 2: asked wrongly


def test_no_robot(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
    words = said(capsys, "nobody", "stop", "--timeout", "0.3", code=1)
    assert words.startswith("pkm stop: no robot answers in namespace '/nobody' within 0.3 s")


def test_an_emergency_stop_waits_for_no_import_that_it_does_not_need() -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
    program = "import sys, pkm_bringup.cli; pkm_bringup.cli.command('estop'); import pkm_client.ros.client_node\n"
    program += "print(*{'numpy', 'geometry_msgs', 'pkm_description.load', 'pkm_client.robot'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
