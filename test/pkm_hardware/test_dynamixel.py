# SPDX-License-Identifier: Apache-2.0
"""Dynamixels: the real driver and ROBOTIS' SDK against simulated drives on a pseudo terminal."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dynamixel_sdk", reason="dynamixel-sdk is not installed")
pytest.importorskip("serial", reason="pyserial, which dynamixel-sdk needs, is not installed")

from pkm_hardware import devices
from pkm_hardware.devices import _READ
from pkm_hardware.driven_machine import DrivenMachine
from pkm_hardware.machine import Lifecycle
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine
from pkm_kinematics import Kinematics

from .conftest import run_until
from .failing_devices import SimulatedDynamixels

IDS = range(1, 7)
SIGNS = np.array([1, -1, 1, -1, 1, -1])


@pytest.fixture
def bus() -> Iterator[SimulatedDynamixels]:
    with SimulatedDynamixels(IDS) as made:
        yield made


@pytest.fixture
def machine(hexapod: Kinematics, bus: SimulatedDynamixels, tmp_path: Path) -> DrivenMachine:
    return _configured(hexapod, bus, tmp_path / "machine.yaml")


def _configured(hexapod: Kinematics, bus: SimulatedDynamixels, path: Path, zero: int = 2048) -> DrivenMachine:
    rows = [f"  limb{k}_arm: {{id: {k}, sign: {sign}, count_zero: {zero}}}" for k, sign in zip(IDS, SIGNS, strict=True)]
    head = f"machine: dynamixel\nport: {bus.port}\nbaud: 1000000\nrate: 50\nsilence: 0.3\nactuators:\n"
    path.write_text(head + "\n".join(rows), encoding="utf-8")
    made = make_machine("dynamixel", hexapod, read_machine_file(path))
    made.configure()
    assert not made.fault, made.fault
    return made


def test_positions_in_counts(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    np.testing.assert_allclose(machine.read().positions, 0.0, atol=1e-9)
    assert not any(bus.torque(one) for one in IDS)
    machine.activate()
    assert all(bus.torque(one) for one in IDS)
    for _ in range(40):
        machine.write(np.full(6, -0.3))
        machine.step(0.02)
    assert not machine.fault, machine.fault
    counts = np.round(2048 - SIGNS * 0.3 * 4096 / (2.0 * math.pi))
    run_until(machine, lambda: False, 0.1)
    np.testing.assert_array_equal([bus.position(one) for one in IDS], counts)
    np.testing.assert_allclose(machine.read().positions, -0.3, atol=2.0 * math.pi / 4096)
    machine.deactivate()
    assert not any(bus.torque(one) for one in IDS)


def _silent(bus: SimulatedDynamixels) -> None:
    bus.silent = True


def _late(bus: SimulatedDynamixels) -> None:
    bus.delay = 0.5


def _rubbish(bus: SimulatedDynamixels) -> None:
    bus.garbage = b"\xff\xff\xfd\x00\x01\x07\x00\x55\x00"  # the beginning of a packet whose rest is another's


def _unplugged(bus: SimulatedDynamixels) -> None:
    bus.unplug()


def _overloaded(bus: SimulatedDynamixels) -> None:
    bus.tables[4][70] = 1 << 5


def _one_less(bus: SimulatedDynamixels) -> None:
    del bus.tables[6]


TROUBLES = {
    "silent": (_silent, "no answer from drive"),
    "late": (_late, "no answer from drive"),
    "garbage": (_rubbish, "no answer from drive"),
    "unplugged": (_unplugged, "unplugged"),
    "error": (_overloaded, "drive 4"),
    "one lost": (_one_less, "no answer from drive 6"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_is_a_fault_with_a_reason(machine: DrivenMachine, bus: SimulatedDynamixels, trouble: str) -> None:
    cause, words = TROUBLES[trouble]
    machine.activate()
    run_until(machine, lambda: False, 0.3)
    assert not machine.fault, machine.fault
    cause(bus)
    began = time.monotonic()
    run_until(machine, lambda: bool(machine.fault), 4.0)
    assert time.monotonic() - began < 3.0
    assert machine.lifecycle is Lifecycle.FAULT
    assert words in machine.fault
    machine.step(0.02)
    assert np.isfinite(machine.read().positions).all()


def test_the_drive_that_was_silent_longest_is_named(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    machine.activate()
    run_until(machine, lambda: False, 0.1)
    _one_less(bus)
    run_until(machine, lambda: False, 0.15)  # half of its patience: the others still answer
    assert not machine.fault
    _silent(bus)
    run_until(machine, lambda: bool(machine.fault), 4.0)
    assert "no answer from drive 6" in machine.fault


MODE, DRIVE_MODE, VELOCITY_LIMIT, MAX_POSITION, STATUS_RETURN, WATCHDOG, PROFILE, GOAL = (
    11,
    10,
    44,
    48,
    68,
    98,
    112,
    116,
)


def test_a_simulated_drive_tells_its_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(devices.time, "monotonic", lambda: now)
    bus = devices.SimulatedDynamixels([1], 0)
    bus.pass_time()
    told = []
    for k in range(150):
        if k < 100 and k % 5 == 0:  # a command every 10 ms, for half a turn a second
            bus.stand(1, round(4.096 * k))
        now += 0.002
        bus.pass_time()
        told.append(bus.value(1, 128, 4) * 0.229)  # rev/min
    assert told[99] == pytest.approx(30.0, rel=0.3)
    assert abs(told[-1]) < 10.0


def test_a_late_answer_to_another_question_is_no_reading(hexapod: Kinematics, tmp_path: Path) -> None:
    """An answer about a drive's state comes after its time, while positions are waited for: it was cut to ten bytes."""
    questions = 0

    def slowly(one: int, instruction: int, rest: bytes) -> bytes:
        nonlocal questions
        questions += instruction == _READ
        if instruction == _READ and questions % 5 == 0:
            time.sleep(0.045)  # the driver waits 34 ms
        return answer(one, instruction, rest)

    with SimulatedDynamixels(IDS, 60) as bus:  # near 0, which is what that answer has
        machine, answer = _configured(hexapod, bus, tmp_path / "machine.yaml", zero=60), bus._answer
        bus._answer = slowly  # type: ignore[method-assign]
        for _ in range(40):
            machine.step(0.02)
            reading = machine.read()
            np.testing.assert_allclose(reading.positions, 0.0, atol=2.0 * math.pi / 4096)
            np.testing.assert_allclose(reading.velocities, 0.0, atol=1e-9)
        assert questions > 25
        assert not machine.fault, machine.fault
        assert "answers of the Dynamixels came late" in machine.notice


@pytest.mark.parametrize("mode", [0, 1, 16])
def test_a_mode_that_takes_no_positions_is_mended_and_said(
    machine: DrivenMachine, bus: SimulatedDynamixels, mode: int
) -> None:
    bus.put(2, MODE, 1, mode)
    machine.configure()
    assert not machine.fault, machine.fault
    assert bus.value(2, MODE, 1) == 3
    assert f"drive 2 was in mode {['current', 'velocity'][mode] if mode < 2 else 'PWM'}, now position" in machine.notice
    machine.activate()
    for _ in range(10):
        machine.write(np.full(6, -0.1))
        machine.step(0.02)
    assert bus.position(2) != 2048


@pytest.mark.parametrize("mode", [3, 4, 5])
def test_modes_that_take_positions_stay(machine: DrivenMachine, bus: SimulatedDynamixels, mode: int) -> None:
    bus.put(2, MODE, 1, mode)
    machine.configure()
    assert not machine.fault, machine.fault
    assert bus.value(2, MODE, 1) == mode
    assert machine.notice == ""


def test_profiles_by_time_would_delay_everything(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    bus.put(5, DRIVE_MODE, 1, 0b101)  # the other bit turns the sense, which is the file's business
    machine.configure()
    assert not machine.fault, machine.fault
    assert bus.value(5, DRIVE_MODE, 1) == 0b001
    assert "drive 5 had profiles by time" in machine.notice


def test_a_drive_goes_no_faster_to_any_goal_than_its_actuator_may(
    machine: DrivenMachine, bus: SimulatedDynamixels
) -> None:
    fastest = machine.limits.velocity * 60.0 / (2.0 * math.pi) / 0.229
    profiles = np.array([bus.value(one, PROFILE, 4) for one in IDS])
    assert (profiles >= fastest).all()
    assert (profiles <= 1.2 * fastest + 1.0).all()
    for one in IDS:  # a power-on between configuring and enabling
        bus.put(one, PROFILE, 4, 0)
    machine.activate()
    np.testing.assert_array_equal([bus.value(one, PROFILE, 4) for one in IDS], profiles)


@pytest.mark.parametrize("cut", [True, False])
def test_a_drive_without_power_forgets_its_turns(machine: DrivenMachine, bus: SimulatedDynamixels, cut: bool) -> None:
    machine.activate()
    machine.emergency_stop()
    bus.stand(4, bus.position(4) + 4096)
    if cut:
        bus.put(4, WATCHDOG, 1, 0)
    machine.reset()
    assert machine.lifecycle is (Lifecycle.FAULT if cut else Lifecycle.INACTIVE)
    assert ("drive 4" in machine.fault and "whole turns" in machine.fault) is cut


@pytest.mark.parametrize(
    ("address", "value", "words"),
    [(VELOCITY_LIMIT, 10, "drive 3 .* at most 2.29 rev/min"), (MAX_POSITION, 2100, "drive 3 .* from 0 to 2100 counts")],
)
def test_a_limit_of_the_drive_that_is_tighter_is_not_widened(
    machine: DrivenMachine, bus: SimulatedDynamixels, address: int, value: int, words: str
) -> None:
    bus.put(3, address, 4, value)
    machine.configure()
    assert machine.lifecycle is Lifecycle.FAULT
    assert re.search(words, machine.fault), machine.fault
    assert "machine's file" in machine.fault
    assert bus.value(3, address, 4) == value


def test_a_largest_current_takes_the_mode_that_keeps_it(
    hexapod: Kinematics, bus: SimulatedDynamixels, tmp_path: Path
) -> None:
    rows = [f"  limb{k}_arm: {{id: {k}, current: {100 * k}}}" for k in IDS]
    path = tmp_path / "machine.yaml"
    path.write_text("\n".join([f"machine: dynamixel\nport: {bus.port}\nbaud: 1000000\nrate: 50\nactuators:", *rows]))
    machine = make_machine("dynamixel", hexapod, read_machine_file(path))
    machine.configure()
    assert not machine.fault, machine.fault
    assert [bus.value(one, MODE, 1) for one in IDS] == [5] * 6
    assert [bus.value(one, 102, 2) for one in IDS] == [100 * one for one in IDS]
    bus.put(6, 38, 2, 599)
    machine.configure()
    assert "drive 6" in machine.fault
    assert "at most 599 units" in machine.fault


def test_drives_that_answer_reading_alone_are_told_to_answer(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    for one in IDS:
        bus.put(one, STATUS_RETURN, 1, 1)
    machine.configure()
    machine.activate()
    assert not machine.fault, machine.fault
    assert all(bus.torque(one) for one in IDS)


def test_the_torque_goes_on_with_the_goal_where_the_drive_stands(
    machine: DrivenMachine, bus: SimulatedDynamixels
) -> None:
    for one in IDS:
        bus.put(one, GOAL, 4, 1000)  # of another day
        bus.put(one, WATCHDOG, 1, -1)  # it has bitten, and goals are refused
    machine.activate()
    assert not machine.fault, machine.fault
    assert [bus.position(one) for one in IDS] == [2048] * 6


def test_the_watchdog_is_armed_as_long_as_the_torque_is_on(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    """Not even between the two: the torque goes off first."""
    unwatched = []
    status = bus._set

    def watched(one: int, address: int, values: bytes) -> int:
        error = status(one, address, values)
        unwatched.extend(each for each in IDS if bus.torque(each) and not bus.value(each, WATCHDOG, 1))
        return error

    bus._set = watched  # type: ignore[method-assign]
    machine.activate()
    run_until(machine, lambda: False, 0.1)
    bus.mute = True
    machine.deactivate()
    assert not unwatched
    assert not any(bus.torque(one) for one in IDS)


def test_a_watchdog_that_has_bitten_is_a_fault(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    machine.activate()
    run_until(machine, lambda: False, 0.1)
    time.sleep(0.6)  # as if the computer had stalled
    run_until(machine, lambda: bool(machine.fault), 1.0)
    assert "the computer was silent for 0.5 s" in machine.fault
    assert not any(bus.torque(one) for one in IDS)


def test_a_drive_that_lets_go_by_itself_is_a_fault(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    machine.activate()
    run_until(machine, lambda: False, 0.1)
    bus.put(4, 64, 1, 0)
    run_until(machine, lambda: bool(machine.fault), 1.0)
    assert "drive 4" in machine.fault
    assert "has disabled its torque by itself" in machine.fault
    assert not any(bus.torque(one) for one in IDS)


def test_drives_that_somebody_left_on_are_off_after_configuring(
    machine: DrivenMachine, bus: SimulatedDynamixels
) -> None:
    for one in IDS:
        bus.put(one, 64, 1, 1)
    machine.configure()
    assert not machine.fault, machine.fault
    assert not any(bus.torque(one) for one in IDS)


def test_a_late_reading_is_not_taken_for_the_next(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    """It has the drive's id and comes before the answer to the question, but says where the drive was."""
    bus.put(1, 132, 4, 3000)
    old = bus._status(1, bus._seen(1, 126, 10))
    bus.put(1, 132, 4, 2048)
    bus.silent = True
    machine.step(0.02)
    bus.silent = False
    answer = bus._answer
    bus._answer = lambda *packet: (old if packet[1] == 0x82 else b"") + answer(*packet)  # type: ignore[method-assign]
    assert [machine._driver.exchange(None).positions[0] for _ in range(5)] == [2048.0] * 5
    assert machine._driver._packets.late == 5  # type: ignore[attr-defined]


def test_an_answer_is_waited_for_without_the_processor(machine: DrivenMachine, bus: SimulatedDynamixels) -> None:
    """A loop of real-time priority that asks without a pause keeps away what brings the answer."""
    machine.activate()
    bus.gone.add(1)
    begun, used = time.monotonic(), time.thread_time()
    while not machine.fault:
        machine.step(0.02)
    assert "no answer from drive 1" in machine.fault
    assert time.thread_time() - used < 0.2 * (time.monotonic() - begun)
