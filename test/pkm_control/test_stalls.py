# SPDX-License-Identifier: Apache-2.0
"""Gaps between readings throw no robot, whether its machine goes on meanwhile or stands still."""

from __future__ import annotations

import numpy as np
import pytest

from bench.reckless import jogs
from pkm_control.loop.control_loop import ControlLoop, switch_on
from pkm_control.loop.followed_motion import Action, Motion, PathRun
from pkm_control.loop_settings import ControllerSettings, MachineSettings
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import MotionPoints, PointTrajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.robot_loop import build_follower, build_machine
from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Mechanism
from pkm_hardware.machine import MachineState
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_kinematics.solve.singularity import scaling
from pkm_runtime.errors import PkmError

ROBOTS = (
    "gough_stewart",
    pytest.param("delta", marks=pytest.mark.slow),
    pytest.param("quattro", marks=pytest.mark.slow),
    pytest.param("five_bar", marks=pytest.mark.slow),
)
WATCHDOG = 0.02  # s without a command after which brakes close, as in every run
_FAR = 0.2  # of the characteristic length: what the platform may be from its reference
_BACK = 20.0  # s, within which a platform is back on its path, at the speed of jogs, from as far as it was thrown


class Stalled:
    """A robot whose controller hears nothing for a while."""

    def __init__(self, name: str, seed: int, rate: float) -> None:
        self.robot = jogs.JoggedRobot(name, seed)
        self.random = np.random.default_rng(seed)
        self.rate = rate
        self.planner = MotionPlanner(self.robot.dynamics, self.robot.described)

    def begin(self) -> None:
        self.robot.begin(0)
        self.machine, self.follower = self.robot.machine, self.robot.follower
        self.machine.command_timeout = WATCHDOG
        self.aside = 0.0  # s, of the clock of arrivals from that of a machine that stood still
        self.fastest = self.farthest = 0.0
        self.modes: list[Mode] = []
        self.run(0.02)

    def note(self, action: Action) -> None:
        if not self.modes or self.modes[-1] is not action.mode:
            self.modes.append(action.mode)
        if not action.withhold_command:
            assert np.isfinite(action.command).all()
            assert (np.abs(action.command) <= self.robot.limits.effort * (1.0 + 1e-9)).all()
            self.machine.write(action.command)

    def step(self) -> None:
        self.machine.step(1.0 / self.rate)
        state = self.machine.read()
        assert not state.fault, state.fault
        self.fastest = float(np.maximum(self.fastest, (np.abs(state.velocities) / self.robot.limits.velocity).max()))

    def run(self, seconds: float) -> Action:
        for _ in range(round(seconds * self.rate)):
            state = self.machine.read()
            action = self.follower.update(state.time, state.time + self.aside, state.positions, state.velocities)
            if action.reference is not None:
                off = displacement_between(action.reference.pose, self.machine.pose) * scaling(self.robot.length)
                self.farthest = float(np.maximum(self.farthest, float(np.abs(off).max()) / self.robot.length))
            self.note(action)
            self.step()
        return action

    def gap(self, seconds: float, goes_on: bool, answered: bool) -> None:
        for k in range(round(seconds * self.rate)):
            if answered:  # by what is done without readings
                passed = 0.0 if goes_on else (k + 1) / self.rate
                self.note(self.follower.silent(self.machine.time + self.aside + passed))
            if goes_on:
                self.step()
        self.aside += 0.0 if goes_on else seconds

    def somewhere(self, speed: float = np.inf) -> Motion:
        while True:
            space = self.robot.draw._space
            way = space @ self.random.uniform(-0.8, 0.8, space.shape[1]) * self.robot.length
            try:
                plan = self.planner.between(self.robot.home, displace(self.robot.home, way), speed)
            except PkmError:
                continue
            trajectory = MotionPoints.of(plan).trajectory(self.robot.kinematics, self.follower.hold, 5e-3)
            if self.follower.check.refusal(trajectory):
                continue
            return Motion(trajectory, self.follower.time + 0.02, braking=self.follower.check.braking(trajectory))

    def under_way(self, share: float, speed: float = np.inf) -> Motion:
        """A motion from home, a share of which is over."""
        self.begin()
        motion = self.somewhere(speed)
        self.follower.follow(motion)
        self.run(0.02 + share * motion.trajectory.duration)
        return motion

    def twist(self) -> Array:
        space = self.robot.draw._space
        return np.asarray(space @ self.random.normal(size=space.shape[1]))


@pytest.mark.parametrize("rate", [250.0, pytest.param(1000.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_a_stall_throws_no_robot(name: str, rate: float, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each third of the trials has motions and rests, with and without an answer, that go on and that do not."""
    monkeypatch.setattr(jogs, "RATE", rate)
    stalled = Stalled(name, 3 + first, rate)
    for trial in range(first, 16, 3):
        what, goes_on, answered = ("motion", "jog", "motion", "hold")[trial % 4], trial % 8 < 4, trial < 8
        stalled.begin()
        motion = None
        if what == "motion":
            motion = stalled.somewhere()
            stalled.follower.follow(motion)
            stalled.run(0.02 + float(stalled.random.uniform(0.1, 0.9)) * motion.trajectory.duration)
        elif what == "jog":
            twist = stalled.twist()
            for _ in range(6):
                stalled.follower.steer(twist, stalled.machine.time + stalled.aside)
                stalled.run(0.1)
        seconds = float(stalled.random.uniform(0.02, 0.4))
        stalled.gap(seconds, goes_on, answered)
        allowed, stalled.fastest, stalled.modes = max(1.0, stalled.fastest), 0.0, []
        action = stalled.run(2.0)
        while stalled.follower.moving and stalled.machine.time < _BACK:
            action = stalled.run(0.5)
        case = trial, what, goes_on, answered, seconds, stalled.fastest, stalled.farthest, stalled.modes
        assert stalled.fastest <= jogs.OVER * allowed, case  # while nobody looks, efforts that are held may speed it up
        assert stalled.modes.count(Mode.JOGGING) <= 1, case
        if action.mode is Mode.STOPPED:  # its brakes stopped it where readings do not go on from the last ones
            assert goes_on, case
            assert action.withhold_command, case
            assert action.reason, case
            assert not stalled.machine.twist.any(), case
            continue
        assert stalled.farthest < _FAR, case
        assert action.mode is Mode.HOLDING, case
        assert Mode.STOPPED not in stalled.modes, case
        assert motion is None or motion.outcome is Outcome.SUCCESSFUL, (case, motion.reason)


def test_commands_that_come_late_throw_no_robot() -> None:
    """A forward controller passes commands on two to four periods after the reading; a motion uses nearly all efforts.

    The drives' limits cut the correction then: as a whole, or it would turn the platform.
    """
    rate, random = 250.0, np.random.default_rng(0)
    mechanism = load_mechanism("gough_stewart")
    loop = build_robot(mechanism, rate)
    switch_on(loop)
    planner = MotionPlanner(loop.dynamics, loop.limits)
    home = np.array(loop.kinematics.home)
    there = displace(home, np.array((-0.15, 0.0, 0.05, 0.0, 0.0, 0.0)))
    fastest, waiting = 0.0, []
    for k in range(6):
        ends = (home, there) if k % 2 == 0 else (there, home)
        trajectory = MotionPoints.of(planner.between(*ends)).trajectory(loop.kinematics, loop.follower.hold, 5e-3)
        motion = Motion(trajectory, loop.follower.time + 0.02, braking=loop.follower.check.braking(trajectory))
        loop.follower.follow(motion)
        while motion.outcome is None:
            state, machine = loop.machine.read(), loop.machine
            action = loop.follower.update(state.time, state.time, state.positions, state.velocities)
            assert not action.withhold_command, action.reason
            waiting.append((state.time + int(random.integers(2, 5)) / rate, action.command))
            due = [command for at, command in waiting if at <= state.time + 1e-9]
            waiting = [late for late in waiting if late[0] > state.time + 1e-9]
            if due:
                machine.write(due[-1])
            machine.step(1.0 / rate)
            fastest = float(np.maximum(fastest, (np.abs(state.velocities) / loop.limits.velocity).max()))
        assert motion.outcome is Outcome.SUCCESSFUL, motion.reason
        position, rotation = motion.largest
        assert position < 0.05 * loop.kinematics.characteristic_length
        assert rotation < 0.1
    assert fastest <= 1.0


def build_robot(mechanism: Mechanism, rate: float) -> ControlLoop:
    machine = build_machine(mechanism, MachineSettings(command_timeout=0.1))
    return ControlLoop(machine, build_follower(mechanism, ControllerSettings(rate=rate, delay=2.0)), rate)


def test_the_first_acceleration_of_a_motion_is_commanded_when_it_is_due() -> None:
    loop = build_robot(load_mechanism("gough_stewart"), 250.0)
    switch_on(loop)
    follower, home = loop.follower, np.array(loop.kinematics.home)
    times, poses = np.array((0.0, 0.1)), np.stack((home, displace(home, np.array((0.01, 0.0, 0.0, 0.0, 0.0, 0.0)))))
    twists = np.array(((0.0,) * 6, (0.2, 0.0, 0.0, 0.0, 0.0, 0.0)))
    accelerations = np.tile((2.0, 0.0, 0.0, 0.0, 0.0, 0.0), (2, 1))
    start = follower.time + 0.02
    follower.follow(Motion(PointTrajectory(times, poses, twists, accelerations), start))
    asked = []
    for _ in range(5):
        period = loop.period()
        reference = period.action.reference
        assert reference is not None
        np.testing.assert_allclose(reference.twist, 0.0, atol=1e-12)
        asked.append((period.state.time + follower.lead - start, reference.acceleration[0]))
    assert [at > 0.0 for at, _ in asked] == [acceleration > 1.9 for _, acceleration in asked]
    assert {at > 0.0 for at, _ in asked} == {False, True}


def test_a_platform_that_came_near_a_singularity_while_nobody_looked_is_not_driven() -> None:
    """The arms of a five-bar crossed in a stall: its platform may hang on the other side, and would be driven away."""
    stalled = Stalled("five_bar", 3, 250.0)
    stalled.begin()
    follower, still = stalled.follower, np.zeros(2)
    time = stalled.machine.time
    for k, arms in enumerate(([2.305, 0.839], [2.2, 0.95])):  # a leap far from singularities is held where it ends
        time += 0.2 * (k + 1)
        assert follower.update(time, time, np.array(arms), still).mode is Mode.HOLDING
    action = follower.update(time + 0.3, time + 0.3, np.array([1.404, 2.331]), still)
    assert action.mode is Mode.STOPPED
    assert action.withhold_command
    assert "another assembly mode" in action.reason


def test_a_few_readings_that_are_missing_leave_a_motion_on_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drives go on with the plan's efforts, also while it decelerates: gravity alone let the platform fly on."""
    monkeypatch.setattr(jogs, "RATE", 250.0)
    stalled = Stalled("five_bar", 3, 250.0)
    for share in (0.3, 0.5, 0.7):
        motion = stalled.under_way(share)
        stalled.farthest, stalled.modes = 0.0, []
        stalled.gap(0.008, goes_on=True, answered=True)
        stalled.run(motion.trajectory.duration + 0.1)
        assert Mode.JOGGING not in stalled.modes
        assert stalled.farthest < 2e-3
        assert motion.outcome is Outcome.SUCCESSFUL


def test_a_limb_that_was_stretched_through_while_nobody_looked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its other working mode the drives would turn the wrong way."""
    monkeypatch.setattr(jogs, "RATE", 250.0)
    stalled = Stalled("five_bar", 3, 250.0)
    stalled.begin()
    follower, k = stalled.follower, stalled.robot.kinematics
    time, other = stalled.machine.time + 0.5, k.inverse(stalled.robot.home, mode=1)
    assert other.ok
    action = follower.update(time, time, np.array(other.actuated), np.zeros(2))
    assert action.mode is Mode.STOPPED
    assert action.withhold_command
    assert "not in the working mode" in action.reason


def test_a_motion_goes_on_after_a_second_silence_on_the_way_back_to_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jogs, "RATE", 250.0)
    stalled = Stalled("delta", 3, 250.0)
    motion = stalled.under_way(0.3, speed=0.05)
    run = stalled.follower.run
    assert run is not None
    assert stalled.follower.pause() == ""
    stalled.run(2.0)
    for _ in range(4):
        stalled.follower.steer(np.array((0.0, 0.0, 0.2, 0.0, 0.0, 0.0)), stalled.machine.time + stalled.aside)
        stalled.run(0.1)
    stalled.run(1.0)
    assert stalled.follower.resume() == ""
    stalled.run(0.1)
    assert run.returning
    stalled.gap(0.15, goes_on=True, answered=True)
    stalled.run(1.0)
    while stalled.follower.moving and stalled.machine.time < _BACK:
        stalled.run(0.5)
    assert motion.outcome is Outcome.SUCCESSFUL


def test_a_platform_near_its_reference_is_not_looked_for_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servos lag by some tens of milliseconds: a reference that went back to them at each silence would jerk them."""
    monkeypatch.setattr(jogs, "RATE", 250.0)
    stalled, looked = Stalled("delta", 3, 250.0), []
    monkeypatch.setattr(PathRun, "find", lambda *_: looked.append(True))
    motion = stalled.under_way(0.4, speed=0.1)
    for _ in range(3):
        stalled.gap(0.028, goes_on=True, answered=True)
        stalled.run(0.1)
    stalled.run(motion.trajectory.duration)
    assert motion.outcome is Outcome.SUCCESSFUL
    assert not looked


def test_a_platform_on_its_way_back_is_not_looked_for_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jogs, "RATE", 250.0)
    stalled = Stalled("delta", 3, 250.0)
    stalled.under_way(0.5, speed=0.1)
    run, action = stalled.follower.run, stalled.run(0.01)
    assert run is not None
    run.leave()
    run.returning = True
    before = run.clock.time
    run.find(action.measured, 0.3, stalled.robot.length, 1.0)
    assert run.clock.time == before
    assert run.clock.at_rest


def loop_of(name: str, rate: float) -> ControlLoop:
    mechanism, control = load_mechanism(name), ControllerSettings(rate=rate)
    return ControlLoop(build_machine(mechanism, MachineSettings()), build_follower(mechanism, control), rate)


@pytest.mark.parametrize("name", ["gough_stewart", "five_bar"])
def test_the_loop_goes_on_by_the_plan_while_a_machine_tells_nothing_new(name: str) -> None:
    """The command of the last reading was repeated for ten periods, then gravity was held: both overran the goal."""
    loop = loop_of(name, 500.0)
    k, machine = loop.kinematics, loop.machine
    planner, home = MotionPlanner(loop.dynamics, loop.limits), np.array(k.home)
    goal = displace(home, np.array((0.6, 0.3, 0.0, 0.0, 0.0, 0.0)) * k.characteristic_length)
    for share in (0.2, 0.4, 0.6, 0.8):
        switch_on(loop)
        trajectory = MotionPoints.of(planner.between(home, goal)).trajectory(k, loop.follower.hold, 0.005)
        motion = Motion(trajectory, loop.follower.time + 0.01, braking=loop.follower.check.braking(trajectory))
        loop.follower.follow(motion)
        for _ in range(round((0.01 + share * trajectory.duration) * loop.rate)):
            loop.period()
        known, read = machine.read(), machine.read
        machine.read = lambda known=known: known  # type: ignore[method-assign]
        for _ in range(15):  # 0.03 s
            loop.period()
        machine.read = read  # type: ignore[method-assign]
        off = loop.period().action
        assert off.mode in (Mode.TRACKING, Mode.HOLDING), (share, off.reason)
        assert np.linalg.norm(off.reference.pose[:3] - off.measured.pose[:3]) < 1e-3 * k.characteristic_length
        while motion.outcome is None:
            loop.period()
        assert motion.outcome is Outcome.SUCCESSFUL, (share, motion.reason)
        loop.disable()
        loop.configure()


def test_late_readings_do_not_shift_a_motion() -> None:
    """Every fourth period has one, up to 3 ms late: the clock of the motion is that of the readings."""
    loop, random = loop_of("delta", 1000.0), np.random.default_rng(2)
    switch_on(loop)
    k, machine = loop.kinematics, loop.machine
    goal = displace(np.array(k.home), np.array((0.5, 0.2, 0.0, 0.0, 0.0, 0.0)) * k.characteristic_length)
    plan = MotionPlanner(loop.dynamics, loop.limits).between(np.array(k.home), goal, 0.1)
    trajectory = MotionPoints.of(plan).trajectory(k, loop.follower.hold, 0.005)
    motion = Motion(trajectory, loop.follower.time + 0.01, braking=loop.follower.check.braking(trajectory))
    loop.follower.follow(motion)
    read, known, waiting, periods = machine.read, [machine.read()], [], 0

    def late() -> MachineState:
        nonlocal periods
        if periods % 4 == 0:
            waiting.append((periods + int(random.integers(0, 4)), read()))
        while waiting and waiting[0][0] <= periods:
            known[0] = waiting.pop(0)[1]
        periods += 1
        return known[0]

    machine.read = late  # type: ignore[method-assign]
    while motion.outcome is None:
        loop.period()
        if loop.follower.run is not None:
            assert 0.0 <= machine.time - motion.start - loop.follower.run.clock.time < 0.009
    assert motion.outcome is Outcome.SUCCESSFUL
    assert motion.rms[0] < 2e-5  # m
