# SPDX-License-Identifier: Apache-2.0
"""A loop in a process of its own: it keeps its time, answers, and leaves its drives off whichever way it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pkm_bringup.main_job import planned
from pkm_control.loop import requests
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.goal_queue import GoalQueue, GoalRequest
from pkm_control.loop.jogging import Jog
from pkm_control.loop.loop_process import LoopProcess
from pkm_control.loop.operator import Operator
from pkm_control.loop.running_loop import Controls, LoopEndedError
from pkm_control.loop_settings import ControllerSettings, MachineSettings
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import STOPPED_SINCE, TOOK_OVER, Mode, Outcome
from pkm_control.robot_loop import build_robot_loop
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import Lifecycle, MachineState
from test.pkm_hardware.failing_devices import SimulatedServoBoard

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def wait(condition: Callable[[], object], patience: float = 20.0) -> None:
    until = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.005)


def planning_of(mechanism) -> Callable[[int], tuple[CurveCheck, Jog]]:
    dynamics = shared_dynamics(mechanism)

    def planning(mode: int) -> tuple[CurveCheck, Jog]:
        check = CurveCheck(dynamics, ActuatorLimits.of(mechanism), mode)
        return check, Jog(check)

    return planning


@contextmanager
def started(mechanism) -> Iterator[LoopProcess]:
    made = LoopProcess()
    try:
        settings = ControllerSettings(rate=250.0, natural_frequency=40.0)
        made.build(build_robot_loop, (mechanism.urdf, MachineSettings(), settings), planning_of(mechanism), 0)
        yield made
    finally:
        made.end()


@pytest.fixture
def process(mechanism) -> Iterator[LoopProcess]:
    """One of a test's own, which it may spoil."""
    with started(mechanism) as made:
        yield made


@pytest.fixture(scope="module")
def kept(mechanism) -> Iterator[LoopProcess]:
    with started(mechanism) as made:
        yield made


@pytest.fixture
def shared(kept: LoopProcess) -> Iterator[LoopProcess]:
    """One for tests that move nothing; each finds its drives off."""
    yield kept
    assert kept.ask(requests.disable) == ""


def held(process: LoopProcess) -> None:
    if not process.begun:
        assert process.run() == ""
    assert process.ask(requests.enable) == ""
    wait(lambda: process.begun)
    wait(lambda: process.situation.mode is Mode.HOLDING)


def test_drives_are_off_until_they_are_enabled(process: LoopProcess) -> None:
    assert process.run() == ""
    wait(lambda: process.begun and process.situation.now > 0.2)
    assert process.lifecycle is Lifecycle.INACTIVE
    assert process.situation.mode is Mode.WAITING
    assert "inactive" in process.situation.action.reason
    assert process.ask(requests.enable) == ""
    wait(lambda: process.situation.mode is Mode.HOLDING)
    process.ask(requests.disable)
    wait(lambda: process.lifecycle is Lifecycle.INACTIVE)


def test_it_follows_a_motion_and_tells_how_it_went(process: LoopProcess, mechanism) -> None:
    held(process)
    queue = GoalQueue(Controls(process))
    plan = planned(mechanism, "auto").job
    for trajectory in (plan.approach, plan.cycle):
        goal = GoalRequest(lambda trajectory=trajectory: MotionPoints.of(trajectory))
        queue.put(goal)
        wait(lambda goal=goal: goal.over)
        assert goal.problem == ""
        assert goal.motion is not None
        assert goal.motion.outcome is Outcome.SUCCESSFUL, goal.motion.reason
        assert 0.0 < goal.motion.largest[0] < 1e-3  # m: efforts of 40 rad/s, held for 4 ms each
    queue.close()


@pytest.mark.parametrize(
    ("word", "moved", "waited"),
    [("stop", "the operator stopped it", STOPPED_SINCE), ("take_over", TOOK_OVER, TOOK_OVER)],
)
def test_a_stop_ends_what_moves_and_what_waits(
    process: LoopProcess, mechanism, word: str, moved: str, waited: str
) -> None:
    held(process)
    controls = Controls(process)
    queue = GoalQueue(controls)
    operator = Operator(controls, queue.withdraw_waiting)
    cycle = planned(mechanism, "auto").job.approach
    home = MotionPoints.of(cycle)
    slow = MotionPoints(20.0 * home.times, home.poses, home.twists / 20.0, home.accelerations / 400.0)
    first, second = GoalRequest(lambda: slow), GoalRequest(lambda: slow)
    queue.put(first)
    wait(lambda: process.situation.moving)
    queue.put(second)
    assert operator.request(word).success
    wait(lambda: first.over and second.over)
    assert first.motion is not None
    assert first.motion.reason == moved
    assert (second.problem if second.motion is None else second.motion.reason) in (moved, waited)
    wait(lambda: process.situation.mode is Mode.HOLDING)
    assert second.motion is None or second.motion.outcome is not Outcome.SUCCESSFUL
    time.sleep(0.3)
    assert not process.situation.moving
    queue.close()


_AGES: list[float] = []  # s of the machine, in the loop's process: of each reading when its command came


def time_commands(loop: ControlLoop) -> None:
    """Have the loop note from now on how old readings are when drives get their commands."""
    machine, read, write = loop.machine, loop.machine.read, loop.machine.write
    readings: list[float] = []

    def reading() -> MachineState:
        state = read()
        readings.append(state.time)
        return state

    def writing(command: NDArray[np.float64]) -> None:
        write(command)
        _AGES.append(machine.time - readings.pop())
        assert not readings, "a reading went by without its command"

    machine.read, machine.write = reading, writing  # type: ignore[method-assign]


def ages(loop: ControlLoop) -> list[float]:
    """What was noted."""
    return _AGES


def test_a_command_answers_the_reading_of_its_own_period(process: LoopProcess) -> None:
    """So it is no older than that period, in which it was computed; a fault would tell of a second reading."""
    held(process)
    process.ask(time_commands)
    wait(lambda: len(process.ask(ages)) > 100)
    assert process.situation.mode is Mode.HOLDING
    assert process.situation.state.fault == ""
    assert max(process.ask(ages)) == 0.0


def fail(loop: ControlLoop) -> None:
    """Have every period fail from now on."""

    def read() -> None:
        raise RuntimeError("a wire came off")

    loop.follower.update = lambda *_: read()  # type: ignore[method-assign]


def test_an_exception_in_the_loop_is_a_fault_with_its_text(process: LoopProcess) -> None:
    held(process)
    process.ask(fail)
    wait(lambda: process.lifecycle is Lifecycle.FAULT)
    wait(lambda: process.texts.fault)
    assert process.texts.fault == "the control loop failed: RuntimeError: a wire came off"
    assert "RuntimeError" in process.ask(requests.enable)


def test_at_a_low_rate_a_stop_does_not_wait_for_the_next_period(mechanism) -> None:
    process = LoopProcess()
    try:
        settings = ControllerSettings(rate=10.0, natural_frequency=1.0)
        process.build(build_robot_loop, (mechanism.urdf, MachineSettings(), settings), planning_of(mechanism), 0)
        assert process.run() == ""
        took = []
        for _ in range(10):
            began = time.monotonic()
            process.ask(requests.emergency_stop)
            took.append(time.monotonic() - began)
            process.ask(requests.reset)
        assert np.median(took) < 0.02  # s, of periods of 0.1 s
    finally:
        process.end()


def test_drives_off_that_could_not_be_sent_comes_all_the_same_and_blocks_nothing(mechanism) -> None:
    """A loop that stands still takes no messages: jogs fill its socket within seconds."""
    process = LoopProcess()
    try:
        machine, settings = MachineSettings(kind="loopback"), ControllerSettings(law="position", rate=100.0)
        process.build(build_robot_loop, (mechanism.urdf, machine, settings), planning_of(mechanism), 0)
        held(process)
        with process._sending, pytest.raises(LoopEndedError, match="does not accept requests"):
            process.ask(requests.disable)
        wait(lambda: process.lifecycle is Lifecycle.FAULT)
        assert process.ask(requests.reset) == ""
        assert process.ask(requests.enable) == ""
    finally:
        process.end()


def test_a_simulated_machine_that_stands_still_with_its_loop_goes_on(process: LoopProcess) -> None:
    """A stall, of the loop as of the whole computer, is no fault of a machine whose time stands still meanwhile."""
    assert process.run() == ""
    process.ask(requests.enable)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(1.0)
    assert not process.problem
    os.kill(process.pid, signal.SIGCONT)
    count = process.situation.now
    wait(lambda: process.situation.now > count)
    assert process.lifecycle is Lifecycle.ACTIVE


def test_a_process_that_is_killed_is_told(process: LoopProcess) -> None:
    held(process)
    os.kill(process.pid, signal.SIGKILL)
    wait(lambda: process.failure)
    assert "the process of the control loop has ended" in process.failure
    with pytest.raises(LoopEndedError, match="has ended"):
        process.ask(requests.enable)


HEXAPOD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
from pkm_control.loop.loop_process import LoopProcess
process = LoopProcess()
from pkm_control.loop import requests
from pkm_control.robot_loop import build_robot_loop
from pkm_control.loop_settings import ControllerSettings, MachineSettings
from pkm_description import load_mechanism
from pkm_dynamics.dynamics import shared_dynamics
from pkm_control.loop.jogging import Jog
from pkm_control.motion.curve_check import CurveCheck
from pkm_dynamics.motion_limits import ActuatorLimits
mechanism = load_mechanism(sys.argv[1])
dynamics = shared_dynamics(mechanism)
def planning(mode):
    check = CurveCheck(dynamics, ActuatorLimits.of(mechanism), mode)
    return check, Jog(check)
machine = MachineSettings(kind="servos", file=sys.argv[2])
settings = ControllerSettings(law="position", rate=50.0, machine_file=sys.argv[2])
process.build(build_robot_loop, (mechanism.urdf, machine, settings), planning, 0)
problem = process.run() or process.ask(requests.enable)
assert not problem, problem
print(process.pid, flush=True)
if sys.argv[3] == "exception":
    raise RuntimeError
if sys.argv[3] == "end":
    sys.exit(process.end())
time.sleep(60)
"""


@pytest.mark.by_day("SIGKILL", "SIGSTOP", "SIGTERM of the loop")
@pytest.mark.parametrize("way", ["end", "exception", "SIGINT", "SIGTERM", "SIGKILL", "SIGSTOP", "SIGTERM of the loop"])
def test_servos_are_off_after_every_way_out(way: str, tmp_path: Path) -> None:
    """By the board's own account; the loop's process is gone, too."""
    with SimulatedServoBoard() as board:
        file = tmp_path / "machine.yaml"
        text = (EXAMPLES / "hobby_hexapod_machine.yaml").read_text(encoding="utf-8")
        file.write_text(text.replace("/dev/ttyUSB0", board.port), encoding="utf-8")
        words = [sys.executable, "-c", HEXAPOD, str(EXAMPLES / "hobby_hexapod.urdf.xacro"), str(file), way]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as user:
            assert user.stdout is not None
            assert user.stderr is not None
            loop = int(user.stdout.readline())
            if way not in ("end", "exception"):
                wait(lambda: any(board.pulses))
                if way == "SIGTERM of the loop":
                    os.kill(loop, signal.SIGTERM)
                else:
                    os.kill(user.pid, getattr(signal, way))
            wait(lambda: any(any(pulses) for _, pulses in board.history))  # they were on
            wait(lambda: not any(board.pulses), 5.0)
            if way == "SIGSTOP":  # that is all that can be done while it stands still
                os.kill(user.pid, signal.SIGKILL)
            wait(lambda: not Path(f"/proc/{loop}").exists() or "Z" in _state(loop), 5.0)
            user.kill()
            if way == "exception":  # in order, not when Python has cleared up
                assert "has ended" not in user.stderr.read()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


# Of one process, which runs until the file ends: last, as its loop takes a third of a core


def test_rows_tell_what_the_loop_sees(shared: LoopProcess, kinematics) -> None:
    process = shared
    held(process)
    now = process.situation
    np.testing.assert_allclose(now.held, kinematics.home, atol=1e-4)
    assert now.action.measured is not None
    np.testing.assert_allclose(now.action.measured.joints, kinematics.home_joints, atol=1e-3)
    np.testing.assert_allclose(now.action.measured.positions, now.state.positions)
    wakes: list[float] = []

    def periods() -> bool:
        wakes.extend(process.figures().wakes)
        return len(wakes) > 20

    wait(periods)
    assert np.all(np.diff(wakes) > 0.0)


def test_reset_leads_to_drives_that_are_off(shared: LoopProcess) -> None:
    process = shared
    held(process)
    process.ask(requests.emergency_stop)
    wait(lambda: process.lifecycle is Lifecycle.FAULT)
    assert process.ask(requests.reset) == ""
    wait(lambda: process.lifecycle is Lifecycle.INACTIVE)
    time.sleep(0.1)
    assert process.lifecycle is Lifecycle.INACTIVE
    assert process.ask(requests.enable) == ""
    wait(lambda: process.situation.mode is Mode.HOLDING)


def test_an_answer_comes_after_the_row_that_shows_it(shared: LoopProcess) -> None:
    """Whoever enabled drives and then looked saw them off, and turned them off."""
    process = shared
    held(process)
    for _ in range(20):
        process.ask(requests.disable)
        assert process.lifecycle is Lifecycle.INACTIVE
        assert process.ask(requests.enable) == ""
        assert process.lifecycle is Lifecycle.ACTIVE
