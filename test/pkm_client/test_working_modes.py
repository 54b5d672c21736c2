# SPDX-License-Identifier: Apache-2.0
"""The client goes to another working mode; from then on its motions and solutions are of that one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pkm_client import MotionEndedError, RefusedError, Robot, Setup
from pkm_client.verbs import VERBS
from pkm_control.operator_interface import Mode
from pkm_hardware.machine import MachineState

from .conftest import FREQUENCY, RATE, running_nodes


@pytest.fixture(scope="module")
def robot() -> Iterator[Robot]:
    with Robot.simulated("five_bar", False, Setup(rate=100.0, natural_frequency=15.0)) as robot:
        yield robot


def require_it_works_in(robot: Robot, label: str) -> None:
    """It is in a mode, and moves there."""
    assert robot.working_mode == label
    home = robot.kinematics.home
    there = np.array(home)
    there[:2] += (0.03, 0.02)
    robot.move_to(there)
    robot.wait(1.5)
    state = robot.state
    np.testing.assert_allclose(state.reference, there, atol=1e-9)
    wanted = robot.solve_ik(there).by_name()
    assert state.positions == pytest.approx(wanted, abs=1e-3)
    np.testing.assert_allclose(robot.solve_fk(state.positions).pose, state.pose, atol=1e-6)
    number = [robot.kinematics.mode_label(m) for m in range(robot.kinematics.n_modes)].index(label)
    here = robot.kinematics.inverse(there, mode=number).by_name()
    assert wanted == pytest.approx(here, abs=1e-9)
    robot.move_to(home)


def test_it_is_halted_on_the_way_and_goes_back(robot: Robot) -> None:
    robot.change_working_mode("-+", block=False)
    robot.wait(1.0)
    robot.stop()
    assert robot.state.mode is Mode.PAUSED
    with pytest.raises(RefusedError, match="the controller is paused"):
        robot.move_to(robot.kinematics.home)
    robot.change_working_mode("++")
    assert robot.working_mode == "++"


def test_a_motion_that_is_refused_meanwhile_leaves_the_change_alone(robot: Robot) -> None:
    robot.change_working_mode("-+", block=False)
    robot.wait(1.0)
    with pytest.raises(RefusedError, match="the robot is changing its working mode"):
        robot.move_to(robot.kinematics.home)
    assert robot.state.moving
    while robot.state.moving:
        robot.wait(0.1)
    assert robot.working_mode == "-+"
    robot.change_working_mode("++")


@pytest.mark.parametrize(
    ("label", "said"), [("--", "type 2"), ("+", "there is no working mode"), ("up", "there is no")]
)
def test_what_is_no_way(robot: Robot, label: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        robot.change_working_mode(label)
    assert robot.working_mode == "++"


def test_a_mode_that_a_delta_cannot_take() -> None:
    with Robot.simulated("delta", False, Setup(rate=RATE, natural_frequency=FREQUENCY)) as robot:
        with pytest.raises(RefusedError):
            robot.change_working_mode("-++")
        task = robot.move_to([0.1, 0.0, -0.85], 0.05, block=False)
        while not robot.state.moving:
            robot.wait(0.02)
        with pytest.raises(RefusedError, match="it must hold the platform"):
            robot.change_working_mode("-++")
        task.cancel()
        with pytest.raises(MotionEndedError):
            task.result()


def test_it_changes_and_works_there(robot: Robot) -> None:
    assert "mm" in robot.change_working_mode("+-")
    require_it_works_in(robot, "+-")
    assert robot.change_working_mode("+-") == "the robot is in working mode +-"


@pytest.mark.slow
def test_it_comes_back(robot: Robot) -> None:
    for label in ("+-", "++", "-+", "++"):
        robot.change_working_mode(label)
        require_it_works_in(robot, label)


@pytest.mark.parametrize(
    ("words", "label"),
    [("-+", "-+"), ("-- -+", "-+"), ("-- --", "--"), ("", None), ("--", 2), ("+- -+", 2), ("+- foo", 2)],
)
def test_labels_that_look_like_options(words: str, label: str | int | None) -> None:
    verb = VERBS["mode"]
    if isinstance(label, int):
        with pytest.raises(SystemExit, match=str(label)):
            verb.read(verb.parser(), words.split())
    else:
        assert verb.read(verb.parser(), words.split()).label == label


@pytest.mark.slow
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with running_nodes("modes"):
        where = ["--namespace", "modes", "--timeout", "120"]
        assert VERBS["mode"].main(where) == 0
        label = capsys.readouterr().out
        assert label.startswith("working mode +")
        assert VERBS["mode"].main([*where, "-++"]) == 1
        assert capsys.readouterr().err.startswith("pkm mode: ")
        assert VERBS["mode"].main(["+++", *where]) == 0
        assert capsys.readouterr().out == label


def test_who_waits_for_a_change_waits_while_readings_are_missing() -> None:
    """For a moment the controller is stopped, then the change goes on; it was said to be halted."""
    with Robot.simulated("five_bar", False, Setup(rate=100.0, natural_frequency=15.0)) as robot:
        loop = robot._backend.loop  # type: ignore[attr-defined]
        read = loop.machine.read
        stopped: list[bool] = []
        known: list[MachineState] = []

        def frozen() -> MachineState:
            state = read()
            change = loop.follower.change
            if change is not None and change.progress > 0.3 and len(known) < 15:
                known.append(state)
            stopped.append(loop.follower.mode is Mode.STOPPED)
            return known[0] if 0 < len(known) < 15 else state

        loop.machine.read = frozen
        robot.change_working_mode("-+")
        assert robot.working_mode == "-+"
    assert any(stopped)
