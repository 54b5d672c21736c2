# SPDX-License-Identifier: Apache-2.0
"""Holding, following, and what happens when readings stop, without ROS."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.loop.followed_motion import Action, Motion, Tolerances
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.follower_watches import MachineWatch
from pkm_control.loop.guard import EffortGuard
from pkm_control.motion.path_clock import Braking
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError

PERIOD = 1e-3


@pytest.fixture(scope="module")
def library() -> tuple[Kinematics, Dynamics, ActuatorLimits]:
    mechanism = load_mechanism("delta")
    kinematics = Kinematics(mechanism)
    return kinematics, Dynamics(kinematics), ActuatorLimits.of(mechanism)


class Loop:
    """A follower and the machine it drives."""

    def __init__(self, library: tuple[Kinematics, Dynamics, ActuatorLimits]) -> None:
        self.kinematics, self.dynamics, limits = library
        self.gravity = lambda pose: np.asarray(self.dynamics.gravity(pose).effort)
        guard = EffortGuard(limits.effort, 5 * PERIOD, "gravity", self.gravity, 0.1)
        controller = ComputedTorque(self.dynamics, limits)
        self.follower = TrajectoryFollower(self.kinematics, controller, guard, 0.5 * PERIOD, 0.2)
        self.machine = SimulatedMachine(self.dynamics, limits)
        self.machine.configure()
        self.machine.activate()

    def run(self, periods: int) -> Action:
        for _ in range(periods):
            state = self.machine.read()
            action = self.follower.update(state.time, state.time, state.positions, state.velocities)
            self.machine.write(action.command)
            self.machine.step(PERIOD)
        return action

    def ahead(self, x: float, y: float = 0.0, z: float = 0.0, seconds: float = 0.2) -> PointTrajectory:
        """A motion from home to home + (x, y, z), from rest to rest."""
        home = np.array(self.kinematics.home)
        end = home.copy()
        end[:3] += x, y, z
        return PointTrajectory(np.array([0.0, seconds]), np.array([home, end]), np.zeros((2, 6)), np.zeros((2, 6)))


@pytest.fixture
def loop(library: tuple[Kinematics, Dynamics, ActuatorLimits]) -> Loop:
    return Loop(library)


def test_waits_without_efforts_until_a_reading_comes(loop: Loop) -> None:
    action = loop.follower.silent(10.0)
    assert action.mode is Mode.WAITING
    assert not action.command.any()


def test_holds_where_it_is_found(loop: Loop) -> None:
    action = loop.run(200)
    assert action.mode is Mode.HOLDING
    assert np.linalg.norm(loop.machine.pose[:3] - loop.kinematics.home[:3]) < 1e-6


def test_follows_a_motion_to_its_end(loop: Loop) -> None:
    loop.run(5)
    motion = Motion(loop.ahead(0.05, 0.0, 0.02), loop.machine.time, Tolerances(goal_position=1e-4, goal_time=0.1))
    loop.follower.follow(motion)
    assert loop.run(50).mode is Mode.TRACKING
    loop.run(250)
    assert motion.outcome is Outcome.SUCCESSFUL
    assert 0.0 < motion.rms[0] < motion.largest[0] < 1e-3
    np.testing.assert_allclose(loop.machine.pose[:3], np.add(loop.kinematics.home[:3], [0.05, 0.0, 0.02]), atol=1e-4)


def test_a_new_motion_takes_over(loop: Loop) -> None:
    loop.run(5)
    first = Motion(loop.ahead(0.05), loop.machine.time)
    loop.follower.follow(first)
    loop.run(2)
    loop.follower.follow(Motion(loop.ahead(0.0, 0.01), loop.machine.time))
    assert first.outcome is Outcome.PREEMPTED


def test_leaving_the_path_ends_the_motion(loop: Loop) -> None:
    loop.run(5)
    motion = Motion(loop.ahead(0.3, seconds=0.05), loop.machine.time, Tolerances(path_position=0.001))
    loop.follower.follow(motion)
    loop.run(100)
    assert motion.outcome is Outcome.PATH_TOLERANCE_VIOLATED
    assert "mm from the path" in motion.reason


def test_silence_holds_gravity_then_lets_go(loop: Loop) -> None:
    loop.run(20)
    motion = Motion(loop.ahead(0.05, seconds=1.0), loop.machine.time)
    loop.follower.follow(motion)
    loop.run(20)
    last, heard = loop.machine.pose.copy(), loop.machine.time - PERIOD
    update_soon = loop.follower.silent(heard + 6 * PERIOD)
    assert update_soon.mode is Mode.STOPPED
    np.testing.assert_allclose(
        update_soon.command, loop.gravity(last), atol=1.0
    )  # and what friction does not do of braking
    assert motion.outcome is None  # a short silence does not end it
    later = loop.follower.silent(heard + 0.15)
    assert not later.command.any()
    loop.follower.silent(heard + 0.25)
    assert motion.outcome is Outcome.STATE_LOST
    assert "old" in motion.reason


def test_readings_that_come_back_are_held_where_found(loop: Loop) -> None:
    loop.run(20)
    loop.follower.silent(loop.machine.time + 1.0)
    moved = np.array(loop.kinematics.home)
    moved[:3] += 0.01, 0.0, 0.0
    q = loop.kinematics.inverse(moved).actuated
    action = loop.follower.update(5.0, 5.0, q, np.zeros(3))
    assert action.mode is Mode.HOLDING
    assert action.reference is not None
    np.testing.assert_allclose(action.reference.pose, moved, atol=1e-8)


def test_a_platform_that_was_moved_in_a_short_silence_is_held_where_found(loop: Loop) -> None:
    loop.run(20)
    moved = np.array(loop.kinematics.home)
    moved[:3] += 0.0, 0.0, 0.25 * loop.kinematics.characteristic_length
    now = loop.machine.time + 0.15  # less than loses a motion
    action = loop.follower.update(now, now, loop.kinematics.inverse(moved).actuated, np.zeros(3))
    assert action.mode is Mode.HOLDING
    np.testing.assert_allclose(action.reference.pose, moved, atol=1e-8)


def test_a_paused_motion_says_why_it_does_not_go_on(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> None:
        raise PkmError("there is no way back")

    loop.run(20)
    motion = Motion(loop.ahead(0.02, seconds=1.0), loop.machine.time)
    loop.follower.follow(motion)
    loop.run(100)
    moved = np.array(loop.kinematics.home)
    moved[:3] += 0.0, 0.0, 0.25 * loop.kinematics.characteristic_length
    monkeypatch.setattr(loop.follower.jog, "go_to", nowhere)
    now, there = loop.machine.time + 0.15, loop.kinematics.inverse(moved).actuated
    for k in range(500):
        action = loop.follower.update(now + k * PERIOD, now + k * PERIOD, there, np.zeros(3))
    assert action.mode is Mode.PAUSED
    assert action.reason == "there is no way back"


def test_a_reading_that_is_not_finite_is_silence(loop: Loop) -> None:
    loop.run(5)
    action = loop.follower.update(1.0, loop.machine.time, np.array([0.0, np.nan, 0.0]), np.zeros(3))
    assert action.mode is Mode.STOPPED
    assert "finite" in action.reason
    assert np.isfinite(action.command).all()


def test_readings_that_jump_are_not_followed(loop: Loop) -> None:
    """As those of a second machine, or of an encoder that loses itself, between those of this one."""
    loop.run(20)
    motion = Motion(loop.ahead(0.05, seconds=0.2), loop.machine.time)
    loop.follower.follow(motion)
    for _ in range(100):
        loop.run(1)
        false = loop.follower.update(
            loop.machine.time, loop.machine.time, loop.machine.read().positions + 0.7, np.zeros(3)
        )
        state = loop.machine.read()
        true = loop.follower.update(state.time, state.time, state.positions, state.velocities)
        if false.reference.twist.any():  # no motion begins by them
            np.testing.assert_allclose(false.command, true.command, atol=0.1)  # N m, of 15: the plan goes on
    loop.run(200)
    assert motion.outcome is Outcome.SUCCESSFUL
    assert motion.largest[0] < 1e-3


def test_where_all_readings_have_jumped_the_platform_is_held_there(loop: Loop) -> None:
    loop.run(20)
    motion = Motion(loop.ahead(0.05, seconds=1.0), loop.machine.time)
    loop.follower.follow(motion)
    loop.run(20)
    state, modes = loop.machine.read(), []
    for k in range(100):
        now = state.time + k * PERIOD
        action = loop.follower.update(now, now, state.positions + 0.6, np.zeros(3))
        modes.append(action.mode)
    assert Mode.STOPPED in modes
    assert modes[-1] is Mode.HOLDING
    assert motion.outcome is Outcome.STATE_LOST
    assert "jumps by 0.6 rad" in motion.reason
    there = loop.kinematics.forward(state.positions + 0.6).pose
    np.testing.assert_allclose(action.reference.pose, there, atol=1e-6)


def test_a_platform_that_strays_is_let_go_until_it_is_recovered(loop: Loop) -> None:
    """Somebody else's efforts move it, and ours grow against them."""
    loop.run(20)
    for _ in range(400):
        state = loop.machine.read()
        action = loop.follower.update(state.time, state.time, state.positions, state.velocities)
        if action.withhold_command:
            break
        loop.machine.write(np.full(3, 60.0))
        loop.machine.step(PERIOD)
    assert action.withhold_command
    assert action.mode is Mode.STOPPED
    assert "mm from where it should be" in action.reason
    error = np.linalg.norm(loop.machine.pose[:3] - np.array(loop.kinematics.home)[:3])
    assert 0.2 * loop.kinematics.characteristic_length < error < 0.3 * loop.kinematics.characteristic_length
    state = loop.machine.read()
    again = loop.follower.update(state.time + PERIOD, state.time + PERIOD, state.positions, state.velocities)
    assert again.withhold_command  # and so until somebody says that it may be held again
    loop.follower.stray.reset()
    found = loop.follower.update(state.time + 2 * PERIOD, state.time + 2 * PERIOD, state.positions, state.velocities)
    assert found.mode is Mode.JOGGING  # it is brought to rest from where it is found, as it moves there
    np.testing.assert_allclose(found.reference.pose, loop.machine.pose, atol=1e-6)
    np.testing.assert_allclose(found.reference.twist, loop.machine.twist, atol=1e-6)


def test_a_reading_from_far_ahead_does_not_end_a_motion(loop: Loop) -> None:
    loop.run(5)
    motion = Motion(loop.ahead(0.05, seconds=0.5), loop.machine.time)
    loop.follower.follow(motion)
    loop.run(50)
    now, state = loop.machine.time, loop.machine.read()
    for ahead in (1e6, 1e6 + PERIOD, 0.0):  # the clock of the readings jumps, and comes back
        action = loop.follower.update(now + ahead, now, state.positions, state.velocities)
        assert action.mode is Mode.TRACKING
        now += PERIOD
    assert motion.outcome is None
    loop.run(480)
    assert motion.outcome is Outcome.SUCCESSFUL
    assert motion.largest[0] < 2e-3


def test_a_reference_out_of_reach_is_not_held(loop: Loop) -> None:
    loop.run(5)
    motion = Motion(loop.ahead(0.0, 0.0, -5.0, seconds=2.0), loop.machine.time)
    loop.follower.follow(motion)  # nobody has checked it
    modes = []
    for _ in range(1500):
        state = loop.machine.read()
        action = loop.follower.update(state.time, state.time, state.positions, state.velocities)
        modes.append(action.mode)
        loop.machine.write(action.command)
        loop.machine.step(PERIOD)
        if motion.outcome is not None and len(modes) > 1400:
            break
    assert motion.outcome is not None
    held = action.reference.pose
    assert np.isfinite(loop.kinematics.inverse(held).actuated).all()


def test_pause_halts_on_the_path_and_resume_goes_on(loop: Loop) -> None:
    loop.run(5)
    trajectory = loop.ahead(0.1, 0.05, 0.03, seconds=0.6)
    motion = Motion(trajectory, loop.machine.time, braking=Braking.steady(4.0))
    loop.follower.follow(motion)
    loop.run(200)
    assert loop.follower.pause() == ""
    assert loop.run(20).mode is Mode.TRACKING  # it slows down first
    action = loop.run(500)
    assert action.mode is Mode.PAUSED
    assert action.speed == 0.0
    stood = action.reference
    assert not stood.twist.any()
    assert not stood.acceleration.any()
    on_path = min(np.abs(trajectory.at(t).pose - stood.pose).max() for t in np.linspace(0.0, 0.6, 6001))
    assert on_path < 1e-4
    np.testing.assert_array_equal(loop.run(300).reference.pose, stood.pose)
    assert loop.follower.resume() == ""
    loop.run(900)
    assert motion.outcome is Outcome.SUCCESSFUL
    assert motion.largest[0] < 1e-3
    assert loop.follower.controller.saturations.sum() == 0


def test_stop_decelerates_on_the_path_and_holds(loop: Loop) -> None:
    loop.run(5)
    motion = Motion(loop.ahead(0.1, seconds=0.6), loop.machine.time, braking=Braking.steady(4.0))
    loop.follower.follow(motion)
    loop.run(300)
    fast = loop.run(1).reference.twist[0]
    assert fast > 0.2
    assert loop.follower.stop("the operator says so") == ""
    speeds = [loop.run(1).reference.twist[0] for _ in range(600)]
    assert motion.outcome is Outcome.PREEMPTED
    assert motion.reason == "the operator says so"
    assert loop.follower.mode is Mode.HOLDING
    assert speeds[-1] == 0.0
    assert np.abs(np.diff([fast, *speeds])).max() < 0.01  # no jump of the velocity: 10 m/s^2
    assert loop.follower.stop() == "nothing moves"


def test_speed_override_slows_down_and_refuses_nonsense(loop: Loop) -> None:
    assert loop.follower.set_override(0.5) == ""
    loop.run(5)
    motion = Motion(loop.ahead(0.05, seconds=0.3), loop.machine.time)
    loop.follower.follow(motion)
    for nonsense in (-0.1, 1.1, np.nan, np.inf):
        assert loop.follower.set_override(nonsense) != ""
    assert loop.follower.override == 0.5
    assert loop.run(550).mode is Mode.TRACKING
    assert loop.run(1).speed == 0.5
    loop.run(100)
    assert motion.outcome is Outcome.SUCCESSFUL


def test_a_stick_that_is_held_over_a_stop_moves_nothing_until_it_was_let_go(loop: Loop) -> None:
    loop.run(5)
    twist, period = np.array((0.0, 0.1, 0.0, 0.0, 0.0, 0.0)), 50

    def hold(times: int) -> list[str]:
        said = []
        for _ in range(times):
            said.append(loop.follower.steer(twist, loop.machine.time))
            loop.run(period)
        return said

    assert set(hold(10)) == {""}
    loop.follower.stop()
    loop.run(1500)
    assert loop.run(1).mode is Mode.HOLDING
    assert hold(3)[0] == ""  # the stick was let go for longer than a twist holds
    loop.follower.stop()
    assert all("let go" in one for one in hold(20))
    assert loop.run(1).mode is Mode.HOLDING
    assert loop.follower.steer(np.zeros(6), loop.machine.time) == ""
    assert set(hold(3)) == {""}
    assert loop.run(1).mode is Mode.JOGGING


def test_a_jog_waits_for_a_pause_and_resume_comes_back_to_the_path(loop: Loop) -> None:
    loop.run(5)
    motion = Motion(loop.ahead(0.1, seconds=1.0), loop.machine.time)
    loop.follower.follow(motion)
    loop.run(300)
    twist = np.array((0.0, 0.1, 0.0, 0.0, 0.0, 0.0))
    assert "pause or stop" in loop.follower.steer(twist, loop.machine.time)
    loop.follower.pause()
    loop.run(900)
    stood = loop.run(1).reference.pose
    assert loop.follower.steer(twist, loop.machine.time) == ""
    assert loop.run(100).mode is Mode.JOGGING
    assert "jogged" in loop.follower.resume()
    action = loop.run(900)
    assert action.mode is Mode.PAUSED
    assert action.reference.pose[1] > stood[1] + 0.005
    assert loop.follower.resume() == ""
    loop.run(5000)
    assert motion.outcome is Outcome.SUCCESSFUL
    assert motion.largest[0] < 1e-3


def test_nothing_moves_while_the_machine_says_that_its_drives_do_not_follow(loop: Loop) -> None:
    loop.run(5)
    motion = Motion(loop.ahead(0.05), loop.machine.time, Tolerances())
    loop.follower.follow(motion)
    loop.run(20)
    loop.follower.machine.hear("inactive")
    action = loop.run(1)
    assert action.mode is Mode.WAITING
    assert "inactive" in action.reason
    assert motion.outcome is Outcome.STATE_LOST
    assert "waiting" in loop.follower.steer(np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0]), loop.machine.time)
    assert action.command.any()  # a machine may open its brakes with the first command, which must carry the platform
    loop.follower.machine.hear("active")
    loop.run(600)
    assert loop.follower.mode is Mode.HOLDING


def test_a_machine_that_comes_back_is_waited_for_until_it_says_how_it_is() -> None:
    watch = MachineWatch()
    assert not watch.problem(0.0)  # one that never says anything, as those of others
    watch.forget(0.0)
    assert not watch.problem(0.0)
    watch.hear("active")
    assert not watch.problem(1.0)
    watch.forget(1.0)
    assert watch.problem(1.5)
    watch.hear("inactive")
    assert "inactive" in watch.problem(100.0)
    watch.hear("active")
    assert not watch.problem(100.0)
    watch.forget(200.0)
    assert not watch.problem(210.0)  # another machine came, which says nothing
    silent = MachineWatch()
    silent.expect(0.0)  # it says how it is, but its readings came first
    assert silent.problem(0.5)
    assert not silent.problem(3.0)
