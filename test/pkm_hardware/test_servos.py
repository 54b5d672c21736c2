# SPDX-License-Identifier: Apache-2.0
"""Hobby servos: the real driver against a simulated board on a pseudo terminal, well and in every kind of trouble."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from pkm_hardware.driven_machine import DrivenMachine
from pkm_hardware.drivers.serial_line import with_checksum, without_checksum
from pkm_hardware.machine import Lifecycle
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine
from pkm_kinematics import Kinematics
from pkm_runtime.errors import ConfigurationError

from .conftest import run_until
from .failing_devices import SimulatedServoBoard

SIGNS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])


@pytest.fixture
def machine(hexapod: Kinematics, hexapod_file: Path) -> DrivenMachine:
    made = make_machine("servos", hexapod, read_machine_file(hexapod_file))
    made.configure()
    assert not made.fault, made.fault
    return made


def test_lines_carry_a_checksum() -> None:
    line = with_checksum("P 1 1500")
    assert without_checksum(line.rstrip(b"\n")) == "P 1 1500"
    for bad in (b"P 1 1501" + line[-4:-1], b"P 1 1500", b"", b"\xff\xfe*00", b"*", b"P*zz"):
        assert without_checksum(bad) is None
    assert without_checksum(with_checksum("E \x1b[31mhot").rstrip(b"\n")) == r"E \x1b[31mhot"  # nothing for a terminal


def test_servos_stay_off_until_the_machine_is_active(machine: DrivenMachine, board: SimulatedServoBoard) -> None:
    run_until(machine, lambda: False, 0.2)
    assert machine.lifecycle is Lifecycle.INACTIVE
    assert not any(board.pulses)
    machine.activate()
    run_until(machine, lambda: any(board.pulses) and board.brake_open, 1.0)  # two lines to the board
    assert board.pulses == [1500] * 6 + [0, 0]  # home of this robot: horns level
    assert board.brake_open


def test_lines_that_are_lost_are_sent_again(
    hexapod: Kinematics, hexapod_file: Path, board: SimulatedServoBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its line the board goes on with the watchdog of another program, and with its brake closed."""
    board.watchdog, board.holds = 30.0, True
    heard, lost = board._obey, {"W": 2, "B": 3}

    def obey(word: str, rest: list[str]) -> bytes:
        if rest[:1] != ["0"] and lost.get(word, 0):
            lost[word] -= 1
            return with_checksum("E checksum")
        return heard(word, rest)

    monkeypatch.setattr(board, "_obey", obey)
    machine = make_machine("servos", hexapod, read_machine_file(hexapod_file))
    machine.configure()
    assert not machine.fault
    assert (board.watchdog, board.holds) == (0.5, False)
    machine.activate()
    run_until(machine, lambda: board.brake_open, 1.0)
    assert board.brake_open
    lost["W"] = 10**6
    machine.deactivate()
    machine.configure()
    assert "does not confirm its watchdog" in machine.fault


def test_pulses_have_signs_units_and_limits(machine: DrivenMachine, board: SimulatedServoBoard) -> None:
    machine.activate()
    machine.write(np.full(6, 0.2))
    for _ in range(40):
        machine.write(np.full(6, 0.2))
        machine.step(0.02)
        time.sleep(0.005)
    run_until(machine, lambda: board.pulses[0] == round(1500 + 637 * 0.2), 1.0)
    np.testing.assert_array_equal(board.pulses[:6], np.round(1500 + 637 * 0.2 * SIGNS))
    steps = np.abs(np.diff([row[0] for _, row in board.history if row[0]]))
    assert steps.max() <= 637 * 5.0 * 0.02 + 1  # the velocity limit of the file, per period
    assert steps[0] <= 637 * 100.0 * 0.02**2 + 1  # the acceleration limit, from rest
    np.testing.assert_allclose(machine.read().positions, 0.2, atol=1e-9)


def test_deactivation_and_emergency_stop_let_go(machine: DrivenMachine, board: SimulatedServoBoard) -> None:
    machine.activate()
    run_until(machine, lambda: any(board.pulses), 1.0)
    machine.deactivate()
    run_until(machine, lambda: not any(board.pulses), 1.0)
    assert not any(board.pulses)
    assert not board.brake_open
    machine.activate()
    run_until(machine, lambda: any(board.pulses), 1.0)
    machine.emergency_stop()
    run_until(machine, lambda: not any(board.pulses), 1.0)
    assert not any(board.pulses)
    assert machine.lifecycle is Lifecycle.FAULT
    assert "emergency stop" in machine.fault
    assert not machine.readable
    machine.write(np.zeros(6))
    machine.step(0.02)
    assert not any(board.pulses)
    machine.reset()
    assert machine.lifecycle is Lifecycle.INACTIVE
    assert not machine.fault


@pytest.mark.parametrize("way", ["disabled", "emergency stop", "cleaned up"])
def test_enabling_holds_servos_where_they_were_told_to_be_last(
    way: str, machine: DrivenMachine, board: SimulatedServoBoard
) -> None:
    machine.activate()
    for _ in range(30):
        machine.write(np.full(6, 0.3))
        machine.step(0.02)
        time.sleep(0.002)
    told = np.round(1500 + 637 * 0.3 * SIGNS)
    run_until(machine, lambda: list(board.pulses[:6]) == list(told), 1.0)
    if way == "emergency stop":
        machine.emergency_stop()
        np.testing.assert_allclose(machine.read().positions, 0.3, atol=1e-9)
        machine.reset()
    else:
        machine.deactivate()
    if way == "cleaned up":
        machine.cleanup()
        machine.configure()
    assert not any(board.pulses)
    np.testing.assert_allclose(machine.read().positions, 0.3, atol=1e-9)
    before = len(board.history)
    machine.activate()
    run_until(machine, lambda: any(board.pulses), 1.0)
    assert {tuple(row[:6]) for _, row in list(board.history)[before:] if any(row)} == {tuple(told)}


def _wait_for_commands(machine: DrivenMachine) -> None:
    machine.activate()
    machine.write(np.zeros(6))
    for _ in range(30):  # 0.6 s
        machine.step(0.02)
        time.sleep(0.01)
    assert machine.lifecycle is Lifecycle.FAULT


def test_without_commands_the_servos_are_let_go_until_they_are_enabled_anew(
    machine: DrivenMachine, board: SimulatedServoBoard
) -> None:
    _wait_for_commands(machine)
    assert machine.fault == "no command for 0.5 s: drives are off until they are enabled again"
    assert not any(board.pulses)
    for _ in range(5):  # whoever comes late
        machine.write(np.zeros(6))
        machine.step(0.02)
        time.sleep(0.01)
    assert not any(board.pulses)
    machine.reset()
    run_until(machine, lambda: any(board.pulses), 0.3)
    assert not any(board.pulses)  # inactive at most
    assert machine.lifecycle is Lifecycle.INACTIVE
    machine.activate()
    run_until(machine, lambda: any(board.pulses), 1.0)
    assert board.pulses[:6] == [1500] * 6


@pytest.mark.parametrize("way", ["disabled", "switched off"])
def test_without_commands_servos_that_are_to_hold_do_until_they_are(
    way: str, hexapod: Kinematics, hexapod_file: Path, board: SimulatedServoBoard
) -> None:
    text = hexapod_file.read_text("utf-8")
    hexapod_file.write_text(text.replace("on_silence: release", "on_silence: hold"), "utf-8")
    machine = make_machine("servos", hexapod, read_machine_file(hexapod_file))
    machine.configure()
    _wait_for_commands(machine)
    assert machine.fault == "no command for 0.5 s: the servos hold their last pulses until they are enabled again"
    time.sleep(0.6)  # the board's own watchdog bites
    assert board.bites
    assert board.pulses[:6] == [1500] * 6
    if way == "disabled":
        machine.deactivate()
        assert machine.fault == "no command for 0.5 s: drives are off until they are enabled again"
    else:
        assert machine.shut_down() == ""
    assert not any(board.pulses)


def test_the_boards_own_watchdog_is_a_fault_that_says_so(machine: DrivenMachine, board: SimulatedServoBoard) -> None:
    machine.activate()
    run_until(machine, lambda: any(board.pulses), 1.0)
    time.sleep(0.8)  # as if the computer had stalled
    assert not any(board.pulses)
    run_until(machine, lambda: bool(machine.fault), 1.0)
    assert "watchdog" in machine.fault


def _silent(board: SimulatedServoBoard) -> None:
    board.silent = True


def _late(board: SimulatedServoBoard) -> None:
    board.delay = 1.0


def _rubbish(board: SimulatedServoBoard) -> None:
    board.garbage = b"\x00\xff*\n%&"  # joins the answer that follows, which is lost with it


def _unplugged(board: SimulatedServoBoard) -> None:
    board.unplug()


def _complains(board: SimulatedServoBoard) -> None:
    board.say("E voltage 4.1 V")


TROUBLES = {
    "silent": (_silent, "has not answered for 0.3 s"),
    "late": (_late, "has not answered for 0.3 s"),
    "garbage": (_rubbish, "made no sense"),
    "unplugged": (_unplugged, "unplugged"),
    "error": (_complains, "voltage 4.1 V"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_is_a_fault_with_a_reason(machine: DrivenMachine, board: SimulatedServoBoard, trouble: str) -> None:
    cause, words = TROUBLES[trouble]
    machine.activate()
    run_until(machine, lambda: len(board.history) > 5, 2.0)
    assert not machine.fault, machine.fault
    before = machine.read().positions
    cause(board)
    took = run_until(machine, lambda: bool(machine.fault), 3.0)
    assert machine.lifecycle is Lifecycle.FAULT
    assert words in machine.fault
    assert took < 1.5
    np.testing.assert_array_equal(machine.read().positions, before)  # the last good ones
    machine.step(0.02)  # a machine in a fault goes on in peace
    machine.deactivate()
    machine.cleanup()


def test_some_garbage_and_late_answers_are_borne(machine: DrivenMachine, board: SimulatedServoBoard) -> None:
    board.delay = 0.1
    board.garbage = b"hello\n"
    machine.activate()
    run_until(machine, lambda: False, 1.0)
    assert not machine.fault, machine.fault
    assert "made no sense" in machine.notice


def test_a_board_that_does_not_answer_at_the_start(
    board: SimulatedServoBoard, hexapod: Kinematics, hexapod_file: Path
) -> None:
    board.silent = True
    machine = make_machine("servos", hexapod, read_machine_file(hexapod_file))
    machine.configure()
    assert machine.lifecycle is Lifecycle.FAULT
    assert "no servo board answers" in machine.fault
    board.silent = False
    machine.reset()
    assert machine.lifecycle is Lifecycle.INACTIVE


def test_a_port_that_is_not_there(hexapod: Kinematics, hexapod_file: Path) -> None:
    text = hexapod_file.read_text(encoding="utf-8")
    port = next(line.split()[1] for line in text.splitlines() if line.startswith("port:"))
    hexapod_file.write_text(text.replace(port, "/dev/no_such_port"), encoding="utf-8")
    machine = make_machine("servos", hexapod, read_machine_file(hexapod_file))
    machine.configure()
    assert "/dev/no_such_port cannot be opened" in machine.fault
    assert "plugged in" in machine.fault


BAD = {
    "no machine": ("machine: servos", "", "machine: is missing"),
    "another machine": ("machine: servos", "machine: toaster", "'toaster' is unknown"),
    "a typing error": ("pulse_zero: 1500", "pulse_zero: 15o0", "pulse_zero: '15o0' is no number"),
    "no rate": ("rate: 50 ", "rat: 50 ", "rate: is missing"),
    "an unknown key": ("baud: 115200", "boud: 115200", "did you mean 'baud'"),
    "a sign": ("sign: -1}", "sign: 2}", "give 1 or -1"),
    "a channel twice": ("channel: 1,", "channel: 0,", "another actuator's too"),
    "an unknown actuator": ("limb6_arm", "limb7_arm", "'limb6_arm' is missing"),
    "home out of range": ("pulse_min: 800", "pulse_min: 1600", "pulse_zero"),
    "pulses for each degree": ("pulse_per_unit: 637", "pulse_per_unit: 11.1", "11.1 us for each degree are 636"),
    "no YAML": ("actuators: ", "actuators: [", "line 23: while parsing a flow sequence"),
    "no mapping": ("{channel: 0, sign: 1}", "7", "is not a mapping"),
    "a key of an actuator": ("channel: 0,", "channel: 0, colour: 3,", "actuators.limb1_arm.colour: no such key"),
    "a key of the defaults": ("pulse_max: 2200", "pulse_most: 2200", "defaults.pulse_most: no such key"),
    "a range": ("offset: 0.0", "lower: 1.0\n  upper: 0.5\n  offset: 0.0", "is not below upper"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_says_element_problem_and_remedy(hexapod: Kinematics, hexapod_file: Path, case: str) -> None:
    old, new, words = BAD[case]
    text = hexapod_file.read_text(encoding="utf-8")
    assert old in text
    hexapod_file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        make_machine("servos", hexapod, read_machine_file(hexapod_file))
    assert words in str(caught.value)
    assert "machine.yaml" in str(caught.value)
    assert caught.value.remedy


OUTPUTS = "outputs: {gripper: {channel: 6, pulse_off: 1000, pulse_on: 2000}}\n"


def test_an_output_is_a_channel_of_its_own(hexapod: Kinematics, hexapod_file: Path, board: SimulatedServoBoard) -> None:
    hexapod_file.write_text(hexapod_file.read_text() + OUTPUTS)
    machine = make_machine("servos", hexapod, read_machine_file(hexapod_file))
    machine.configure()
    assert not machine.fault, machine.fault
    assert machine.output_problem("gripper") == ""
    assert machine.output_problem("lamp") == "the machine has no output 'lamp'; its file names gripper"
    machine.activate()
    run_until(machine, lambda: board.pulses[0] > 0, 1.0)
    assert board.pulses[6] == 0  # nobody has said where it should be
    for value, pulse in ((1.0, 2000), (0.25, 1250), (7.0, 2000)):
        machine.set_output("gripper", value)
        run_until(machine, lambda pulse=pulse: board.pulses[6] == pulse, 1.0)
        assert board.pulses[6] == pulse
    assert board.pulses[:6] == [1500] * 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("channel: 6", "channel: 5"), "outputs.gripper.channel: 5 is another's too"),
        (("channel: 6", "channel: 99"), "outputs.gripper.channel"),
        (("gripper", "a gripper"), "'a gripper' is not a valid output name"),
        (("pulse_on: 2000", "pulse_on: 9000"), "outputs.gripper.pulse_on"),
        (("pulse_on", "pulse_up"), "outputs.gripper"),
    ],
)
def test_outputs_that_make_no_sense(
    change: tuple[str, str], message: str, hexapod: Kinematics, hexapod_file: Path
) -> None:
    hexapod_file.write_text(hexapod_file.read_text() + OUTPUTS.replace(*change))
    with pytest.raises(ConfigurationError) as caught:
        make_machine("servos", hexapod, read_machine_file(hexapod_file))
    assert message in str(caught.value)
