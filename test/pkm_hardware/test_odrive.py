# SPDX-License-Identifier: Apache-2.0
"""ODrives and homing: the real driver against simulated boards, on the biglide's two slides."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.operator import Operator
from pkm_control.loop.running_loop import Controls, LoopThread
from pkm_control.operator_interface import POSITION
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_hardware import devices
from pkm_hardware.driven_machine import DrivenMachine
from pkm_hardware.drivers.odrive import error_names, with_checksum, without_checksum
from pkm_hardware.drivers.serial_line import CLOSED_LOOP, IDLE
from pkm_hardware.machine import Lifecycle
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine
from pkm_kinematics import Kinematics
from pkm_runtime.fixed_rate import FixedRateLoop

from .benches import wait_until
from .conftest import EXAMPLES, run_until
from .failing_devices import SimulatedODrive

TURNS = 500.0 / (2.0 * math.pi)  # per metre
FILE = """
machine: odrive
rate: 100
silence: 0.3
defaults: {{port: {port}, gear: 500}}
actuators:
  {names[0]}: {{axis: 0, {first}}}
  {names[1]}: {{axis: 1, sign: -1, {second}}}
"""


@pytest.fixture(scope="module")
def biglide() -> Kinematics:
    return Kinematics(load_mechanism(str(EXAMPLES / "biglide.urdf.xacro")))


@pytest.fixture
def board() -> Iterator[SimulatedODrive]:
    with SimulatedODrive() as made:
        yield made


def machine_of(
    biglide: Kinematics, board: SimulatedODrive, folder: Path, first: str = "", second: str = ""
) -> DrivenMachine:
    path = folder / "machine.yaml"
    text = FILE.format(port=board.port, names=biglide.actuated_names, first=first, second=second)
    path.write_text(text.replace(", }", "}"), encoding="utf-8")
    machine = make_machine("odrive", biglide, read_machine_file(path))
    machine.configure()
    assert not machine.fault, machine.fault
    return machine


def test_the_checksum_is_the_protocols() -> None:
    assert with_checksum("r vbus_voltage") == b"r vbus_voltage *93\n"  # the example of its documentation
    assert without_checksum(b"1.5 0.0*" + str(_xor(b"1.5 0.0")).encode()) == "1.5 0.0"
    assert without_checksum(b"1.5 0.0*7") is None
    assert without_checksum(b"1.5 0.0") is None
    assert without_checksum(b"\x1b[31m*" + str(_xor(b"\x1b[31m")).encode()) == r"\x1b[31m"  # nothing for a terminal


def _xor(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
    return value


def test_axes_follow_in_their_units(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    machine = machine_of(biglide, board, tmp_path)
    start = machine.read().positions
    machine.activate()
    assert [axis.state for axis in board.axes] == [8, 8]
    for _ in range(100):
        machine.write(start + 0.01)
        machine.step(0.01)
        time.sleep(0.005)
    assert not machine.fault, machine.fault
    np.testing.assert_allclose(machine.read().positions, start + 0.01, atol=1e-4)
    np.testing.assert_allclose([axis.place for axis in board.axes], [0.01 * TURNS, -0.01 * TURNS], atol=1e-3)
    machine.deactivate()
    run_until(machine, lambda: False, 0.1)
    assert [axis.state for axis in board.axes] == [1, 1]


HOMING = (
    "homing: {{method: {method}, direction: {direction}, speed: 0.05, at: {at}, "
    "travel: 0.2, back_off: 0.01, lag: 0.01}}"
)


@pytest.mark.parametrize("starts_on_it", [False, True])
def test_homing_to_a_switch_and_to_a_stop(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path, starts_on_it: bool
) -> None:
    first, second = board.axes
    first.place = first.power_on = -2.0 if starts_on_it else 3.0  # turns, of which the encoder knows nothing
    first.switch_below = -1.0
    second.place = second.power_on = 2.0
    second.stops = (-100.0, 4.0)  # the joint runs the other way: its stop is at the lower end
    words = "switch: axis0.min_endstop.endstop_state, " + HOMING.format(method="switch", direction=-1, at=0.05)
    machine = machine_of(biglide, board, tmp_path, words, HOMING.format(method="stop", direction=-1, at=0.02))
    assert not machine.readable
    assert "unknown" in machine.notice
    machine.activate()
    run_until(machine, lambda: machine.readable or bool(machine.fault), 20.0, 0.01)
    assert not machine.fault, machine.fault
    run_until(machine, lambda: False, 0.3, 0.01)
    places = np.array([0.05 + (first.place + 1.0) / TURNS, 0.02 - (second.place - 4.0) / TURNS])
    np.testing.assert_allclose(machine.read().positions, places, atol=4e-4)  # 1/5 of 0.05 m/s over two periods
    assert places[0] > 0.05 + 0.005  # backed off
    assert places[1] > 0.02 + 0.005


def test_a_reference_that_does_not_show_is_a_fault(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    words = "switch: axis0.min_endstop.endstop_state, " + HOMING.format(method="switch", direction=-1, at=0.05)
    machine = machine_of(biglide, board, tmp_path, words.replace("0.2", "0.03"))
    machine.activate()
    run_until(machine, lambda: bool(machine.fault), 10.0, 0.01)
    assert "no switch within 0.03" in machine.fault
    assert biglide.actuated_names[0] in machine.fault
    run_until(machine, lambda: False, 0.1)
    assert [axis.state for axis in board.axes] == [1, 1]


def test_an_index_that_the_device_does_not_tell(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    machine = machine_of(biglide, board, tmp_path, HOMING.format(method="index", direction=-1, at=0.05))
    machine.activate()
    run_until(machine, lambda: bool(machine.fault), 5.0, 0.01)
    assert "tells no index" in machine.fault


INDEX = "index: axis{0}.encoder.index_found, "


def test_homing_by_the_index_of_the_encoder(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    """The ODrive searches it, one axis after the other, and calls its place zero."""
    first, second = board.axes
    first.place = first.power_on = 3.0
    first.index = 3.7
    second.place = second.power_on = -2.0
    second.index = -1.5  # the joint runs the other way
    words = [INDEX.format(k) + HOMING.format(method="index", direction=1, at=at) for k, at in enumerate((0.05, 0.02))]
    machine = machine_of(biglide, board, tmp_path, *words)
    machine.activate()
    assert [axis.state for axis in board.axes] == [1, 1]  # no closed loop before
    run_until(machine, lambda: first.state == 6, 1.0, 0.01)
    assert second.state == 1
    run_until(machine, lambda: machine.readable or bool(machine.fault), 20.0, 0.01)
    assert not machine.fault, machine.fault

    def places() -> np.ndarray:
        return np.array([0.05 + (first.place - 3.7) / TURNS, 0.02 - (second.place + 1.5) / TURNS])

    # each command is the last reading: on a busy computer it takes a while until the axes rest at what was read
    run_until(machine, lambda: bool(np.abs(machine.read().positions - places()).max() < 1e-6), 5.0, 0.01)
    assert [axis.state for axis in board.axes] == [8, 8]
    np.testing.assert_allclose(machine.read().positions, places(), atol=1e-6)
    machine.deactivate()
    machine.activate()  # it is still known
    run_until(machine, lambda: False, 0.1, 0.01)
    assert [axis.state for axis in board.axes] == [8, 8]
    assert machine.readable


def test_an_index_that_does_not_come_is_a_fault(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    board.axes[0].index = -5.0  # behind
    words = INDEX.format(0) + HOMING.format(method="index", direction=1, at=0.05).replace("0.2", "0.03")
    machine = machine_of(biglide, board, tmp_path, words)
    machine.activate()
    run_until(machine, lambda: bool(machine.fault), 10.0, 0.01)
    assert "no index within 0.03" in machine.fault
    run_until(machine, lambda: False, 0.1)
    assert [axis.state for axis in board.axes] == [1, 1]


def _above_the_stop(board: SimulatedODrive) -> float:
    """Position of the first joint [m], whose stop at -1 turn is 0.05 m."""
    return 0.05 + (board.axes[0].place + 1.0) / TURNS


def test_a_stop_shows_by_the_current(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    board.axes[0].stops = (-1.0, 100.0)
    words = "load: axis0.motor.current_control.Iq_measured, " + HOMING.format(method="stop", direction=-1, at=0.05)
    machine = machine_of(biglide, board, tmp_path, words.replace("lag: 0.01", "lag: 10, load: 3"))
    machine.activate()
    run_until(machine, lambda: machine.readable or bool(machine.fault), 20.0, 0.01)
    assert not machine.fault, machine.fault
    run_until(machine, lambda: abs(machine.read().positions[0] - _above_the_stop(board)) < 1e-6, 5.0, 0.01)
    np.testing.assert_allclose(machine.read().positions[0], _above_the_stop(board), atol=1e-6)


def _silent(board: SimulatedODrive) -> None:
    board.silent = True


def _late(board: SimulatedODrive) -> None:
    board.delay = 0.5


def _rubbish(board: SimulatedODrive) -> None:
    board.garbage = b"\xfe\x00"


def _unplugged(board: SimulatedODrive) -> None:
    board.unplug()


def _broken(board: SimulatedODrive) -> None:
    board.axes[1].errors = 512


def _reads(board: SimulatedODrive, place: str) -> None:
    def obey(words: list[str], before: Callable[[list[str]], str] = board._obey) -> str:
        return place if words[:2] == ["f", "1"] else before(words)

    board._obey = obey  # type: ignore[method-assign]


def _lost(board: SimulatedODrive) -> None:
    _reads(board, "nan 0.000000")


def _lost_rate(board: SimulatedODrive) -> None:
    _reads(board, "0.000000 nan")


TROUBLES = {
    "silent": (_silent, "has not answered"),
    "late": (_late, "has not answered"),
    "garbage": (_rubbish, "made no sense"),
    "unplugged": (_unplugged, "unplugged"),
    "error": (_broken, "axis1.active_errors is 512 (DC_BUS_UNDER_VOLTAGE)"),
    "encoder": (_lost, "right_slider reads position nan, velocity 0: look at its encoder"),
    "rate": (_lost_rate, "right_slider reads position 0, velocity nan: look at its encoder"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_is_a_fault_with_a_reason(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path, trouble: str
) -> None:
    cause, words = TROUBLES[trouble]
    machine = machine_of(biglide, board, tmp_path)
    machine.activate()
    run_until(machine, lambda: False, 0.2, 0.01)
    assert not machine.fault, machine.fault
    cause(board)
    assert run_until(machine, lambda: bool(machine.fault), 3.0, 0.01) < 2.0
    assert machine.lifecycle is Lifecycle.FAULT
    assert words in machine.fault
    if trouble in ("encoder", "rate"):  # it says that it is idle
        assert machine.fault == words
        machine.reset_off()
        again = "axis1 reads nan turns: look at its encoder" if trouble == "encoder" else words
        assert machine.fault.endswith(again)
    machine.step(0.01)
    assert np.isfinite(machine.read().positions).all()
    assert np.isfinite(machine.read().velocities).all()


def test_a_simulated_motor_tells_its_speed() -> None:
    board = devices.SimulatedODrive()  # not switched on
    axis = board.axes[1]
    axis.request(CLOSED_LOOP)
    for k in range(100):
        if k % 5 == 0:  # a command every 10 ms, for 2 turns a second
            axis.target = 0.004 * k
        axis.step(0.002)
    assert axis.speed == pytest.approx(2.0, rel=0.3)
    assert float(board._obey(["f", "1"]).split()[1]) == pytest.approx(axis.speed, abs=1e-6)
    for _ in range(100):
        axis.step(0.002)
    assert abs(axis.speed) < 0.01


def test_single_garbled_answers_are_asked_for_anew(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    machine = machine_of(biglide, board, tmp_path)
    machine.activate()
    for _ in range(10):
        board.garbage = b"\xfe"
        run_until(machine, lambda: False, 0.02, 0.01)
        board.garbage = b""
        run_until(machine, lambda: False, 0.1, 0.01)
    assert not machine.fault, machine.fault
    assert "made no sense" in machine.notice


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("controller.config.control_mode", 2.0, 3.0),
        ("controller.config.input_mode", 5.0, 1.0),
        ("controller.config.input_mode", 0.0, 1.0),
    ],
)
def test_modes_that_do_not_follow_positions_are_mended_and_said(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path, name: str, value: float, wanted: float
) -> None:
    board.axes[1].values[name] = value
    machine = machine_of(biglide, board, tmp_path)
    assert board.axes[1].values[name] == wanted
    assert f"axis1.{name} was {value:g}, now {wanted:g}" in machine.notice
    machine.activate()
    board.axes[1].values[name] = value  # a power-on, or another tool
    machine.deactivate()
    machine.activate()
    assert board.axes[1].values[name] == wanted


def test_an_axis_goes_no_faster_than_its_actuator_may(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path
) -> None:
    machine = machine_of(biglide, board, tmp_path)
    fastest = machine.limits.velocity * TURNS
    limits = [axis.values["controller.config.vel_limit"] for axis in board.axes]
    np.testing.assert_allclose(limits, 1.2 * fastest, rtol=1e-4)
    machine.deactivate()
    machine.cleanup()
    machine.configure()  # what it was given is not too wide
    assert "vel_limit" not in machine.notice


def test_an_axis_takes_no_more_current_than_the_file_says(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path
) -> None:
    name = "config.motor.current_soft_max"
    machine = machine_of(biglide, board, tmp_path, "current: 12.5")
    assert [axis.values[name] for axis in board.axes] == [12.5, 50.0]
    assert f"axis0.{name} was 50, now 12.5 A" in machine.notice


def test_a_limit_of_the_axis_that_is_tighter_is_not_widened(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path
) -> None:
    machine = machine_of(biglide, board, tmp_path)
    board.axes[0].values["controller.config.vel_limit"] = 2.0
    machine.configure()
    assert machine.lifecycle is Lifecycle.FAULT
    assert "axis0.controller.config.vel_limit is 2 turns/s" in machine.fault
    assert "machine's file" in machine.fault
    assert board.axes[0].values["controller.config.vel_limit"] == 2.0


def test_the_watchdog_is_armed_as_long_as_an_axis_is_on(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path
) -> None:
    machine = machine_of(biglide, board, tmp_path)
    unwatched = []
    obey = board._obey

    def watched(words: list[str]) -> str:
        answer = obey(words)
        unwatched.extend(axis for axis in board.axes if axis.state == 8 and not axis.values["config.enable_watchdog"])
        return answer

    board._obey = watched  # type: ignore[method-assign]
    machine.activate()
    assert [axis.state for axis in board.axes] == [8, 8]
    run_until(machine, lambda: False, 0.1, 0.01)
    machine.deactivate()
    assert [axis.state for axis in board.axes] == [1, 1]
    assert not unwatched
    time.sleep(0.7)
    assert [axis.errors for axis in board.axes] == [0, 0]  # it does not look while nobody feeds it


def test_an_axis_that_lets_go_by_itself_is_a_fault(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    machine = machine_of(biglide, board, tmp_path)
    machine.activate()
    run_until(machine, lambda: False, 0.1, 0.01)
    board.axes[1].state = 1
    run_until(machine, lambda: bool(machine.fault), 1.0, 0.01)
    assert "axis1 has disabled its torque by itself: its state is 1" in machine.fault
    assert [axis.state for axis in board.axes] == [1, 1]


def test_late_answers_of_another_question_are_not_taken_for_idle(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path
) -> None:
    """A switch that is closed answers 1, as an axis that is idle does."""
    words = "switch: axis0.min_endstop.endstop_state, " + HOMING.format(method="switch", direction=-1, at=0.05)
    machine = machine_of(biglide, board, tmp_path, words)
    board.axes[0].switch_below = 100.0  # closed
    machine.activate()
    run_until(machine, lambda: False, 0.1, 0.01)
    board.axes[0].values["config.watchdog_timeout"] = 60.0
    request = board.axes[0].request
    board.axes[0].request = lambda state: None if state == 1 else request(state)  # type: ignore[method-assign]
    machine.deactivate()
    assert board.axes[0].state == 8
    assert machine.lifecycle is Lifecycle.FAULT
    assert "axis0" in machine.fault
    assert "THE DRIVES COULD NOT BE TOLD" in machine.fault


def test_an_axis_that_lets_go_says_why_itself(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    """Its state may be asked for before its error: that is asked for then."""
    machine = machine_of(biglide, board, tmp_path)
    machine.activate()
    run_until(machine, lambda: False, 0.1, 0.01)
    board.axes[1].errors, board.axes[1].state = 256, 1
    machine._driver.boards[0].turn = 3  # the next question is for the state of this axis
    run_until(machine, lambda: bool(machine.fault), 1.0, 0.01)
    assert "axis1.active_errors is 256" in machine.fault


def test_the_bits_of_errors_have_names() -> None:
    assert error_names("16777216") == " (WATCHDOG_TIMER_EXPIRED: the computer was silent)"
    assert error_names(str(1 << 26 | 1)) == " (INITIALIZING, SPINOUT_DETECTED)"
    assert [error_names(value) for value in ("0", "invalid property", None, "128")] == [""] * 4


def test_answers_that_are_always_a_little_late_are_readings(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path
) -> None:
    """Later than the patience within a period, they come while the next question is asked."""
    machine = machine_of(biglide, board, tmp_path)
    board.delay = 0.006
    machine.activate()
    seen = set()
    for _ in range(60):
        machine.step(0.01)
        seen.add(machine.read().time)
    assert not machine.fault, machine.fault
    assert len(seen) > 10
    board.axes[1].errors = 1 << 24
    run_until(machine, lambda: bool(machine.fault), 2.0, 0.01)
    assert "WATCHDOG_TIMER_EXPIRED" in machine.fault


@pytest.mark.by_day(0.03)
@pytest.mark.parametrize("delay", [0.01, 0.02, 0.03])
def test_answers_that_are_periods_late_are_readings_of_every_axis(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path, delay: float
) -> None:
    """Where each answer comes while another question is asked, that one is asked at once, and not the same again."""
    machine = machine_of(biglide, board, tmp_path)
    machine.activate()
    board.delay = delay
    begun, oldest = time.monotonic(), 0.0
    while time.monotonic() < begun + 2.5 and not machine.fault:
        machine.write(machine.read().positions)
        machine.step(0.01)
        oldest = max(oldest, machine.time - machine.read().time)
        time.sleep(max(0.0, begun + machine.time - time.monotonic()))
    assert not machine.fault, machine.fault
    assert oldest < 0.4


@pytest.mark.parametrize("how", ["cut", "moved", "homed"])
def test_an_axis_without_power_forgets_its_turns(
    biglide: Kinematics, board: SimulatedODrive, tmp_path: Path, how: str
) -> None:
    """One that is homed looks for its place anew; one that kept its power was moved by hand."""
    homing = "homing: {method: stop, direction: 1, speed: 0.1, at: 0.05, travel: 0.4}"
    machine = machine_of(biglide, board, tmp_path, second=homing if how == "homed" else "")
    machine.activate()
    assert not machine.fault, machine.fault
    machine.emergency_stop()
    axis = board.axes[1]
    axis.power_on -= 7.0
    if how != "moved":
        axis.values["config.watchdog_timeout"] = 0.0
    for _ in range(2):  # asked once more, it knows no better
        machine.reset()
        assert machine.lifecycle is (Lifecycle.FAULT if how == "cut" else Lifecycle.INACTIVE), machine.fault
        assert ("axis1 reads +7.00 turns from where it was" in machine.fault) is (how == "cut")


def test_a_stop_ends_homing(biglide: Kinematics, board: SimulatedODrive, tmp_path: Path) -> None:
    """The axis is moved by the machine itself: `nothing moves` was the answer, and it went on."""
    homing = "homing: {method: stop, direction: 1, speed: 0.02, at: 0.05, travel: 0.4}"
    machine, dynamics = machine_of(biglide, board, tmp_path, second=homing), Dynamics(biglide)
    loop = ControlLoop.of(machine, make_controller(POSITION, dynamics, machine.limits, 0.01), 100.0)
    thread = LoopThread(loop, FixedRateLoop(100.0).wait)
    operator = Operator(Controls(thread))
    thread.start()
    try:
        assert operator.enable().success
        before = board.axes[1].place
        assert wait_until(lambda: board.axes[1].place != before)
        answer = operator.stop()
        assert answer.success
        assert answer.message == "homing is interrupted: the drives are off"
        assert [axis.state for axis in board.axes] == [IDLE, IDLE]
        assert machine.lifecycle is Lifecycle.INACTIVE
        stopped = board.axes[1].place
        time.sleep(0.1)
        assert board.axes[1].place == stopped
        assert operator.enable().success  # it looks anew
        assert wait_until(lambda: board.axes[1].place != stopped)
    finally:
        thread.end(3.0)
