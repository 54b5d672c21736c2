# SPDX-License-Identifier: Apache-2.0
"""The declaration of nodes and knobs, and the processes that the runner makes of it."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pkm_control import bringup
from pkm_control.runner import ProcessGroup, command_line, read_knobs

ALL_NODES = (*bringup.NODES, bringup.DESCRIPTION)


def test_nodes_name_knobs_and_modules_that_exist() -> None:
    knobs = {knob.name for knob in bringup.KNOBS}
    for node in ALL_NODES:
        assert set(node.parameters.values()) <= knobs
        assert importlib.util.find_spec(node.module) is not None


def test_executables_are_entry_points() -> None:
    setup = (Path(__file__).parents[2] / "setup.py").read_text()
    for node in ALL_NODES:
        assert f'"{node.executable} = {node.module}:main"' in setup


def test_knobs_explain_themselves() -> None:
    for knob in bringup.KNOBS:
        assert len(knob.description) > 10
        assert not knob.choices or knob.default in knob.choices


def test_values_choose_the_nodes() -> None:
    assert {n.name for n in bringup.nodes(bringup.defaults())} == {n.name for n in bringup.NODES}
    bare = bringup.defaults(hardware="none", controller="none", page="false")
    assert {n.name for n in bringup.nodes(bare)} == {"kinematics", "dynamics"}
    with pytest.raises(KeyError, match="colour"):
        bringup.defaults(colour="red")


def test_parameters_have_the_type_of_the_default() -> None:
    hardware = next(n for n in bringup.NODES if n.name == "hardware")
    parameters = bringup.parameters(hardware, bringup.defaults(rate="500"))
    assert parameters["rate"] == 500.0
    assert isinstance(parameters["rate"], float)
    assert parameters["use_sim_time"] is False
    with pytest.raises(ValueError, match="rate is 'fast'"):
        bringup.parameters(hardware, bringup.defaults(rate="fast"))


def test_command_line_carries_namespace_and_parameters() -> None:
    controller = next(n for n in bringup.NODES if n.name == "controller")
    words = command_line(controller, bringup.defaults(namespace="cell_2", controller="pd_gravity"))
    assert "__ns:=/cell_2" in words
    assert 'law:="pd_gravity"' in words
    assert "joint_commands:=hardware/joint_commands" in words


def test_runner_reads_knobs() -> None:
    values = read_knobs(["my.urdf.xacro", "--rate", "500", "--page", "false", "--stay"])
    assert (values["robot"], values["rate"], values["page"], values["stay"]) == (
        "my.urdf.xacro",
        "500",
        "false",
        "true",
    )
    assert values["motion"] == "auto"


STUBBORN = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def test_stopping_ends_even_a_stubborn_process() -> None:
    group = ProcessGroup(patience=(0.5, 2.0, 2.0))
    group.start("stubborn", [sys.executable, "-c", STUBBORN])
    process = group.processes["stubborn"]
    time.sleep(0.5)
    group.stop()
    assert process.poll() == -signal.SIGTERM


def test_the_leader_ends_the_run() -> None:
    group = ProcessGroup()
    group.start("sleeper", [sys.executable, "-c", "import time; time.sleep(60)"])
    group.start("leader", [sys.executable, "-c", "raise SystemExit(3)"], leads=True)
    assert group.wait() == 3
    group.stop()
    assert all(p.poll() is not None for p in group.processes.values())


def test_an_unexpected_end_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    group = ProcessGroup()
    group.start("broken", [sys.executable, "-c", "raise SystemExit(7)"])
    assert group.wait() == 7
    assert "broken ended with code 7" in capfd.readouterr().err


def test_nodes_die_with_a_killed_runner() -> None:
    script = (
        "import sys, time; from pkm_control.runner import ProcessGroup; g = ProcessGroup();"
        "g.start('node', [sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(g.processes['node'].pid, flush=True); time.sleep(60)"
    )
    runner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert runner.stdout is not None
    child = int(runner.stdout.readline())
    time.sleep(0.3)
    runner.kill()
    runner.wait()
    deadline = time.monotonic() + 5.0
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split(")")[1]:
        assert time.monotonic() < deadline, "the node outlived its runner"
        time.sleep(0.05)
