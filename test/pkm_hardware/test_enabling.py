# SPDX-License-Identifier: Apache-2.0
"""Enabling takes a while: that is no silence, and whoever wants the drives off meanwhile does not wait for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from pkm_control.loop.control_loop import ControlLoop
from pkm_control.operator_interface import POSITION, Mode
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_hardware.machine import EMERGENCY_STOP, NO_FAULT, Lifecycle
from pkm_kinematics import Kinematics
from pkm_runtime.fixed_rate import FixedRateLoop

from .benches import BENCHES, Bench, DynamixelBench
from .failing_devices import FailingDevice, SimulatedDynamixels

RATE = 20.0  # Hz: two answers of 16 ms fit into a period


class TwoArms(DynamixelBench):
    """A five-bar, whose arms are at home at their drives' zeros."""

    drives = 2

    def make(self) -> Sequence[FailingDevice]:
        self.bus = SimulatedDynamixels([1, 2])
        return [self.bus]

    @property
    def kinematics(self) -> Kinematics:
        return Kinematics(load_mechanism("five_bar"))

    def file(self, keys: dict[str, str]) -> str:
        home = self.kinematics.inverse(self.kinematics.home).actuated
        arms = enumerate(zip(self.kinematics.actuated_names, home, strict=True), 1)
        rows = [f"  {name}: {{id: {k}, offset: {at}}}\n" for k, (name, at) in arms]
        head = f"machine: dynamixel\nport: {self.bus.port}\nbaud: 1000000\nrate: 100\nsilence: {keys['silence']}\n"
        return f"{head}actuators:\n{''.join(rows)}"


def position_loop(bench: Bench) -> ControlLoop:
    dynamics, limits = Dynamics(bench.kinematics), bench.machine.limits
    return ControlLoop.of(bench.machine, make_controller(POSITION, dynamics, limits, 1.0 / RATE), RATE)


@pytest.fixture
def dynamixels(tmp_path: Path) -> Iterator[DynamixelBench]:
    with DynamixelBench(tmp_path, silence="2.0", watchdog="2.0") as made:  # others use this computer, too
        yield made


@pytest.mark.by_day(True)
@pytest.mark.parametrize("again", [False, True], ids=["first", "after an emergency stop"])
@pytest.mark.parametrize("delay", [pytest.param(0.008, marks=pytest.mark.slow), 0.016])
def test_drives_that_answer_late_stay_on(dynamixels: DynamixelBench, delay: float, again: bool) -> None:
    """16 ms is what Linux keeps bytes back for that come by USB."""
    loop = position_loop(dynamixels)
    dynamixels.contact()
    dynamixels.bus.delay = delay
    assert loop.configure() == ""
    fixed = FixedRateLoop(RATE)
    fixed.restart()
    for k in range(60):
        periods = fixed.wait()
        if k == 5:
            assert loop.enable() == ""
        if again and k == 15:
            assert loop.emergency_stop() == ""
            assert loop.reset() == ""
            assert loop.enable() == ""
        loop.period(periods)  # as many as have passed, enabling included
    assert not loop.fault, loop.fault
    assert loop.follower.mode is Mode.HOLDING
    assert len(dynamixels.on()) == dynamixels.drives


def test_a_reset_leaves_a_machine_alone_whose_drives_are_on(dynamixels: DynamixelBench) -> None:
    loop = position_loop(dynamixels)
    assert loop.reset() == NO_FAULT
    dynamixels.contact()
    assert loop.configure() == loop.enable() == ""
    loop.period()
    assert loop.reset() == NO_FAULT
    assert len(dynamixels.on()) == dynamixels.drives
    loop.period()
    assert loop.follower.mode is Mode.HOLDING
    loop.disable()
    assert loop.reset() == ""  # of a machine whose pose is unknown, and that was led home by hand
    assert loop.machine.lifecycle is Lifecycle.INACTIVE
    assert loop.follower.locator.heard == -math.inf


@pytest.mark.parametrize("kind", ["dynamixel", "odrive"])
def test_a_drive_far_outside_its_range_is_not_enabled(kind: str, tmp_path: Path) -> None:
    """Its offset, sign or unit is wrong: it would run to its range, or the platform would be taken for elsewhere."""
    with BENCHES[kind](tmp_path, silence="2.0") as bench:
        bench.stand(0, 1.5)
        loop = position_loop(bench)
        bench.contact()
        before = bench.places()
        problem = loop.enable()
        assert "far outside its range" in problem
        assert bench.kinematics.actuated_names[0] in problem
        for _ in range(5):
            loop.period()
        assert not bench.on()
        assert bench.places() == before
        bench.stand(0, 0.0)
        assert loop.reset() == ""
        assert loop.enable() == ""
        assert len(bench.on()) == bench.drives


def test_drives_in_another_working_mode_stay_off_until_they_are_led_back(tmp_path: Path) -> None:
    """As by wrong offsets: it is known before the torque goes on. They are followed while a hand leads them."""
    with TwoArms(tmp_path, silence="2.0") as bench:
        for k, by in enumerate((-3.0, 3.0)):
            bench.stand(k, by)
        loop = position_loop(bench)
        bench.contact()
        assert loop.configure() == ""
        for periods in (0, 5):
            for _ in range(periods):
                loop.period()
            assert "The drives stay off: left_arm at -0.68" in loop.enable()
            assert not bench.on()
        for left in np.linspace(3.0, 0.0, 200):
            for k, by in enumerate((-left, left)):
                bench.stand(k, by)
            loop.period()
        assert loop.enable() == ""
        assert len(bench.on()) == bench.drives
        loop.shut_down()


def test_drives_a_little_outside_their_ranges_are_held_there(tmp_path: Path) -> None:
    with DynamixelBench(tmp_path, silence="2.0") as bench:
        for k in range(bench.drives):
            bench.stand(k, 1.09)
        loop = position_loop(bench)
        limits = bench.machine.limits
        bench.contact()
        before = bench.places()
        assert max(before) > limits.upper[0] + 0.03
        assert loop.enable() == ""
        for _ in range(20):
            loop.period()
        assert bench.places() == pytest.approx(before, abs=0.0016)  # a count


def test_silence_after_enabling_is_silence(dynamixels: DynamixelBench) -> None:
    dynamixels.contact()
    dynamixels.machine.activate()
    for _ in range(40):  # the time that enabling took is no silence
        dynamixels.machine.step(0.2)
    assert "no command for 0.5 s" in dynamixels.machine.fault
    assert not dynamixels.on()


OFF: dict[str, Callable[[Bench], object]] = {
    "emergency_stop": lambda bench: bench.machine.emergency_stop(),
    "deactivate": lambda bench: bench.machine.deactivate(),
    "shut_down": lambda bench: bench.machine.shut_down(),
}


@pytest.mark.parametrize("way", OFF)
@pytest.mark.parametrize("kind", BENCHES)
def test_whoever_wants_drives_off_does_not_wait_until_all_are_on(kind: str, way: str, tmp_path: Path) -> None:
    with BENCHES[kind](tmp_path) as bench:
        bench.contact()
        for device in bench.devices:
            device.delay = 0.016
        machine, driver = bench.machine, bench.machine._driver
        begun, hooked = threading.Event(), driver.enable

        def enable(positions) -> None:
            begun.set()
            time.sleep(0.02)  # somebody asks for the end now
            hooked(positions)

        driver.enable = enable  # type: ignore[method-assign]
        enabling = threading.Thread(target=machine.activate)
        enabling.start()
        assert begun.wait(5.0)
        most: list[int] = []
        ending = threading.Thread(target=lambda: OFF[way](bench))
        ending.start()
        while ending.is_alive() or enabling.is_alive():
            most.append(len(bench.on()))
            time.sleep(0.004)  # a quarter of what a device takes to answer
        assert max(most) == 0, "drives went on after somebody had asked for them to be off"
        assert machine.lifecycle is not Lifecycle.ACTIVE
        if way == "emergency_stop":
            assert machine.fault == EMERGENCY_STOP
        else:
            assert not machine.fault


def test_drives_that_are_on_already_go_off_again(dynamixels: DynamixelBench) -> None:
    dynamixels.contact()
    machine = dynamixels.machine
    machine.unwanted = lambda: len(dynamixels.on()) >= 3
    machine.activate()
    assert dynamixels.on() == []
    assert machine.lifecycle is Lifecycle.INACTIVE
    assert not machine.fault
    assert "given up" in position_loop(dynamixels).enable()


def test_what_cannot_be_told_is_answered(dynamixels: DynamixelBench) -> None:
    loop = position_loop(dynamixels)
    dynamixels.contact()
    for off in (loop.disable, loop.emergency_stop):
        dynamixels.bus.gone.clear()
        assert loop.reset() == ""
        assert loop.enable() == ""
        dynamixels.bus.gone.add(3)
        warning = off()
        assert "THE DRIVES COULD NOT BE TOLD" in warning
        assert "drive 3" in warning
        assert warning in loop.disable()  # and so until they have been told
