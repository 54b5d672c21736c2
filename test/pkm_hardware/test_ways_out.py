# SPDX-License-Identifier: Apache-2.0
"""Every way out of every driver ends with drives off, by the simulated device's own state, not by what we believe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from pkm_bringup.command_line.play import main
from pkm_hardware.machine import EMERGENCY_STOP, Lifecycle
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine

from .benches import BENCHES, EXAMPLES, Bench, wait_until
from .processes import begin, children

UNTOLD = "THE DRIVES COULD NOT BE TOLD"


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with BENCHES[request.param](tmp_path) as made:
        made.go()
        yield made


def _break(bench: Bench) -> None:
    """An error that nobody has foreseen, in the middle of an exchange."""

    def fail(positions: object) -> None:
        raise RuntimeError("a bug")

    bench.machine._driver.exchange = fail  # type: ignore[method-assign, assignment]
    bench.machine.step(bench.period)


def _time_out(bench: Bench) -> None:
    for _ in range(80):
        bench.machine.step(bench.period)


WAYS: dict[str, Callable[[Bench], object]] = {
    "deactivate": lambda bench: bench.machine.deactivate(),
    "emergency_stop": lambda bench: bench.machine.emergency_stop(),
    "shut_down": lambda bench: bench.machine.shut_down(),
    "exception": _break,
    "time-out": _time_out,
}


def _answers_lost(bench: Bench) -> None:
    for device in bench.devices:
        device.mute = True


def _garbled(bench: Bench) -> None:
    for device in bench.devices:
        device.noise = 0.2


@pytest.mark.parametrize("way", WAYS)
def test_drives_are_off_and_known_to_be(bench: Bench, way: str) -> None:
    WAYS[way](bench)
    assert bench.on() == []  # at once: what returns has been told and checked
    assert UNTOLD not in bench.machine.fault


@pytest.mark.by_day("servos")
def test_a_driver_that_wants_to_end_the_program_is_told_of(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a vendor's library does where something is wrong: who ends it goes on with what else there is to end."""
    ways = ("disable", "close")
    for name in ways:
        monkeypatch.setattr(bench.machine._driver, name, lambda: sys.exit("no licence"))
    assert bench.machine.shut_down() == f"{UNTOLD} (no licence): cut their power"
    assert bench.machine.lifecycle is Lifecycle.FAULT
    monkeypatch.undo()
    assert bench.machine.emergency_stop() is None
    assert not bench.on()


@pytest.mark.parametrize("way", WAYS)
def test_drives_are_off_where_answers_are_lost(bench: Bench, way: str) -> None:
    _answers_lost(bench)
    WAYS[way](bench)
    assert wait_until(lambda: not bench.on(), 0.2), bench.on()
    assert UNTOLD in bench.machine.fault  # nobody knows


@pytest.mark.parametrize("way", WAYS)
def test_drives_are_off_where_every_fifth_byte_is_garbled(bench: Bench, way: str) -> None:
    _garbled(bench)
    WAYS[way](bench)
    assert wait_until(lambda: not bench.on(), 0.2), bench.on()


@pytest.mark.parametrize("way", WAYS)
def test_one_that_is_silent_keeps_nobody_from_telling_the_others(bench: Bench, way: str) -> None:
    silent = bench.silence_one()
    WAYS[way](bench)
    assert wait_until(lambda: set(bench.on()) <= set(silent), 0.2), bench.on()
    assert UNTOLD in bench.machine.fault
    for one in silent:
        assert one in bench.machine.fault
    if bench.lets_go:  # by its own watchdog
        assert wait_until(lambda: not bench.on(), 2.0)


@pytest.mark.parametrize("way", WAYS)
def test_unplugged_drives_are_told_of(bench: Bench, way: str) -> None:
    before = bench.on()
    for device in bench.devices:
        device.unplug()
    WAYS[way](bench)
    assert UNTOLD in bench.machine.fault
    assert bench.machine.lifecycle is Lifecycle.FAULT
    for one in before:
        assert one in bench.machine.fault
    for device in bench.devices:
        assert device.port in bench.machine.fault
    if bench.lets_go:
        assert wait_until(lambda: not bench.on(), 2.0)


def test_a_period_that_came_late_is_named_as_the_cause(bench: Bench) -> None:
    bench.machine.write(bench.machine.read().positions)
    bench.machine.step(5.0)  # more than enabling took, which is no silence
    assert bench.machine.fault == "this computer was late by 5 s: drives are off until they are enabled again"
    assert bench.on() == []


def test_a_computer_that_is_late_within_a_write_has_no_full_line(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the port takes a part of the bytes, and after it: neither is the line's doing."""
    here, write, done = threading.current_thread(), os.write, []

    def late(file: int, data: bytes) -> int:
        if threading.current_thread() is not here or not os.isatty(file) or len(done) > 1:
            return write(file, data)
        done.append(len(data))
        time.sleep(0.15)
        return write(file, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", late)
    bench.pass_periods(5)
    assert len(done) == 2
    assert not bench.machine.fault, bench.machine.fault
    assert len(bench.on()) == bench.drives


@pytest.mark.parametrize("fault", ["silent", "frozen"])
def test_a_line_that_comes_back_to_life_is_used(bench: Bench, fault: str) -> None:
    """A fault is not the end: drives that could not be told are told again, as long as the machine is there."""
    for device in bench.devices:
        setattr(device, fault, True)
    time.sleep(0.02)  # what it is just listening to is heard
    began = time.monotonic()
    bench.machine.emergency_stop()
    assert time.monotonic() - began < 3.0  # a line that is full is waited for, not without end
    assert UNTOLD in bench.machine.fault
    for device in bench.devices:
        setattr(device, fault, False)
    until = time.monotonic() + 5.0
    while UNTOLD in bench.machine.fault and time.monotonic() < until:
        bench.machine.step(bench.period)
        time.sleep(bench.period)
    assert bench.machine.fault == f"{EMERGENCY_STOP}; the drives are off by now"
    assert not bench.on()
    assert bench.machine.lifecycle is Lifecycle.FAULT


@pytest.mark.parametrize("end", ["cleanup", "shut_down"])
@pytest.mark.parametrize("way", ["emergency_stop", "deactivate"])
def test_drives_that_did_not_hear_of_the_end_can_still_be_told(bench: Bench, end: str, way: str) -> None:
    """Their line is closed by then."""
    machine = bench.machine
    bench.silence_one()
    machine.deactivate()
    assert machine.lifecycle is Lifecycle.FAULT
    getattr(machine, end)()
    getattr(machine, way)()
    assert machine.drives_may_be_on.startswith(UNTOLD)
    bench.hear_again()
    getattr(machine, way)()
    assert not machine.drives_may_be_on
    assert not bench.on()
    assert machine.lifecycle is not Lifecycle.ACTIVE


def test_a_second_program_does_not_get_the_line(bench: Bench, tmp_path: Path) -> None:
    second = make_machine(bench.kind, bench.kinematics, read_machine_file(tmp_path / "machine.yaml"))
    second.configure()
    assert "does another program use it?" in second.fault
    assert second.shut_down() == ""
    bench.pass_periods(5)
    assert not bench.machine.fault, bench.machine.fault
    assert len(bench.on()) == bench.drives
    assert bench.machine.shut_down() == ""
    second.configure()
    assert not second.fault, second.fault


def test_a_computer_that_is_gone(bench: Bench) -> None:
    """Nobody tells anything any more: killed, or frozen. The devices' own watchdogs are what is left."""
    time.sleep(0.1)
    assert len(bench.on()) == bench.drives
    if bench.lets_go:
        assert wait_until(lambda: not bench.on(), 1.5)
    else:  # stands still under power, and takes no goals: docs/hardware.md says so
        assert wait_until(lambda: bench.bus.value(1, 98, 1) == -1, 1.5)


SCRIPT = """
import signal, sys, threading, time
from pkm_control.loop.control_loop import ControlLoop, hold, switch_on
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine
from pkm_kinematics import Kinematics
from pkm_runtime.fixed_rate import FixedRateLoop

dynamics, file = Dynamics(Kinematics(load_mechanism(sys.argv[1]))), read_machine_file(sys.argv[2])
machine = make_machine(file.kind, dynamics.kinematics, file)
loop = ControlLoop.of(machine, make_controller("position", dynamics, machine.limits, 1.0 / file.rate), file.rate)
if sys.argv[3] == "exception":
    switch_on(loop)
    raise RuntimeError("a bug")

def run():
    assert loop.enable() == ""
    pace = FixedRateLoop(file.rate)
    pace.restart()
    while True:
        loop.period(pace.wait())

signal.signal(getattr(signal, sys.argv[3]), signal.SIG_DFL)  # `nohup` ignores one
assert loop.configure() == ""
threading.Thread(target=run, daemon=True).start()
time.sleep(60.0)
"""


@pytest.mark.by_day("dynamixel-exception", "odrive-SIGTERM", "servos-SIGHUP")
@pytest.mark.parametrize("way", [f"{kind}-{how}" for kind in BENCHES for how in ("exception", "SIGTERM", "SIGHUP")])
def test_a_script_that_ends_leaves_no_drive_on(way: str, tmp_path: Path) -> None:
    """The torque of Dynamixels would stay for ever, that of others until their watchdog."""
    kind, _, how = way.partition("-")
    with BENCHES[kind](tmp_path, silence="2.0", watchdog="2.5" if kind == "dynamixel" else "30.0") as bench:
        words = [str(EXAMPLES / f"{PLAYED[kind]}.urdf.xacro"), str(tmp_path / "machine.yaml"), how]
        script = subprocess.Popen([sys.executable, "-c", SCRIPT, *words], stderr=subprocess.PIPE, text=True)
        assert wait_until(lambda: len(bench.on()) == bench.drives or script.poll() is not None, 60.0)
        if how != "exception":
            assert len(bench.on()) == bench.drives
            script.send_signal(getattr(signal, how))
        _, error = script.communicate(timeout=60.0)
        assert not bench.on()
        assert script.returncode == (1 if how == "exception" else -getattr(signal, how)), error
        assert error.rstrip().endswith("RuntimeError: a bug" if how == "exception" else ""), error


MOTION = "# frame: home\nx [mm], y [mm], z [mm], dwell [s]\n0,0,0,0.2\n0,0,2,0.2\n0,0,0,0.2\n"
PLAYED = {"dynamixel": "hobby_hexapod", "odrive": "biglide", "servos": "hobby_hexapod"}


@pytest.mark.parametrize(
    ("kind", "number"),
    [("dynamixel", signal.SIGINT)]
    + [
        pytest.param(kind, number, marks=pytest.mark.slow)
        for kind, number in (
            *((other, signal.SIGINT) for other in BENCHES if other != "dynamixel"),
            *((other, signal.SIGTERM) for other in BENCHES),
            *(("dynamixel", other) for other in (signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMIN)),
        )
    ],
)
def test_pkm_play_ends_with_drives_off(
    kind: str, number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with BENCHES[kind](tmp_path, silence="2.0", watchdog="2.0") as bench:  # others use this computer, too
        seen: list[int] = []

        def interrupt() -> None:
            wait_until(lambda: len(bench.on()) == bench.drives, 60.0)
            time.sleep(0.5)
            seen.append(len(bench.on()))
            os.kill(os.getpid(), number)

        before = signal.signal(number, signal.SIG_IGN)  # if the command has ended by itself
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            status = main(_played(kind, tmp_path))
        finally:
            thread.join()
            signal.signal(number, before)
        assert status == 130, capsys.readouterr().err
        assert seen == [bench.drives]
        assert not bench.on()
    assert UNTOLD not in capsys.readouterr().err


def _played(kind: str, folder: Path) -> list[str]:
    """The words of `pkm play` for a thousand cycles."""
    motion = folder / "motion.csv"
    motion.write_text(MOTION)
    words = [str(EXAMPLES / f"{PLAYED[kind]}.urdf.xacro"), "--hardware-file", str(folder / "machine.yaml")]
    words += ["--motion", str(motion), "--cycles", "1000", "--realtime-priority", "0"]
    return [*words, "--report", str(folder / "report")]


def _begin_play(kind: str, bench: Bench, folder: Path) -> tuple[ForkServerProcess, Path]:
    """`pkm play` with its drives on, and the file of what it says."""
    output = folder / "output.txt"
    play = begin("pkm_bringup.command_line.play", _played(kind, folder), output)
    assert wait_until(lambda: len(bench.on()) == bench.drives, 60.0), output.read_text()
    return play, output


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("kind", BENCHES)
def test_pkm_play_that_cannot_end_itself(kind: str, number: signal.Signals, tmp_path: Path) -> None:
    """Its terminal is closed, it is killed, or it is frozen: another process is there for the last two."""
    watchdog = "2.5" if kind == "dynamixel" else "30.0"  # of the device, which is not to do what we should do
    with BENCHES[kind](tmp_path, silence="2.0", watchdog=watchdog) as bench:
        play, output = _begin_play(kind, bench, tmp_path)
        time.sleep(0.5)
        assert play.pid is not None
        os.kill(play.pid, number)
        assert wait_until(lambda: not bench.on(), 15.0), bench.on()  # with what is imported and built meanwhile
        if number == signal.SIGHUP:
            play.join(60.0)
            assert play.exitcode == 130
        else:
            assert wait_until(lambda: "the drives were turned off" in output.read_text(), 10.0), output.read_text()
            play.join(5.0)
            assert play.exitcode == -signal.SIGKILL


STUCK = """
import sys, time
from pkm_bringup.command_line.play import main
from pkm_control.loop.control_loop import ControlLoop

period, number = ControlLoop.period, [0]

def stuck(loop, periods=1):
    number[0] += loop.machine.real and loop.machine.lifecycle.value == "active"
    if number[0] > 100:
        print("stuck", flush=True)
        while True:
            time.sleep(0.1)
    return period(loop, periods)

ControlLoop.period = stuck
raise SystemExit(main())
"""


@pytest.mark.by_day("dynamixel")
@pytest.mark.parametrize("kind", BENCHES)
def test_pkm_play_is_ended_where_a_call_does_not_return(kind: str, tmp_path: Path) -> None:
    """As one of a driver of one's own may do: other threads live, and Ctrl-C is noted, but no period follows."""
    with BENCHES[kind](tmp_path, silence="2.0", watchdog="2.5" if kind == "dynamixel" else "30.0") as bench:
        words = [sys.executable, "-c", STUCK, *_played(kind, tmp_path)]
        command = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert command.stdout is not None
        assert "stuck\n" in iter(command.stdout.readline, "")
        assert len(bench.on()) == bench.drives
        command.send_signal(signal.SIGINT)
        text, _ = command.communicate(timeout=60.0)
        assert not bench.on()
    assert command.returncode == -signal.SIGKILL, text
    assert text.rstrip().endswith("has stood still for 3 s and was ended: the drives were turned off"), text


@pytest.mark.by_day(signal.SIGKILL)
@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGKILL, "ended (SIGKILL)"), (signal.SIGSTOP, "stood still for 3 s")]
)
def test_pkm_play_does_not_go_on_unwatched(number: signal.Signals, how: str, tmp_path: Path) -> None:
    """The process that would turn the drives off is killed or stopped: nothing moves without it."""
    with BENCHES["servos"](tmp_path, silence="2.0", watchdog="30.0") as bench:
        play, output = _begin_play("servos", bench, tmp_path)
        time.sleep(4.0)  # it is slow on the way to the start
        assert play.pid is not None
        (guardian,) = children(play.pid)
        os.kill(guardian, number)
        assert wait_until(lambda: not bench.on(), 10.0), output.read_text()
        play.join(60.0)
    text = output.read_text()
    assert play.exitcode == 1, text
    assert text.rstrip().splitlines()[-1].endswith(f"the process that would turn the drives off has {how}")
    assert "Traceback" not in text


@pytest.mark.slow
def test_the_last_line_of_pkm_play_says_that_a_drive_is_on(tmp_path: Path) -> None:
    """A drive that says nothing any more, in the middle of the motion: why it ended, and in the end what is to do."""
    with BENCHES["dynamixel"](tmp_path) as bench:
        play, output = _begin_play("dynamixel", bench, tmp_path)
        time.sleep(4.0)  # it is slow on the way to the start
        bench.silence_one()
        play.join(60.0)
        text = output.read_text()
        assert play.exitcode == 1, text
        assert bench.on() == ["drive 3"], text
    lines = text.rstrip().splitlines()
    faults = [line for line in lines if line.startswith("fault")]
    assert len(faults) == 1, text
    assert "no answer from drive 3" in faults[0], text
    assert UNTOLD in lines[-1], text
    assert "drive 3" in lines[-1], text
