# SPDX-License-Identifier: Apache-2.0
"""Machines that take positions: limits of the actuators, the law, and what the follower does with both."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pkm_bringup.main_job import plan_cycle, planned, run_motion
from pkm_control.loop.control_loop import ControlLoop, switch_on
from pkm_control.loop.followed_motion import Action, Motion, Tolerances
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import PositionGuard
from pkm_control.loop.requests import follow
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_description.load import expand
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode
from pkm_hardware.machine_kinds import LOOPBACK, reserve_of_drives
from pkm_hardware.make_machine import make_machine
from pkm_hardware.position_limiter import PositionLimiter
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
PERIOD = 0.02  # s: hobby servos


def one(velocity: float = 2.0, acceleration: float = 10.0) -> ActuatorLimits:
    def value(x: float) -> np.ndarray:
        return np.array([x])

    inf = np.inf
    return ActuatorLimits(("a",), ("rad",), value(-1.0), value(1.0), value(velocity), value(acceleration), value(inf))


def followed(limits: ActuatorLimits, wanted: Callable[[float], float], seconds: float) -> np.ndarray:
    limiter = PositionLimiter(limits)
    limiter.start(np.array([wanted(0.0)]))
    times = PERIOD * np.arange(1, round(seconds / PERIOD) + 1)
    return np.array([limiter.follow(np.array([wanted(t)]), PERIOD)[0] for t in times])


def test_what_keeps_the_limits_is_followed_exactly() -> None:
    def wanted(t: float) -> float:
        return 0.5 * np.sin(2.0 * t) ** 3

    got = followed(one(), wanted, 3.0)
    np.testing.assert_allclose(got, [wanted(t) for t in PERIOD * np.arange(1, 151)], atol=1e-9)


@pytest.mark.parametrize("size", [0.05, 0.3, 1.0])
def test_a_jump_is_followed_within_the_limits_without_overshoot(size: float) -> None:
    limits = one()
    got = followed(limits, lambda t: size * (t > 0.0), 3.0)
    rates = np.diff(got, prepend=0.0) / PERIOD
    assert np.abs(rates).max() <= limits.velocity[0] + 1e-9
    assert np.abs(np.diff(rates, prepend=0.0) / PERIOD).max() <= limits.acceleration[0] + 1e-6
    assert got.max() <= size + 1e-6
    assert got[-1] == pytest.approx(size, abs=1e-6)
    fastest = size / limits.velocity[0] + 2.0 * np.sqrt(size / limits.acceleration[0])
    assert np.argmax(got > 0.98 * size) * PERIOD < 1.5 * fastest + 0.1


def test_ranges_are_kept_and_nonsense_is_passed_on_as_such() -> None:
    assert followed(one(), lambda t: 5.0 * t, 3.0).max() <= 1.0
    limiter = PositionLimiter(one())
    limiter.start(np.zeros(1))
    assert np.isnan(limiter.follow(np.array([np.nan]), PERIOD)).all()
    np.testing.assert_array_equal(limiter.follow(np.zeros(1), PERIOD), [0.0])


def test_the_guard_holds_the_last_positions_for_a_while() -> None:
    guard = PositionGuard(np.array([-1.0]), np.array([1.0]), max_age=0.1, hold_time=0.5)
    assert guard.check(0.0, {"state": None}, None).withhold_command
    np.testing.assert_array_equal(guard.check(0.0, {"state": 0.0}, np.array([2.0])).command, [1.0])
    held = guard.check(0.3, {"state": 0.0}, None)
    assert not held.withhold_command
    np.testing.assert_array_equal(held.command, [1.0])
    assert "holding the last positions" in held.reason
    assert guard.check(0.7, {"state": 0.0}, None).withhold_command
    bad = [guard.check(t, {"state": t}, np.array([np.nan])) for t in (1.0, 1.2, 1.6)]
    assert [verdict.withhold_command for verdict in bad] == [False, False, True]


@pytest.fixture(scope="module")
def light() -> Kinematics:
    """The hexapod as somebody describes it who knows no masses: lengths, ranges and speeds alone."""
    text = expand(str(EXAMPLES / "hobby_hexapod.urdf.xacro"), {})[0]
    text = re.sub(r"<inertial>.*?</inertial>", "", text, flags=re.DOTALL)
    text = re.sub(r'<param name="(gear_ratio|rotor_inertia)">[^<]*</param>', "", text)
    text = re.sub(r"<dynamics [^>]*>", "", text)
    text = re.sub(r'effort="[^"]*"', 'effort="0"', text)
    text = text.replace("<pkm ", '<pkm kinematics_only="true" ')
    assert "inertial" not in text
    return Kinematics(load_mechanism(text))


class Loop:
    """A follower with the law `position`, and the loopback that it drives."""

    def __init__(self, kinematics: Kinematics, delay: int = 0, told: int = 0) -> None:
        self.kinematics = kinematics
        self.sent: list[np.ndarray] = []
        self.delay = delay  # periods after which a command begins to act
        self.machine = make_machine(LOOPBACK, kinematics, None)
        limits = replace(self.machine.limits, acceleration=np.full(6, 60.0))
        controller = make_controller("position", Dynamics(kinematics), limits, PERIOD, delay=told * PERIOD)
        guard = PositionGuard(limits.lower, limits.upper, 5 * PERIOD)
        self.follower = TrajectoryFollower(kinematics, controller, guard, 1.5 * PERIOD)
        self.machine.configure()
        self.machine.activate()
        self.rows: list[np.ndarray] = []

    def run(self, seconds: float) -> Action:
        for _ in range(max(1, round(seconds / PERIOD))):
            state = self.machine.read()
            action = self.follower.update(state.time, state.time, state.positions, state.velocities)
            assert action.mode is not Mode.STOPPED, action.reason
            self.sent.append(action.command)
            self.machine.write(self.sent[max(0, len(self.sent) - 1 - self.delay)])
            self.machine.step(PERIOD)
            self.rows.append(self.machine.read().positions)
        return action

    def way(self, x: float, z: float, seconds: float) -> PointTrajectory:
        home = np.array(self.kinematics.home)
        end = home.copy()
        end[[0, 2]] += x, z
        return PointTrajectory(np.array([0.0, seconds]), np.array([home, end]), np.zeros((2, 6)), np.zeros((2, 6)))


@pytest.fixture
def loop(light: Kinematics) -> Loop:
    return Loop(light)


def test_a_robot_without_masses_follows_a_motion_and_holds(loop: Loop) -> None:
    loop.run(0.2)
    motion = Motion(loop.way(0.01, 0.005, 1.0), loop.machine.time, Tolerances(goal_position=1e-5, goal_time=0.2))
    assert loop.follower.check.refusal(motion.trajectory) == ""
    loop.follower.follow(motion)
    assert loop.run(0.5).mode is Mode.TRACKING
    assert loop.run(1.0).mode is Mode.HOLDING
    assert motion.outcome is Outcome.SUCCESSFUL
    assert motion.largest[0] < 1e-9  # m: the law knows where the motion will be
    wanted = loop.kinematics.inverse(motion.trajectory.poses[-1]).actuated
    np.testing.assert_allclose(loop.rows[-1], wanted, atol=1e-9)


@pytest.mark.parametrize("told", [0, 2])
def test_commands_that_act_late_are_those_of_a_later_time(light: Kinematics, told: int) -> None:
    """As over ROS, where a command is heard a period after the reading that it answers."""
    loop = Loop(light, delay=2, told=told)
    loop.run(0.2)
    motion = Motion(loop.way(0.01, 0.005, 1.0), loop.machine.time, Tolerances(goal_position=1e-4, goal_time=0.2))
    loop.follower.follow(motion)
    loop.run(1.5)
    assert motion.outcome is Outcome.SUCCESSFUL
    fastest = np.linalg.norm([0.01, 0.005]) * 15 / 8  # m/s, of a quintic in a second
    if told:
        assert motion.largest[0] < 0.2 * 2 * PERIOD * fastest
    else:
        assert motion.largest[0] == pytest.approx(2 * PERIOD * fastest, rel=0.05)  # it lags


@pytest.mark.parametrize("stuck", [False, True])
def test_a_motion_with_a_drive_that_stays_where_it_is_does_not_succeed(
    loop: Loop, stuck: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The platform is far nearer to its goal than what loses it, and no tolerance was asked for."""
    loop.run(0.2)
    read = loop.machine.read
    stays = np.where([stuck, *[False] * 5], read().positions, np.nan)

    def positions() -> object:
        state = read()
        return replace(state, positions=np.where(np.isnan(stays), state.positions, stays))

    monkeypatch.setattr(loop.machine, "read", positions)
    motion = Motion(loop.way(0.005, 0.0, 1.0), loop.machine.time)
    follow(loop.follower, motion)
    assert loop.run(1.1).mode is (Mode.TRACKING if stuck else Mode.HOLDING)
    loop.run(2.0)
    assert motion.outcome is (Outcome.GOAL_TOLERANCE_VIOLATED if stuck else Outcome.SUCCESSFUL)
    assert ("from the goal" in motion.reason) == stuck


@pytest.mark.parametrize("short", [0.0, 5e-4])
def test_a_motion_is_done_when_the_platform_comes_no_nearer(
    loop: Loop, short: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drives that lag by 0.2 s, one of them in the end too short by [rad]: all within what counts as at the goal."""
    loop.run(0.2)
    read, place = loop.machine.read, loop.machine.read().positions

    def positions() -> object:
        state = read()
        place[:] += PERIOD / 0.4 * (state.positions - place)  # read twice a period
        return replace(state, positions=place + short * np.arange(6.0).clip(0, 1))

    monkeypatch.setattr(loop.machine, "read", positions)
    motion = Motion(loop.way(0.005, 0.0, 1.0), loop.machine.time)
    follow(loop.follower, motion)
    assert loop.run(1.1).mode is Mode.TRACKING
    before = len(loop.rows)
    while motion.outcome is None:
        loop.run(PERIOD)
    wanted = loop.kinematics.inverse(motion.trajectory.poses[-1]).actuated
    assert motion.outcome is Outcome.SUCCESSFUL
    assert np.abs(place - wanted).max() < 1e-3  # rad
    assert (len(loop.rows) - before) * PERIOD < 1.5


def test_pause_resume_override_stop_and_jog(loop: Loop) -> None:
    loop.run(0.2)
    motion = Motion(loop.way(0.01, 0.005, 2.0), loop.machine.time)
    loop.follower.follow(motion)
    loop.run(0.5)
    assert loop.follower.pause() == ""
    assert loop.run(2.0).mode is Mode.PAUSED
    rests = loop.rows[-1]
    loop.run(0.2)
    np.testing.assert_allclose(loop.rows[-1], rests, atol=1e-9)
    assert loop.follower.set_override(0.5) == ""
    assert loop.follower.resume() == ""
    assert loop.run(0.5).mode is Mode.TRACKING
    assert loop.follower.stop() == ""
    assert loop.run(2.0).mode is Mode.HOLDING
    assert motion.outcome is Outcome.PREEMPTED
    for _ in range(20):
        assert loop.follower.steer(np.array([0.0, 0.0, -0.02, 0.0, 0.0, 0.0]), loop.machine.time) == ""
        assert loop.run(PERIOD).mode is Mode.JOGGING
    assert loop.run(1.0).mode is Mode.HOLDING
    rates = np.diff(np.array(loop.rows), axis=0) / PERIOD
    assert np.abs(rates).max() <= loop.machine.limits.velocity.max() + 1e-9
    assert np.abs(np.diff(rates, axis=0)).max() / PERIOD <= 60.0 + 1e-6


def test_it_holds_where_it_is_found_after_a_silence(loop: Loop) -> None:
    loop.run(0.2)
    last = loop.machine.time
    assert loop.follower.silent(last + 0.2).mode is Mode.STOPPED
    assert loop.follower.silent(last + 2.0).withhold_command
    shifted = np.asarray(loop.kinematics.inverse(loop.way(0.004, 0.004, 1.0).poses[1]).actuated)
    action = loop.follower.update(last + 2.1, last + 2.1, shifted, np.zeros(6))
    assert action.mode is Mode.HOLDING
    np.testing.assert_allclose(action.command, shifted, atol=1e-6)


def test_the_main_job_runs_on_a_loopback(light: Kinematics) -> None:
    limits = replace(ActuatorLimits.of(light.mechanism), acceleration=np.full(6, 100.0))
    controller = make_controller("position", Dynamics(light), limits, PERIOD)
    running = ControlLoop.of(make_machine(LOOPBACK, light, None), controller, 1.0 / PERIOD)
    planner = MotionPlanner(controller.dynamics, limits)
    job = plan_cycle(planner, motion_named(str(EXAMPLES / "hobby_hexapod_greeting.csv"), light))
    switch_on(running)
    run_motion(running, job.approach, recorded=False)
    recording = run_motion(running, job.cycle, cycles=2)
    assert not recording.faults
    assert recording.rows.efforts.max() == 0.0
    errors = np.linalg.norm(recording.rows.measured[:, :3] - recording.rows.reference[:, :3], axis=1)
    assert errors.max() < 1e-3
    turned = 2.0 * np.abs(recording.rows.measured[:, 3:6] - recording.rows.reference[:, 3:6])
    assert np.degrees(turned.max()) < 1.5


@pytest.mark.by_day("delta")
@pytest.mark.parametrize("rate", [100.0, 50.0])
@pytest.mark.parametrize("name", ["delta", "gough_stewart"])
def test_drives_that_are_commanded_positions_at_a_low_rate_follow_a_path(name: str, rate: float) -> None:
    """Taken as steps, such positions saturated the drives, which lost the platform.

    What is fed forward comes late by 1 / (300 rad/s): at 75 m/s^2, a lag of 0.25 m/s / (75 rad/s) = 3.3 mm and some.
    """
    mechanism = load_mechanism(name)
    plan = planned(mechanism, "auto", reserve_of_drives(rate))
    limits, dynamics = ActuatorLimits.of(mechanism), plan.planner.dynamics
    machine = SimulatedMachine(dynamics, limits, command_mode=CommandMode.POSITION)
    running = ControlLoop.of(machine, make_controller("position", dynamics, limits, 1.0 / rate), rate)
    switch_on(running)
    for trajectory in (plan.job.approach, plan.job.cycle):
        recording = run_motion(running, trajectory)
        assert not recording.faults
    errors = np.abs(recording.rows.measured - recording.rows.reference)[:, :6]
    assert np.linalg.norm(errors[:, :3], axis=1).max() < 0.006  # m
    assert 2.0 * np.linalg.norm(errors[:, 3:], axis=1).max() < 0.004  # rad
