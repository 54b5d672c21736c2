# SPDX-License-Identifier: Apache-2.0
"""Readings have the times at which they were taken, and those that cannot be are dropped, with every driver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.driven_machine import DrivenMachine
from pkm_hardware.drivers.driver import Reading
from pkm_hardware.drivers.loopback import LoopbackDriver
from pkm_hardware.machine import Lifecycle
from pkm_hardware.machine_file import Drives, Scale

from .benches import BENCHES, Bench, robot

MEASURING = [kind for kind, bench in BENCHES.items() if bench.measures]


@pytest.fixture(params=MEASURING)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with BENCHES[request.param](tmp_path) as made:
        yield made


def test_while_answers_are_lost_the_time_of_the_reading_stands_still(bench: Bench) -> None:
    bench.go()
    machine = bench.machine
    before = machine.read().time
    assert before == pytest.approx(machine.time, abs=2.0 * bench.period)
    for device in bench.devices:
        device.mute = True
    times = []
    began = time.monotonic()
    while time.monotonic() - began < 0.2:  # less than its silence
        machine.write(machine.read().positions)
        machine.step(bench.period)
        times.append(machine.read().time)
    assert len(set(times[1:])) == 1  # an answer may have been under way
    assert not machine.fault, machine.fault
    assert machine.time - times[-1] > (len(times) - 2) * bench.period
    for device in bench.devices:
        device.mute = False
    bench.pass_periods(3)
    if (
        bench.kind == "dynamixel"
    ):  # an ODrive's answers have no number: one that is lost is waited for until it is a fault
        assert not machine.fault, machine.fault
        assert machine.time - machine.read().time < 2.0 * bench.period


@pytest.mark.parametrize("angle", [1.0, -1.0])
def test_a_reading_that_jumps_for_one_sample_is_dropped(bench: Bench, angle: float) -> None:
    bench.go()
    machine = bench.machine
    size = angle if bench.kind == "dynamixel" else 0.1 * angle  # m of the biglide's slides: 1 m is beyond their range
    where, seen, times = machine.read().positions, [], [machine.read().time]
    began = bench.places()
    bench.jump(size)
    for _ in range(6):
        machine.write(machine.read().positions)  # as who holds where it is
        machine.step(bench.period)
        time.sleep(bench.period)
        state = machine.read()
        seen.append(state.positions)
        times.append(state.time)
        np.testing.assert_allclose(bench.places(), began, atol=2e-3)
    np.testing.assert_allclose(seen, np.tile(where, (6, 1)), atol=2e-3)  # a count
    assert np.diff(times).min() == 0.0  # it was there, and time stood still for it
    assert "jumps" in machine.notice
    assert not machine.fault


def test_drives_go_on_where_they_are_and_not_where_they_are_misread(bench: Bench) -> None:
    """The first reading of all, and the first before the drives go on, are the wrong ones."""
    bench.jump(1.0 if bench.kind == "dynamixel" else 0.1)
    bench.machine.configure()
    assert bench.machine.lifecycle is Lifecycle.INACTIVE
    where = bench.machine.read().positions
    bench.jump(1.0 if bench.kind == "dynamixel" else 0.1)
    bench.machine.activate()
    bench.pass_periods(5)
    assert not bench.machine.fault, bench.machine.fault
    np.testing.assert_allclose(bench.machine.read().positions, where, atol=2e-3)
    if bench.kind == "dynamixel":
        assert {bench.bus.position(one) for one in range(1, 7)} == {2048}
    else:
        np.testing.assert_allclose([bench.boards[k].axes[k].place for k in range(2)], 0.0, atol=1e-3)


class Scripted(LoopbackDriver):
    """Answers with what a test says."""

    reading: Reading | None = None

    def exchange(self, positions: np.ndarray | None) -> Reading:
        echo = super().exchange(positions)
        return self.reading or echo


@pytest.fixture
def scripted() -> tuple[DrivenMachine, Scripted]:
    kinematics = robot("biglide")
    limits = ActuatorLimits.of(kinematics.mechanism)
    driver = Scripted()
    home = np.array(kinematics.inverse(kinematics.home).actuated)
    machine = DrivenMachine(limits, Drives(driver, Scale.one_to_one(2), home))
    machine.configure()
    machine.activate()
    return machine, driver


def test_velocities_are_those_between_readings_and_not_between_calls(
    scripted: tuple[DrivenMachine, Scripted],
) -> None:
    machine, driver = scripted
    start = machine.read().positions
    began = time.monotonic()
    machine.write(start)
    driver.reading = Reading(start, began)
    machine.step(0.01)
    first = machine.read()
    machine.step(0.01)  # the same again
    machine.step(0.01)
    same = machine.read()
    assert same.time == first.time
    np.testing.assert_array_equal(same.velocities, first.velocities)
    driver.reading = replace(driver.reading, positions=start + 0.003, time=time.monotonic())
    machine.step(0.01)
    state = machine.read()
    assert state.time - first.time == pytest.approx(0.03, abs=2e-3)  # what the test itself takes
    np.testing.assert_allclose(state.velocities, 0.003 / (state.time - first.time))


def test_a_reading_that_was_late_has_the_time_at_which_it_was_asked_for(
    scripted: tuple[DrivenMachine, Scripted],
) -> None:
    machine, driver = scripted
    machine.write(machine.read().positions)
    machine.step(0.01)
    time.sleep(0.05)
    driver.reading = Reading(machine.read().positions, time.monotonic() - 0.04)
    machine.step(0.05)
    for _ in range(4):
        machine.write(machine.read().positions)
        machine.step(0.01)
    assert machine.time - machine.read().time == pytest.approx(0.08, abs=5e-3)  # 0.04 then, and four periods since
