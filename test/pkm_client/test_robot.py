# SPDX-License-Identifier: Apache-2.0
"""The verbs of the client, the same of a robot in one process and of one over ROS; and the answers to what is wrong."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_client import MotionEndedError, NoRobotError, RefusedError, Robot, Setup, Task
from pkm_client.verbs import VERBS
from pkm_control.control_errors import MotionFileError, UnreachableMotionError
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.tool import ToolError
from pkm_description import load_mechanism
from pkm_kinematics import ShapeError

from .conftest import FREQUENCY, RATE, described, running_nodes

HOME = -0.85  # m, nearly: z of the Delta's home


def until(condition: Callable[[], object], robot: Robot) -> None:
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        robot.wait(0.01)


def begun(robot: Robot, speed: float = 0.05) -> Task:
    """A slow motion, well under way, of 2 s."""
    task = robot.move_to([0.1, 0.0, HOME], speed, block=False)
    until(lambda: robot.state.pose[0] > 0.005, robot)
    return task


# Without the robot of this module, which runs until the file ends: first


def test_in_real_time_a_second_takes_a_second() -> None:
    with Robot.simulated("delta") as robot:
        began = time.monotonic()
        robot.wait(0.5)
        assert time.monotonic() - began > 0.45


@pytest.mark.slow
def test_as_fast_as_it_can_it_is_faster_than_the_clock() -> None:
    with Robot.simulated("delta", False, Setup(rate=RATE, natural_frequency=FREQUENCY)) as robot:
        began = time.monotonic()
        robot.wait(20.0)
        assert time.monotonic() - began < 15.0


@pytest.mark.by_day("five_bar")
@pytest.mark.parametrize("name", ["five_bar", "tripod_3prs"])
def test_other_robots_in_one_process(name: str) -> None:
    with Robot.simulated(name, realtime=False) as robot:
        assert robot.follow("auto").result().outcome is Outcome.SUCCESSFUL
        assert robot.state.mode is Mode.HOLDING


def test_a_jog_that_the_platform_cannot_follow_is_refused() -> None:
    """A 3-PRS that tilts a little has a little of x in its motions; a tricept has no names of coordinates to tell."""
    with Robot.simulated("tripod_3prs", realtime=False) as robot:
        robot.move_to([0.0, 0.0, robot.state.pose[2], 0.0, 1e-4, 0.0], nearest=True)
        with pytest.raises(RefusedError, match="cannot move in that direction, or hardly at all; its coordinates are "):
            robot.jog([0.01, 0.0, 0.0])
    with Robot.simulated("tricept", realtime=False) as robot, pytest.raises(RefusedError, match=r"hardly at all$"):
        robot.jog([0.0, 0.0, 0.0], [0.0, 0.0, 0.1])


def test_an_angle_in_degrees_is_told_and_not_turned_back_into_range() -> None:
    """A pitch of 5 rad is one of -74 degrees, which some robots have."""
    with Robot.simulated("gough_stewart", realtime=False) as robot:
        x, y, z = robot.state.pose[:3]
        with pytest.raises(RefusedError, match=r"platform_pitch is 5 rad: if this is in degrees, give 0\.08727"):
            robot.move_to([x, y, z, 0.0, 5.0, 0.0])


def test_a_description_that_cannot_be_used_is_told() -> None:
    missing = r"robot_description \(what came cannot be used: .*\), controller_state"
    with described("misled", "<robot"), pytest.raises(NoRobotError, match=missing):
        Robot.connect("misled", timeout=2.0)


@pytest.mark.slow
def test_a_description_that_cannot_be_used_misleads_nobody() -> None:
    """Whichever of the two comes first."""
    with described("two_texts", "<robot"), running_nodes("two_texts"), described("two_texts", "<robot/>"):
        for _ in range(3):
            with Robot.connect("two_texts", timeout=120.0) as robot:
                assert robot.move_to([0.0, 0.0, HOME]).result().outcome is Outcome.SUCCESSFUL


def test_a_controller_that_hangs_and_one_that_dies_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    with running_nodes("dying") as group, Robot.connect("dying", timeout=120.0) as robot:
        task = robot.move_to([0.1, 0.0, HOME], 0.02, block=False)
        group.processes["control"].send_signal(signal.SIGSTOP)  # type: ignore[attr-defined]
        assert VERBS["stop"].main(["--namespace", "dying", "--timeout", "3"]) == 1
        assert "if it moves, cut the power of its drives: 2 s" in capsys.readouterr().err
        group.processes["control"].kill()  # type: ignore[attr-defined]
        with pytest.raises(MotionEndedError, match="STATE_LOST: the controller has been silent"):
            task.result(30.0)
        with pytest.raises(NoRobotError, match="has been silent"):
            robot.move_to([0.0, 0.0, HOME])


def test_it_goes_to_a_pose_and_tells_where_it_is(robot: Robot) -> None:
    task = robot.move_to([0.05, 0.02, -0.9])
    assert task.done
    assert task.progress == 1.0
    assert 0.0 < task.result().rms_position_error <= task.result().max_position_error < 0.02
    robot.wait(0.5)  # the error of the motion's end dies away
    state = robot.state
    assert state.mode is Mode.HOLDING
    assert not state.moving
    np.testing.assert_allclose(state.reference, (0.05, 0.02, -0.9, 0.0, 0.0, 0.0, 1.0), atol=1e-12)
    np.testing.assert_allclose(state.pose, state.reference, atol=1e-4)
    assert state.position_error < 1e-4
    assert list(state.positions) == list(robot.kinematics.actuated_names)
    wanted = robot.solve_ik(state.pose).by_name()
    assert state.positions == pytest.approx(wanted, abs=1e-6)
    np.testing.assert_allclose(robot.solve_fk(state.positions).pose, state.pose, atol=1e-6)
    assert min(abs(effort) for effort in state.efforts.values()) > 0.5  # that carry the weight
    assert "platform at (0.05" in str(state)


def test_a_pose_where_it_is_already_is_reached_at_once(robot: Robot) -> None:
    assert robot.move_to(robot.state.reference).result().outcome is Outcome.SUCCESSFUL


@pytest.mark.parametrize("speed", [None, "fast", 0.0, -1.0, float("nan")])
def test_what_is_no_speed_is_refused_in_words(robot: Robot, speed: object) -> None:
    with pytest.raises(RefusedError, match=f"the speed is {speed!r}; give a number greater than zero"):
        robot.move_to([0.1, 0.0, HOME], speed)


def test_it_keeps_a_speed(robot: Robot) -> None:
    task = begun(robot, 0.04)
    assert robot.state.twist[0] == pytest.approx(0.04, rel=0.1)
    until(lambda: task.progress > 0.0, robot)  # it is told a few times a second
    assert task.progress < 1.0
    task.cancel()
    task.wait()


def test_it_follows_a_file(robot: Robot, tmp_path: Path) -> None:
    file = tmp_path / "way.csv"
    file.write_text("# frame: home\nx [mm], y [mm], z [mm]\n10, 0, 0\n10, 20, 0\n0, 20, 10\n")
    result = robot.follow(file).result()
    assert result.outcome is Outcome.SUCCESSFUL
    home = robot.kinematics.home[:3]
    np.testing.assert_allclose(robot.state.reference[:3] - home, (0.0, 0.02, 0.01), atol=1e-9)
    robot.follow(file, cycles=2)  # with a way back
    np.testing.assert_allclose(robot.state.reference[:3] - home, (0.01, 0.0, 0.0), atol=1e-9)


def test_outputs_and_payload_on_the_way(robot: Robot, tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    end = robot.on_output(lambda name, value: told.append((name, value)))
    file = tmp_path / "grip.csv"
    header = "# frame: home\nx [mm], y [mm], z [mm], dwell [s], payload [kg], output:gripper, output:lamp\n"
    file.write_text(f"{header}0,0,0,0,0,0,\n20,0,0,0.1,0.5,1,0.5\n0,0,0,0.1,0.5,,\n")
    robot.follow(file, cycles=2)
    changes = [("gripper", 0.0), ("gripper", 1.0), ("lamp", 0.5), ("gripper", 0.0), ("gripper", 1.0)]
    until(lambda: len(told) == len(changes), robot)
    assert told == changes
    assert robot.outputs == {"gripper": 1.0, "lamp": 0.5}
    until(lambda: robot.payload is not None and robot.payload.mass == 0.5, robot)
    robot.wait(1.0)
    assert robot.state.position_error < 1e-4  # the controller carries what the machine does
    end()
    file.write_text(f"{header}0,0,0,0.1,0,0,0\n0,0,10,0,0,,\n")
    robot.follow(file)
    until(lambda: robot.payload is None and robot.outputs == {"gripper": 0.0, "lamp": 0.0}, robot)
    assert told == changes


def test_jogs(robot: Robot) -> None:
    robot.jog(linear=(0.0, 0.05, 0.0), seconds=1.0)
    moved = robot.state.reference[:3] - robot.kinematics.home[:3]
    np.testing.assert_allclose(moved, (0.0, 0.05, 0.0), atol=0.01)
    task = robot.jog(linear=(0.0, -0.05, 0.0), seconds=60.0, block=False)
    until(lambda: robot.state.moving, robot)
    assert robot.state.mode is Mode.JOGGING
    task.cancel()
    task.result(30.0)
    assert not robot.state.moving


def test_a_jog_whose_twists_come_late_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with Robot.simulated("five_bar") as robot:
        steer = robot._backend.steer

        def late(*arguments: Any) -> Any:
            time.sleep(0.4)
            return steer(*arguments)

        monkeypatch.setattr(robot._backend, "steer", late)
        reason = robot.jog(linear=(0.02, 0.0, 0.0), seconds=1.0).result().reason
    assert re.fullmatch(r"it halted as twists came \d\S* s apart, on a busy computer", reason)


@pytest.mark.by_day("one process")
def test_a_jog_ends_before_a_border_and_says_which(robot: Robot) -> None:
    robot.move_to([0.0, 0.0, -1.3])
    result = robot.jog(linear=(0.0, 0.0, -0.3), seconds=1e9).result()
    assert re.match(r"jogs go at 0.1\d* m/s at most, not 0.3; ", result.reason)
    assert "it goes no further: " in result.reason
    assert robot.state.pose[2] > -1.4


@pytest.mark.by_day("one process")
def test_pause_resume(robot: Robot) -> None:
    task = begun(robot)
    robot.pause()
    state = robot.state
    assert state.mode is Mode.PAUSED
    assert state.speed == 0.0
    with pytest.raises(RefusedError, match="the controller is paused: resume or stop first"):
        robot.move_to([0.0, 0.0, -0.9])
    with pytest.raises(RefusedError, match="the controller is paused"):
        robot.follow("auto")
    assert not task.done
    np.testing.assert_array_equal(robot.state.reference, state.reference)
    robot.resume()
    assert task.result(60.0).outcome is Outcome.SUCCESSFUL
    assert robot.state.pose[0] == pytest.approx(0.1, abs=1e-4)


@pytest.mark.by_day("one process")
def test_a_jog_while_paused_and_back_to_the_path(robot: Robot) -> None:
    task = begun(robot)
    robot.pause()
    robot.jog(linear=(0.0, 0.03, 0.0), seconds=0.5)
    assert robot.state.mode is Mode.PAUSED
    robot.resume()
    assert task.result(60.0).outcome is Outcome.SUCCESSFUL


def test_stop_ends_a_motion_on_its_path(robot: Robot) -> None:
    task = begun(robot)
    robot.stop()
    assert robot.state.mode is Mode.HOLDING
    with pytest.raises(MotionEndedError, match="PREEMPTED: the operator stopped it") as ended:
        task.result(30.0)
    assert ended.value.result.outcome is Outcome.PREEMPTED
    assert task.done
    assert 0.0 < robot.state.reference[0] < 0.1
    robot.stop()  # a robot at rest is stopped already


def test_a_task_is_cancelled(robot: Robot) -> None:
    task = begun(robot)
    task.cancel()
    with pytest.raises(MotionEndedError, match="PREEMPTED: cancelled"):
        task.result(30.0)
    until(lambda: not robot.state.moving, robot)
    assert 0.0 < robot.state.reference[0] < 0.1


def test_waiting_may_end_before_the_motion(robot: Robot) -> None:
    task = begun(robot)
    robot.pause()
    with pytest.raises(TimeoutError, match="it goes on"):
        task.result(0.2)
    assert not task.done


@pytest.mark.by_day("one process")
def test_speed_override(robot: Robot) -> None:
    task = begun(robot)
    robot.set_speed(0.3)
    until(lambda: robot.state.speed == 0.3, robot)
    robot.set_speed(0.0)
    until(lambda: robot.state.mode is Mode.PAUSED, robot)
    robot.pause()
    with pytest.raises(RefusedError, match="the speed override is 0: raise it to go on"):
        robot.resume()
    robot.set_speed(1.0)
    assert task.result(60.0).outcome is Outcome.SUCCESSFUL


# What is wrong, and the answer


@pytest.mark.parametrize("name", ["rate", "natural_frequency", "damping", "hidden_payload"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_setup_that_makes_no_sense(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}; give a number greater than zero"):
        Setup(**{name: value})


@pytest.mark.parametrize("fraction", [-0.1, 1.001, 1000.0, float("nan"), float("inf")])
def test_an_override_that_is_none(robot: Robot, fraction: float) -> None:
    with pytest.raises(RefusedError, match=r"the fraction is .*; give a number from 0 to 1"):
        robot.set_speed(fraction)
    assert robot.state.speed == 1.0


def test_a_motion_at_an_override_of_0_is_not_waited_for(robot: Robot) -> None:
    robot.set_speed(0.0)
    with pytest.raises(RefusedError, match="the speed override is 0, so the motion would not begin"):
        robot.move_to([0.02, 0.0, HOME])
    task = robot.move_to([0.02, 0.0, HOME], block=False)
    robot.wait(0.3)
    assert not task.done
    assert abs(robot.state.reference[0]) < 1e-9
    robot.set_speed(1.0)
    assert task.result(60.0).outcome is Outcome.SUCCESSFUL


@pytest.mark.parametrize("jogged", [True, False])
def test_a_motion_at_an_override_of_0_is_not_waited_for_where_it_takes_over(robot: Robot, jogged: bool) -> None:
    first = robot.jog((0.0, 0.02, 0.0), seconds=20.0, block=False) if jogged else begun(robot)
    until(lambda: robot.state.moving, robot)
    robot.set_speed(0.0)
    with pytest.raises(
        RefusedError, match=r"the (speed override is 0, so the motion would not begin|controller is paused)"
    ):
        robot.move_to([0.02, 0.0, HOME])
    robot.set_speed(1.0)
    robot.stop()
    until(lambda: first.done, robot)


def test_a_motion_while_one_runs_takes_over(robot: Robot) -> None:
    first = begun(robot)
    robot.move_to([0.0, 0.03, HOME])
    with pytest.raises(MotionEndedError, match="PREEMPTED: another motion took over"):
        first.result(1.0)
    np.testing.assert_allclose(robot.state.reference[:3], (0.0, 0.03, HOME), atol=1e-9)


def test_a_motion_from_where_the_platform_was_before_somebody_moved_it(robot: Robot) -> None:
    here, there = (np.array(robot.solve_ik([x, 0.0, HOME]).pose) for x in (0.03, 0.06))
    (leg,) = robot._way(here, there, 0.1)
    with pytest.raises(RefusedError, match="the platform was moved while this was planned: ask again"):
        robot._begin_from(here, leg, time.monotonic())
    assert not robot.state.moving


def test_an_impossible_motion_while_one_runs_leaves_that_alone(robot: Robot) -> None:
    first = begun(robot)
    with pytest.raises(UnreachableMotionError, match="the platform cannot be at"):
        robot.move_to([0.0, 0.0, -3.0])
    assert first.result(60.0).outcome is Outcome.SUCCESSFUL


def test_a_jog_while_a_motion_runs(robot: Robot) -> None:
    task = begun(robot)
    with pytest.raises(RefusedError, match="a motion runs; pause or stop it first"):
        robot.jog(linear=(0.0, 0.0, 0.1))
    assert not task.done


def test_a_stop_by_somebody_else_ends_a_jog(robot: Robot) -> None:
    task = robot.jog(linear=(0.0, 0.05, 0.0), seconds=60.0, block=False)
    until(lambda: robot.state.moving, robot)
    robot.wait(0.3)
    robot.stop()
    with pytest.raises(MotionEndedError, match="PREEMPTED: it was stopped"):  # it moved: that is no refusal
        task.result(30.0)
    stood = robot.state.reference
    robot.wait(1.0)
    np.testing.assert_array_equal(robot.state.reference, stood)
    robot.jog(linear=(0.0, -0.05, 0.0), seconds=0.5)
    assert robot.state.reference[1] < stood[1] - 0.005


def test_a_motion_takes_over_from_a_jog(robot: Robot) -> None:
    """The jog is told so, not that somebody stopped it."""
    task = robot.jog(linear=(0.0, 0.05, 0.0), seconds=60.0, block=False)
    until(lambda: robot.state.moving, robot)
    robot.wait(0.3)
    robot.move_to(robot.kinematics.home)
    with pytest.raises(MotionEndedError, match="PREEMPTED: another motion took over"):
        task.result(30.0)


def test_a_jog_whose_drives_go_off_is_lost(robot: Robot) -> None:
    task = robot.jog(linear=(0.0, 0.05, 0.0), seconds=60.0, block=False)
    until(lambda: robot.state.moving, robot)
    robot.wait(0.3)
    robot.disable()
    try:
        with pytest.raises(MotionEndedError, match="STATE_LOST: "):
            task.result(30.0)
    finally:
        robot.enable()
        robot.move_to(robot.kinematics.home)


def test_a_jog_whose_platform_is_lost_as_it_comes_to_rest_does_not_succeed(
    robot: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = robot._until_rest
    monkeypatch.setattr(robot, "_until_rest", lambda: (robot.disable(), robot.wait(0.1), rest()))
    try:
        with pytest.raises(MotionEndedError, match="STATE_LOST: the machine is inactive"):
            robot.jog(linear=(0.0, 0.02, 0.0), seconds=0.5)
    finally:
        monkeypatch.undo()
        robot.enable()
        robot.move_to(robot.kinematics.home)


def test_what_was_asked_for_before_a_stop_ends_with_it(robot: Robot) -> None:
    home = np.array(robot.state.reference)
    robot.asked = time.monotonic()  # as by a command whose process was still starting when the stop came
    time.sleep(1.0)  # longer than a message over ROS takes on a busy computer
    try:
        robot.stop()
        with pytest.raises(MotionEndedError, match="it was stopped after this was asked for"):
            robot.move_to([0.05, 0.0, HOME])
        with pytest.raises(RefusedError, match="it was stopped after this was asked for"):
            robot.jog(linear=(0.0, 0.05, 0.0))
        np.testing.assert_array_equal(robot.state.reference, home)
    finally:
        robot.asked = None
    assert robot.move_to([0.05, 0.0, HOME]).result().outcome is Outcome.SUCCESSFUL


def test_verbs_with_nothing_to_do(robot: Robot) -> None:
    with pytest.raises(RefusedError, match="no motion runs"):
        robot.pause()
    with pytest.raises(RefusedError, match="nothing is paused"):
        robot.resume()
    assert robot.recover() == "nothing is wrong: the platform stands well"


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda r: r.move_to([0.0, 0.0]), ShapeError, "pose"),
        (lambda r: r.move_to([float("nan"), 0.0, HOME]), RefusedError, "not finite"),
        (lambda r: r.move_to([1e308, 0.0, HOME]), RefusedError, r"beyond 1e\+06 m"),
        (lambda r: r.move_to([0.0, 0.0, HOME, 0.0, 0.0, 0.0, 2.0]), RefusedError, "unit length"),
        (lambda r: r.move_to([0.0, 0.0, -3.0]), UnreachableMotionError, "cannot be at"),
        (lambda r: r.move_to([0.0, 0.0, HOME], speed=0.0), RefusedError, "greater than zero"),
        (lambda r: r.move_to([0.0, 0.0, -30.0], nearest=True), RefusedError, "near that one: .* give one within reach"),
        (lambda r: r.follow("no_such_file"), MotionFileError, "cannot be read"),
        (lambda r: r.move_to([0.0, 0.0, HOME], tool="griper"), ToolError, "no file of tools was given"),
        (lambda r: r.follow("auto", cycles=0), RefusedError, "cycles is 0"),
        (lambda r: r.follow("auto", cycles=1.5), RefusedError, "cycles is 1.5"),
        (lambda r: r.jog(linear=(0.0, float("inf"), 0.0)), RefusedError, "numbers of at most"),
        (lambda r: r.jog(linear=(0.0, 1e308, 0.0)), RefusedError, "numbers of at most"),
        (lambda r: r.jog(linear=(0.1,)), RefusedError, "three"),
        (lambda r: r.jog(angular=(0.0, 0.0, 0.1)), RefusedError, "its coordinates are platform_x, platform_y"),
        (lambda r: r.set_speed("x"), RefusedError, "the fraction is 'x'; give a number from 0 to 1"),
        (lambda r: r.jog(linear=(0.1, 0.0, 0.0), seconds=-1.0), RefusedError, "seconds is -1"),
        (lambda r: r.wait(-1.0), RefusedError, "seconds is -1"),
        (lambda r: r.solve_ik([0.0, 0.0, -3.0]), RefusedError, "no configuration of the limbs reaches this pose"),
        (lambda r: r.solve_fk([9.0, 9.0, 9.0]), RefusedError, "outside"),
        (lambda r: r.solve_fk({"limb1_arm": 0.0}), RefusedError, "no position of limb2_arm, limb3_arm"),
    ],
)
def test_what_makes_no_sense(robot: Robot, ask: Callable[[Robot], object], error: type[Exception], words: str) -> None:
    before = robot.state.reference
    with pytest.raises(error, match=words):
        ask(robot)
    np.testing.assert_array_equal(robot.state.reference, before)
    assert robot.state.mode is Mode.HOLDING


# In one process alone


def test_a_closed_robot_says_so() -> None:
    robot = Robot.simulated("delta", realtime=False)
    task = robot.move_to([0.1, 0.0, HOME], 0.05, block=False)
    robot.close()
    with pytest.raises(MotionEndedError, match="STATE_LOST: the robot was closed"):
        task.result(5.0)
    for ask in (lambda: robot.state, lambda: robot.move_to([0.0, 0.0, HOME]), robot.stop, lambda: robot.wait(1.0)):
        with pytest.raises(NoRobotError, match="the robot was closed"):
            ask()
    robot.close()


def test_a_busy_computer_does_not_disturb_a_robot_out_of_real_time() -> None:
    """Late periods were caught up with an old command: friction of 30 N m made the arms of a Delta shake."""
    with Robot.simulated("delta", realtime=False) as robot:
        backend, steps = robot._backend, list[float]()
        machine, wait = backend.loop.machine, backend._rate.wait  # type: ignore[attr-defined]
        step = machine.step
        machine.step = lambda seconds: (steps.append(seconds), step(seconds))[1]
        backend._rate.wait = lambda: wait() + 1  # type: ignore[attr-defined]
        until(lambda: len(steps) > 20, robot)
        hurried = len(steps)
        while len(steps) < hurried + 20:  # nobody waits: the clock paces
            time.sleep(0.01)
    np.testing.assert_allclose(steps, 1.0 / Setup().rate, rtol=1e-12)


def test_a_refused_twist_says_why_nothing_moves() -> None:
    """As a pad reads it in the controller's warnings, which knows no client."""
    with Robot.simulated("delta", realtime=False) as robot:
        robot.disable()
        operator = robot._backend.operator
        for answer in (operator.steer(np.full(6, 0.01)), operator.jog_to(robot.kinematics.home)):
            assert answer.message.startswith("the controller is waiting: the machine is inactive")


def _disabled(robot: Robot) -> None:
    robot.disable()


def _stopped_and_reset(robot: Robot) -> None:
    robot.emergency_stop()
    robot.reset()


@pytest.mark.parametrize("turn_off", [_disabled, _stopped_and_reset])
@pytest.mark.parametrize("realistic", [False, True])
def test_enabling_the_drives_continues_no_jog(turn_off: Callable[[Robot], None], realistic: bool) -> None:
    """Whether a stick is held, or a script's jog has some seconds left: the first to say so is a new one."""
    with Robot.simulated("delta", realtime=False, setup=Setup(realistic=realistic)) as robot:
        steer, twist = robot._backend.operator.steer, np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0])

        def hold() -> set[str]:
            said = set()
            for _ in range(10):
                said.add(steer(twist).message)
                robot.wait(0.05)
            return said

        assert hold() == {""}
        turn_off(robot)
        robot.enable()
        assert hold() == {"the jog was stopped: let go before another one"}
        assert robot.state.mode is Mode.HOLDING
        robot.wait(0.3)
        turn_off(robot)
        said = hold()
        assert all("is inactive" in one for one in said), said
        robot.enable()
        assert hold() == {"the jog was stopped: let go before another one"}
        assert steer(np.zeros(6)).success
        task = robot.jog([0.0, 0.0, -0.05], seconds=5.0, block=False)
        robot.wait(0.2)
        turn_off(robot)
        robot.enable()
        with pytest.raises(MotionEndedError):
            task.result(60.0)
        assert np.abs(robot.state.twist).max() < 0.01


def test_no_such_robot() -> None:
    with pytest.raises(Exception, match="no such robot"):
        Robot.simulated("nonsense")


# Over ROS alone


def test_nobody_there() -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
    with pytest.raises(
        NoRobotError, match=r"no robot answers in namespace '/nowhere' within 0.5 s: .*controller_state"
    ):
        Robot.connect("nowhere", timeout=0.5)


def test_two_clients_of_one_robot(namespace: str) -> None:
    """A second client stops, slows and takes over what the first began, as any ROS node may."""
    with Robot.connect(namespace, timeout=120.0) as one, Robot.connect(namespace) as other:
        one.set_speed(1.0)
        one.move_to(one.kinematics.home)
        task = begun(one)
        other.stop()
        with pytest.raises(MotionEndedError, match="the operator stopped it"):
            task.result(30.0)
        np.testing.assert_allclose(one.state.reference, other.state.reference, atol=1e-12)
        task = begun(one)
        other.move_to([0.0, 0.03, HOME])
        with pytest.raises(MotionEndedError, match="PREEMPTED: another motion took over"):
            task.result(30.0)
        other.close()
        with pytest.raises(NoRobotError, match="the client was closed"):
            other.stop()
        assert one.move_to([0.0, 0.0, HOME]).result().outcome is Outcome.SUCCESSFUL


def test_a_client_notices_that_another_robot_runs_there(namespace: str) -> None:
    """The one that it found has ended: it would plan with that one's joints, and ended with a KeyError."""
    with Robot.connect(namespace, timeout=120.0) as robot:
        robot.move_to(robot.kinematics.home)
        robot._backend.__dict__["mechanism"] = load_mechanism("five_bar")
        del robot.__dict__["kinematics"]
        home = robot.kinematics.home
        for call in (lambda: robot.move_to(home), lambda: robot.follow("auto"), lambda: robot.solve_ik(home)):
            with pytest.raises(NoRobotError, match="another robot runs here now, without left_arm, right_arm: connect"):
                call()
        robot.stop()  # whatever it is
