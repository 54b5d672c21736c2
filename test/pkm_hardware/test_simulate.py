# SPDX-License-Identifier: Apache-2.0
"""What users try without a machine: simulated devices behind the drivers, and the dialogue that sets servos up."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from pkm_bringup import bringup
from pkm_bringup.command_line import servo_setup
from pkm_control.loop_settings import MachineSettings
from pkm_control.robot_loop import build_machine, last_resort
from pkm_description import load_mechanism
from pkm_hardware.machine import Lifecycle
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine

from .benches import EXAMPLES, robot, wait_until
from .failing_devices import SimulatedServoBoard

HEXAPOD = str(EXAMPLES / "hobby_hexapod.urdf.xacro")
ARMS = "\n".join(f"  limb{k}_arm: {{id: {k}}}" for k in range(1, 7))
FILES = {
    "servos": ("hobby_hexapod", (EXAMPLES / "hobby_hexapod_machine.yaml").read_text(encoding="utf-8")),
    "dynamixel": ("hobby_hexapod", f"machine: dynamixel\nport: /dev/none\nrate: 100\nactuators:\n{ARMS}\n"),
    "odrive": (
        "biglide",
        "machine: odrive\nrate: 100\ndefaults: {gear: 500}\nactuators:\n"
        "  left: {port: /dev/none0, offset: 0.1}\n"
        "  right: {port: /dev/none0, axis: 1, switch: axis1.min_endstop.endstop_state, homing: "
        "{method: switch, direction: -1, speed: 0.02, at: 0.1, travel: 0.1, back_off: 0.001}}\n",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_the_driver_follows_commands_on_a_simulated_device(kind: str, tmp_path: Path) -> None:
    """The file names ports that are not there; the machine homes, and goes where it is told by the same driver."""
    name, text = FILES[kind]
    kinematics = robot(name)
    path = tmp_path / "machine.yaml"
    for old, new in zip(("left", "right"), kinematics.actuated_names, strict=False):
        text = text.replace(f"  {old}: ", f"  {new}: ")
    path.write_text(text, encoding="utf-8")
    settings = MachineSettings(kind=kind, file=str(path), simulate=True)
    if kind == "dynamixel":
        pytest.importorskip("dynamixel_sdk")
    machine = build_machine(kinematics.mechanism, settings)
    machine.configure()
    assert machine.lifecycle is Lifecycle.INACTIVE, machine.fault
    machine.activate()
    until = time.monotonic() + 20.0
    while not machine.readable and not machine.fault and time.monotonic() < until:
        machine.step(0.01)
        time.sleep(0.01)
    assert machine.readable, machine.fault
    wanted = machine.read().positions + 0.01
    while np.abs(machine.read().positions - wanted).max() > 1e-3 and not machine.fault and time.monotonic() < until:
        machine.write(wanted)
        machine.step(0.01)
        time.sleep(0.01)
    np.testing.assert_allclose(machine.read().positions, wanted, atol=1e-3, err_msg=machine.fault)
    assert machine.shut_down() == ""
    assert last_resort(kinematics.mechanism, settings) == ""  # its device has gone with its process


def test_simulate_is_for_devices() -> None:
    with pytest.raises(ValueError, match="simulate is for the devices servos, dynamixel, odrive"):
        bringup.check(bringup.defaults(simulate="true"))
    file = str(EXAMPLES / "hobby_hexapod_machine.yaml")
    values = {"hardware": "servos", "hardware_file": file, "controller": "position", "rate": "50", "simulate": "true"}
    bringup.check(bringup.defaults(robot=HEXAPOD, **values))


class Person:
    """Answers the questions about each servo: its channel, its angle at the zero pulse, whether it turned that way."""

    def __init__(self, board: SimulatedServoBoard, channels: list[str], angles: list[str], ways: list[str]) -> None:
        self.board, self.answers = board, {"channel": channels, "Where is": angles, "Did it go": ways}
        self.asked: list[str] = []
        self.held: list[int] = []  # how many servos have pulses while the person thinks

    def __call__(self, text: str) -> str:
        self.asked.append(text)
        self.held.append(sum(pulse > 0 for pulse in self.board.pulses))
        return next((answers.pop(0) for words, answers in self.answers.items() if words in text), "")


def test_servo_setup_finds_channels_signs_and_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One servo at a time has pulses, and moves by 5 degrees when told; what is written is a file of the machine."""
    output = tmp_path / "mine.yaml"
    with SimulatedServoBoard() as board:
        person = Person(
            board, ["5", "", "1.0e", "2", "", "0", "1", "4"], ["3", "", "-2", "", "", ""], ["y", "n", "", *"yyyn"]
        )
        monkeypatch.setattr("builtins.input", person)
        assert servo_setup.main([HEXAPOD, "--serial-port", board.port, "-o", str(output)]) == 0
        assert not any(board.pulses)
        moved = np.array([row for _, row in board.history])
    assert max(person.held) == 1
    assert (np.count_nonzero(moved, axis=1) == 1).all()
    used = moved.max(axis=1)
    assert used.min() == 1500
    assert used.max() == 1500 + round(637 * np.radians(5.0))
    assert np.abs(np.diff(used)).max() <= 4  # us in a period: slowly
    found = yaml.safe_load(output.read_text())["actuators"]
    assert [one["channel"] for one in found.values()] == [5, 1, 2, 3, 0, 4]
    assert [one["sign"] for one in found.values()] == [1, -1, 1, 1, 1, -1]
    assert [one["offset"] for one in found.values()] == pytest.approx(np.radians([3, 0, -2, 0, 0, 0]), abs=1e-6)


@pytest.mark.slow
def test_servo_setup_begins_with_a_file_and_refuses_to_overwrite_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILES["servos"][1])
    assert servo_setup.main([HEXAPOD, "--simulate", "-o", str(path)]) == 2
    assert "exists" in capsys.readouterr().err
    monkeypatch.setattr("builtins.input", lambda text: "y" if "Did it go" in text else "")
    assert servo_setup.main([HEXAPOD, "--simulate", "--hardware-file", str(path)]) == 0
    after = read_machine_file(path)
    assert make_machine("servos", robot("hobby_hexapod"), after, simulate=True).limits.velocity.max() == 5.0
    assert yaml.safe_load(path.read_text())["on_silence"] == "release"
    assert yaml.safe_load(path.read_text())["actuators"]["limb2_arm"]["sign"] == 1  # as answered, not as it was


def test_servo_setup_tells_which_way_is_positive() -> None:
    mechanism = load_mechanism(HEXAPOD)
    assert "-z of the base (down)" in servo_setup.sense(mechanism, mechanism.joint_named["limb1_arm"])
    slider = load_mechanism("linear_delta")
    assert "+z of the base (up)" in servo_setup.sense(slider, slider.joint_named[slider.actuated_joints[0]])


def test_servo_setup_leaves_no_pulses_where_it_is_broken_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def breaks_off(text: str) -> str:
        if "Did it go" in text:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr("builtins.input", breaks_off)
    with SimulatedServoBoard() as board:
        assert servo_setup.main([HEXAPOD, "--serial-port", board.port, "-o", str(tmp_path / "no.yaml")]) == 130
        assert not any(board.pulses)
    assert not (tmp_path / "no.yaml").exists()


@pytest.mark.parametrize("how", [KeyboardInterrupt, EOFError])
def test_servo_setup_that_is_broken_off_goes_on_where_it_was(
    how: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole file that it began with is not made a mixture: the new answers are told."""
    path, asked = tmp_path / "mine.yaml", [""]
    begins_with = ["--hardware-file", str(path)]

    def person(until: int, offset: str = "3") -> None:
        def answers(text: str) -> str:
            asked.extend(["channel"] if "channel" in text else [])
            if asked.count("channel") > until:
                raise how
            return "y" if "Did it go" in text else offset if "Where is" in text else ""

        asked.clear()
        monkeypatch.setattr("builtins.input", answers)

    monkeypatch.setattr(servo_setup, "_SPEED", 1e6)
    status = 130 if how is KeyboardInterrupt else 1
    person(0)
    assert servo_setup.main([HEXAPOD, "--simulate", "-o", str(path)]) == status
    assert not path.exists()
    person(2)
    assert servo_setup.main([HEXAPOD, "--simulate", "-o", str(path)]) == status
    assert f"has limb1_arm, limb2_arm, and --hardware-file {path} goes on" in capsys.readouterr().err
    person(6, "4")
    assert servo_setup.main([HEXAPOD, "--simulate", *begins_with]) == 0
    assert asked.count("channel") == 4
    whole = path.read_text()
    found = yaml.safe_load(whole)["actuators"]
    assert [one["channel"] for one in found.values()] == list(range(6))
    assert [one["offset"] for one in found.values()] == pytest.approx(np.radians([3, 3, 4, 4, 4, 4]), abs=1e-6)
    person(1, "5")
    capsys.readouterr()
    assert servo_setup.main([HEXAPOD, "--simulate", *begins_with]) == status
    assert path.read_text() == whole
    assert "is as it was, and the answers are: {'limb1_arm': {" in capsys.readouterr().err


@pytest.mark.by_day(signal.SIGTERM)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_servo_setup_leaves_no_pulses_where_it_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    """By its own word, and once: a second signal skips nothing."""
    questions, answer = os.pipe()
    with SimulatedServoBoard() as board:
        command = [sys.executable, "-m", "pkm_bringup.command_line.servo_setup", HEXAPOD]
        command += ["--serial-port", board.port, "-o", str(tmp_path / "no.yaml")]
        with subprocess.Popen(command, stdin=questions) as process:
            os.write(answer, b"\n\n")
            assert wait_until(lambda: any(board.pulses), 60.0)
            for _ in range(2):
                process.send_signal(number)
            assert process.wait(20.0) in (130, -number)  # the second may come after its end
        assert not any(board.pulses)
        assert board.bites == 0  # of its own watchdog
    os.close(answer), os.close(questions)


def test_servo_setup_asks_for_a_channel_until_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter(("1.5", "-1", "99", "1e308", "2"))
    assert servo_setup._channel(lambda text: next(answers), "channel", 0) == 2
    assert capsys.readouterr().out.count("is no channel: they are 0 to 31") == 4


def test_servo_setup_asks_until_there_is_a_finite_number(capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter(("nan", "inf", "x", "3"))
    assert servo_setup._number(lambda text: next(answers), "n", 1.0) == 3.0
    assert capsys.readouterr().out.count("is no number") == 3


def test_servo_setup_asks_again_for_a_place_from_which_no_pulse_leads_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["0", "", "400", "-90", "5", "", "y", *["", "", "0", "", "y"] * 5])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    monkeypatch.setattr(servo_setup, "_SPEED", 1e6)
    output = tmp_path / "machine.yaml"
    assert servo_setup.main([HEXAPOD, "--simulate", "-o", str(output)]) == 0
    offset = yaml.safe_load(output.read_text())["actuators"]["limb1_arm"]["offset"]
    assert offset == pytest.approx(np.radians(5.0), abs=1e-6)
    assert capsys.readouterr().out.count("From there no pulse of its range leads home, to 0 degrees") == 2


def test_servo_setup_loses_no_answers_where_its_file_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert servo_setup.main([HEXAPOD, "--simulate", "-o", str(tmp_path / "none" / "machine.yaml")]) == 2
    assert "none cannot be written to; give another place with -o" in capsys.readouterr().err
    answers = iter(["", "", "3", "", "y"] * 6)
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    monkeypatch.setattr(servo_setup, "_SPEED", 1e6)
    monkeypatch.setattr(servo_setup, "write_whole", full)
    assert servo_setup.main([HEXAPOD, "--simulate", "-o", str(tmp_path / "machine.yaml")]) == 1
    said = capsys.readouterr()
    assert said.out.count("offset: 0.05236") == 6
    assert "No space left on device; its text is above" in said.err
