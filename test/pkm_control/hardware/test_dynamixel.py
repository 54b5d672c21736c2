# SPDX-License-Identifier: Apache-2.0
"""Dynamixels: the real driver and ROBOTIS' SDK against simulated drives on a pseudo terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dynamixel_sdk", reason="dynamixel-sdk is not installed")
pytest.importorskip("serial", reason="pyserial, which dynamixel-sdk needs, is not installed")

from pkm_control.hardware.devices.dynamixel_bus import SimulatedDynamixels
from pkm_control.hardware.driven_machine import DrivenMachine
from pkm_control.hardware.machine_file import read_machine_file
from pkm_control.hardware.machine_state import Lifecycle
from pkm_control.hardware.make_machine import make_machine
from pkm_kinematics import Kinematics

from .conftest import run_until

IDS = range(1, 7)
SIGNS = np.array([1, -1, 1, -1, 1, -1])


@pytest.fixture
def bus() -> Iterator[SimulatedDynamixels]:
    with SimulatedDynamixels(IDS) as made:
        yield made


@pytest.fixture
def machine(hexapod: Kinematics, bus: SimulatedDynamixels, tmp_path: Path) -> DrivenMachine:
    rows = [f"  limb{k}_arm: {{id: {k}, sign: {sign}}}" for k, sign in zip(IDS, SIGNS, strict=True)]
    path = tmp_path / "machine.yaml"
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
    "silent": (_silent, "no answer of drive"),
    "late": (_late, "no answer of drive"),
    "garbage": (_rubbish, "no answer of drive"),
    "unplugged": (_unplugged, "unplugged"),
    "error": (_overloaded, "drive 4"),
    "one lost": (_one_less, "no answer of drive 6"),
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
    assert "no answer of drive 6" in machine.fault
