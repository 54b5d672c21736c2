# SPDX-License-Identifier: Apache-2.0
"""Machines behind drivers, and the devices they talk to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pkm_description import load_mechanism
from pkm_hardware.machine import Lifecycle, Machine
from pkm_kinematics import Kinematics

from .failing_devices import SimulatedServoBoard

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.fixture(autouse=True)
def end_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices of machines that a test leaves on are gone by then: `test_ways_out.py` has a process of its own."""
    monkeypatch.setattr("pkm_hardware.driven_machine.end_with_program", lambda end: lambda: None)


@pytest.fixture(scope="session")
def hexapod() -> Kinematics:
    return Kinematics(load_mechanism(str(EXAMPLES / "hobby_hexapod.urdf.xacro")))


@pytest.fixture
def board() -> Iterator[SimulatedServoBoard]:
    with SimulatedServoBoard() as made:
        yield made


@pytest.fixture
def hexapod_file(board: SimulatedServoBoard, tmp_path: Path) -> Path:
    """The example's file, with the port of the simulated board."""
    text = (EXAMPLES / "hobby_hexapod_machine.yaml").read_text(encoding="utf-8")
    path = tmp_path / "machine.yaml"
    path.write_text(text.replace("/dev/ttyUSB0", board.port), encoding="utf-8")
    return path


def run_until(machine: Machine, condition: Callable[[], bool], seconds: float, period: float = 0.02) -> float:
    """Let periods pass in real time until a condition holds or time is over; return how long it took [s]."""
    began = time.monotonic()
    while not condition() and time.monotonic() - began < seconds:
        if machine.lifecycle is Lifecycle.ACTIVE and machine.readable:
            machine.write(machine.read().positions)
        machine.step(period)
        time.sleep(period)
    return time.monotonic() - began
