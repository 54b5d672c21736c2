# SPDX-License-Identifier: Apache-2.0
"""The process of a loop with drives: they are off, whatever becomes of that process, and it is said."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pkm_control.loop import requests
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.jogging import Jog
from pkm_control.loop.loop_process import LoopProcess
from pkm_control.loop.running_loop import LoopEndedError
from pkm_control.loop_settings import ControllerSettings, MachineSettings
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.operator_interface import Mode
from pkm_control.robot_loop import build_robot_loop, last_resort
from pkm_dynamics.dynamics import shared_dynamics
from pkm_hardware.drivers.driver import GIVEN_UP
from pkm_hardware.drivers.servos import ServoDriver
from pkm_hardware.machine import EMERGENCY_STOP, Lifecycle, LifecycleError
from pkm_runtime.errors import PkmError

from .benches import BENCHES, Bench, wait_until

UNTOLD = "THE DRIVES COULD NOT BE TOLD"


class Rig:
    """A loop in its process, whose drives are off."""

    def __init__(self, process: LoopProcess, bench: Bench, folder: Path, rate: float) -> None:
        self.process, self.bench = process, bench
        self.said: list[str] = []
        process.say = self.said.append
        mechanism = bench.kinematics.mechanism
        dynamics = shared_dynamics(mechanism)
        machine = MachineSettings(kind=bench.kind, file=str(folder / "machine.yaml"))
        settings = ControllerSettings(law="position", rate=rate, machine_file=machine.file)

        def planning(mode: int) -> tuple[CurveCheck, Jog]:
            check = CurveCheck(dynamics, bench.machine.limits, mode)
            return check, Jog(check)

        arguments = (mechanism.urdf, machine, settings)
        process.build(build_robot_loop, arguments, planning, 0, partial(last_resort, mechanism, machine))
        assert wait_until(lambda: process.run() == "", 10.0)  # a busy computer may answer too late at first

    def enable(self) -> None:
        assert wait_until(lambda: self.process.ask(requests.enable) == "", 10.0)
        assert wait_until(lambda: len(self.bench.on()) == self.bench.drives)


@pytest.fixture
def rig(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    kind, rate = getattr(request, "param", ("dynamixel", 50.0))
    process = LoopProcess()  # before the device has its thread
    try:
        watchdog = "2.5" if kind == "dynamixel" else "30.0"  # the devices' own do not do what we should do
        with BENCHES[kind](tmp_path, silence="1.0", watchdog=watchdog) as bench:
            yield Rig(process, bench, tmp_path, rate)
            process.end()
    finally:
        process.end()


def each_driver(by_day: str) -> pytest.MarkDecorator:
    """Every driver at night; by day each of them has some ways to end."""
    left = {kind: () if kind == by_day else pytest.mark.slow for kind in BENCHES}
    rigs = [pytest.param((kind, 50.0), marks=marks, id=kind) for kind, marks in left.items()]
    return pytest.mark.parametrize("rig", rigs, indirect=True)


@each_driver("odrive")
def test_drives_of_a_loop_that_dies_are_turned_off(rig: Rig) -> None:
    rig.enable()
    os.kill(rig.process.pid, signal.SIGKILL)
    assert wait_until(lambda: not rig.bench.on(), 5.0)
    assert wait_until(lambda: rig.process.gone, 5.0)
    assert rig.process.failure == "the process of the control loop has ended (SIGKILL); the drives were turned off"
    assert rig.process.lifecycle is Lifecycle.FAULT
    for request in (requests.enable, requests.disable, requests.reset):
        with pytest.raises(LoopEndedError, match="has ended"):
            rig.process.ask(request)
    assert "has ended" in rig.process.emergency_stop()
    assert rig.process.end() == ""


def fail(loop: ControlLoop) -> None:
    def command(*_: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    loop.controller.command = command  # type: ignore[method-assign, assignment]


def mend(loop: ControlLoop) -> None:
    del loop.controller.command


@each_driver("servos")
def test_drives_of_a_law_that_fails_are_turned_off(rig: Rig) -> None:
    rig.enable()
    rig.process.ask(fail)
    assert wait_until(lambda: not rig.bench.on(), 2.0)
    assert wait_until(lambda: rig.process.lifecycle is Lifecycle.FAULT)
    assert rig.process.texts.fault == "the control loop failed: ZeroDivisionError: nothing to divide by"
    assert "ZeroDivisionError" in rig.process.ask(requests.enable)
    rig.process.ask(mend)  # else it would be a fault again, in one of the next periods
    assert rig.process.ask(requests.reset) == ""
    assert rig.process.lifecycle is Lifecycle.INACTIVE
    assert not rig.bench.on()


def test_what_the_last_resort_could_not_tell_is_the_last_word(rig: Rig) -> None:
    rig.enable()
    rig.bench.bus.gone.add(3)
    os.kill(rig.process.pid, signal.SIGKILL)
    assert wait_until(lambda: rig.process.gone, 10.0)
    assert UNTOLD in rig.process.failure
    assert "drive 3" in rig.process.failure
    assert rig.bench.on() == ["drive 3"]
    assert UNTOLD in rig.process.end()


@pytest.mark.parametrize("rig", [("dynamixel", 50.0), ("odrive", 50.0)], indirect=True)
def test_a_reading_that_is_old_names_the_drive_that_does_not_answer(rig: Rig) -> None:
    """Before its silence is long enough for a fault."""
    rig.enable()
    (name, *_) = rig.bench.silence_one()
    wanted = f"no answer from {name} on" if rig.bench.kind == "dynamixel" else "no answer from the ODrive on"
    assert wait_until(lambda: rig.process.situation.mode is Mode.STOPPED, 5.0)
    assert rig.process.situation.action.reason.startswith(wanted)
    assert "ms old" in rig.process.situation.action.reason or rig.process.lifecycle is Lifecycle.FAULT


@each_driver("dynamixel")
def test_a_loop_that_is_ended_says_so(rig: Rig) -> None:
    rig.enable()
    os.kill(rig.process.pid, signal.SIGUSR1)
    assert wait_until(lambda: not rig.bench.on(), 2.0)
    assert wait_until(lambda: rig.process.gone, 5.0)
    assert rig.process.failure == "the process of the control loop has ended; the drives were turned off"


def test_nothing_is_done_by_a_loop_that_is_frozen(rig: Rig) -> None:
    """Every request says so soon; an emergency stop turns the drives off without it."""
    rig.enable()
    os.kill(rig.process.pid, signal.SIGSTOP)
    assert wait_until(lambda: rig.process.problem, 3.0)
    assert "been silent" in rig.process.situation.action.reason
    for request in (requests.enable, requests.disable, requests.reset):
        asked = time.monotonic()
        with pytest.raises(LoopEndedError, match="been silent"):
            rig.process.ask(request)
        assert time.monotonic() - asked < 2.0
    assert len(rig.bench.on()) == rig.bench.drives
    assert "the drives were turned off" in rig.process.emergency_stop()
    assert not rig.bench.on()


@each_driver("servos")
def test_a_loop_that_stays_frozen_loses_its_drives(rig: Rig) -> None:
    """Nobody has to ask for it."""
    rig.enable()
    os.kill(rig.process.pid, signal.SIGSTOP)
    assert wait_until(lambda: not rig.bench.on(), 8.0)
    assert wait_until(lambda: rig.process.gone, 5.0)
    assert any("been silent for" in text and "it is ended" in text for text in rig.said), rig.said
    assert rig.process.failure.endswith("the drives were turned off")
    assert rig.process.situation.mode is Mode.STOPPED


@each_driver("odrive")
def test_the_end_of_a_frozen_loop_is_the_end_of_its_drives(rig: Rig) -> None:
    rig.enable()
    os.kill(rig.process.pid, signal.SIGSTOP)
    assert rig.process.end() == ""
    assert not rig.bench.on()


@pytest.mark.parametrize("way", ["emergency stop", "told emergency stop", "disable", "end", "SIGTERM"])
def test_nothing_waits_for_drives_that_are_being_enabled(rig: Rig, way: str) -> None:
    rig.bench.bus.delay = 0.016  # enabling takes a second
    refused: list[object] = []

    def enable() -> None:
        try:
            refused.append(rig.process.ask(requests.enable))
        except LoopEndedError as error:
            refused.append(str(error))

    enabling = threading.Thread(target=enable)
    enabling.start()
    time.sleep(0.2)
    assert not rig.bench.on()
    if way == "emergency stop":
        assert rig.process.emergency_stop() == ""
    elif way == "told emergency stop":
        rig.process.tell_emergency_stop()
    elif way == "disable":
        assert rig.process.ask(requests.disable) == ""
    elif way == "end":
        assert rig.process.end() == ""
    else:
        os.kill(rig.process.pid, signal.SIGTERM)
    most = 0
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        most = max(most, len(rig.bench.on()))
        time.sleep(0.002)
    enabling.join(5.0)
    assert most == 0
    assert refused
    assert refused[0] != ""


def test_an_emergency_stop_in_the_middle_turns_off_what_is_on(rig: Rig) -> None:
    rig.bench.bus.delay = 0.016
    enabling = threading.Thread(target=lambda: rig.process.ask(requests.enable))
    enabling.start()
    assert wait_until(lambda: bool(rig.bench.on()), 5.0)
    asked = time.monotonic()
    rig.process.tell_emergency_stop()
    assert wait_until(lambda: not rig.bench.on(), 0.5)
    took = time.monotonic() - asked
    enabling.join(5.0)
    assert took < 0.2, took  # s: an answer that is waited for, and the packet
    assert wait_until(lambda: rig.process.texts.fault == EMERGENCY_STOP)


def test_what_is_answered_after_a_fault_is_true(rig: Rig) -> None:
    """While the drives are told to let go, nobody hears that they are on."""
    rig.enable()
    rig.bench.bus.mute = True
    assert wait_until(lambda: not rig.bench.on(), 3.0)
    with contextlib.suppress(LoopEndedError):
        assert rig.process.ask(requests.enable) != ""
    assert rig.process.lifecycle is Lifecycle.FAULT
    assert "no answer" in rig.process.texts.fault
    assert UNTOLD in rig.process.ask(requests.disable)
    assert UNTOLD in rig.process.emergency_stop()


def hang_where_disabled(loop: ControlLoop) -> None:
    loop.machine._driver.disable = lambda: time.sleep(0.8)


@pytest.mark.parametrize("rig", [("servos", 50.0)], indirect=True)
def test_a_driver_that_hangs_where_it_is_disabled_is_told_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkm_control.loop.loop_process.TOLD_WITHIN", 0.2)
    rig.enable()
    rig.process.ask(hang_where_disabled)
    asked = time.monotonic()
    warning = rig.process.emergency_stop()
    assert time.monotonic() - asked < 0.7
    assert UNTOLD in warning
    assert "limb1_arm, limb2_arm" in warning
    assert wait_until(lambda: rig.said == [warning])
    assert rig.process.problem == warning
    assert not rig.process.situation.readable
    assert wait_until(lambda: rig.process.problem == "", 3.0)  # it has returned


def hang_where_enabled(loop: ControlLoop) -> None:
    enable = loop.machine._driver.enable
    loop.machine._driver.enable = lambda positions: (enable(positions), time.sleep(60.0))


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("rig", [("servos", 50.0)], indirect=True)
def test_an_emergency_stop_does_not_wait_for_a_driver_that_hangs(
    rig: Rig, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drives stayed on for 19 s."""
    for name, value in (("TOLD_WITHIN", 0.1), ("_TELLING", 0.0), ("_FROZEN", 0.2)):
        monkeypatch.setattr(f"pkm_control.loop.loop_process.{name}", value)
    rig.process.ask(hang_where_enabled)
    rig.process.tell(requests.enable)
    assert wait_until(lambda: len(rig.bench.on()) == rig.bench.drives)
    if told:
        rig.process.tell_emergency_stop()
    else:
        assert UNTOLD in rig.process.emergency_stop()
    assert wait_until(lambda: not rig.bench.on(), 4.0)
    assert UNTOLD in rig.said[0]
    assert wait_until(lambda: "the drives were turned off" in rig.process.failure, 4.0)


@pytest.mark.parametrize("way", ["machine", "last resort"])
def test_a_driver_that_hangs_in_this_process_is_told_as_well(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    over = threading.Event()
    monkeypatch.setattr("pkm_hardware.machine.TOLD_WITHIN", 0.05)
    monkeypatch.setattr("pkm_control.robot_loop._LAST_RESORT", 0.3)
    with BENCHES["servos"](tmp_path) as bench:
        if way == "machine":
            bench.machine.configure()
            bench.machine.activate()
            monkeypatch.setattr(bench.machine._driver, "disable", lambda: over.wait(0.3))
            bench.machine.deactivate()
        else:
            monkeypatch.setattr(ServoDriver, "disable", lambda _: over.wait(10.0))
            settings = MachineSettings(kind="servos", file=str(tmp_path / "machine.yaml"))
            assert UNTOLD in last_resort(bench.kinematics.mechanism, settings)
            over.set()
    assert capsys.readouterr().err.count(UNTOLD) == 1


def doubt(loop: ControlLoop) -> None:
    loop.follower.locator.assembly.cross()


def test_enabling_succeeds_only_where_the_controller_holds(rig: Rig) -> None:
    rig.process.ask(doubt)
    why = rig.process.ask(requests.enable)
    assert "may have lost hold" in why
    assert not rig.bench.on()
    assert rig.process.texts.fault == why
    assert wait_until(lambda: rig.process.situation.action.reason == why)
    assert rig.process.ask(requests.reset) == ""  # at home, where the assembly mode is known again
    rig.enable()
    assert rig.process.situation.mode is Mode.HOLDING


def turn_off_again(loop: ControlLoop) -> None:
    def before_it_holds(_: float) -> None:
        loop.disable()

    loop.before_period = before_it_holds


def test_enabling_fails_where_drives_are_turned_off_before_they_hold(rig: Rig) -> None:
    rig.process.ask(turn_off_again)
    assert rig.process.ask(requests.enable) == GIVEN_UP
    assert not rig.bench.on()


def fail_to_send(loop: ControlLoop) -> None:
    raise UnreadableError


class UnreadableError(PkmError):
    """Whoever unpickles it fails."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("no number",)


@pytest.mark.parametrize("closed", [False, True])
def test_a_loop_that_cannot_be_understood_loses_its_drives(rig: Rig, closed: bool) -> None:
    """Also where nobody can be told of it."""
    rig.enable()

    def say(_: str) -> None:
        raise BrokenPipeError

    if closed:
        rig.process.say = say
    with pytest.raises(LoopEndedError, match="the drives were turned off"):
        rig.process.ask(fail_to_send)
    assert not rig.bench.on()


def test_a_running_loop_that_is_run_again_says_why_not(rig: Rig) -> None:
    rig.enable()
    with pytest.raises(LifecycleError, match="configure is not possible while the machine is active") as refused:
        rig.process.run()
    assert refused.value.state == "active"
    assert rig.process.ask(requests.disable) == ""


@pytest.mark.parametrize("rig", [("dynamixel", 10.0), ("dynamixel", 100.0)], indirect=True)
def test_words_are_those_of_the_row(rig: Rig) -> None:
    """Who asks has the reason with the answer, and drives that are on are held when that is answered."""
    process = rig.process
    for _ in range(10):
        rig.enable()
        now = process.situation
        assert now.mode is Mode.HOLDING
        assert now.action.reason == ""
        assert process.texts.fault == ""
        process.ask(requests.require_ready)
        assert process.emergency_stop() == ""
        assert process.lifecycle is Lifecycle.FAULT
        assert process.texts.fault == EMERGENCY_STOP
        assert process.ask(requests.reset) == ""
        assert process.texts.fault == ""
        assert process.lifecycle is Lifecycle.INACTIVE
