# SPDX-License-Identifier: Apache-2.0
"""Into another working mode and back, in closed loop with the simulated machine; and what is refused, and why."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from bench.reckless.seen_follower import planned_change, seen
from pkm_control.loop.followed_motion import Motion, Tolerances
from pkm_control.loop.follower import HALTED
from pkm_control.loop.mode_transition import ModeTransitionError, ModeTransitions
from pkm_control.loop.operator import RecoveryError, recovery_pose
from pkm_control.loop.requests import continue_change
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.operator_interface import Mode, Outcome
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.simulated_machine import realistic_machine
from pkm_kinematics.forward.tracker import AssemblyModeTracker
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_runtime.errors import PkmError

PERIOD = 4e-3  # s

TURNED = np.array([0.14, -0.01, 0.0, 0.0, 0.0, 0.75])  # of planar_3rrr, from home


def moved_to(robot, pose: np.ndarray) -> None:
    assert robot.follower.jog_to(pose) == ""
    until_it_holds(robot)
    assert np.abs(displacement_between(robot.machine.pose, pose)).max() < 1e-3


def until_it_holds(robot, most: float = 60.0) -> None:
    for _ in range(round(most / PERIOD)):
        if robot.run(PERIOD).mode is Mode.HOLDING and robot.follower.change is None:
            return
    raise AssertionError(f"after {most} s it is {robot.follower.mode}: {robot.actions[-1].reason}")


def changed_to(robot, label: str) -> None:
    """Change the working mode, and assert that the machine then stands where it stood, in that mode."""
    stood = robot.follower.hold.copy()
    change = planned_change(robot.follower, label)
    assert change is not None
    assert robot.follower.begin_change(change) == ""
    assert robot.follower.moving
    assert robot.run(PERIOD).mode is Mode.TRACKING
    until_it_holds(robot)
    k = robot.kinematics
    assert k.mode_label(robot.follower.check.mode) == label
    robot.run(0.5)
    assert np.abs(displacement_between(robot.machine.pose, stood)).max() < 1e-3
    there = k.inverse(stood, mode=robot.follower.check.mode)
    np.testing.assert_allclose(robot.machine.read().positions, there.actuated, atol=1e-3)


def followed(robot, *by: float) -> None:
    """A motion there and back, judged in the present working mode, and followed."""
    here = robot.follower.hold.copy()
    trajectory = robot.way(here, displace(here, np.array(by)), here)
    assert robot.follower.check.refusal(trajectory) == ""
    motion = Motion(trajectory, robot.machine.time, Tolerances(1e-3, 5e-3, 1e-3, 5e-3, 0.5))
    robot.follower.follow(motion)
    robot.run(3.0)
    assert motion.outcome is Outcome.SUCCESSFUL, motion.reason
    assert motion.samples > 200


@pytest.mark.parametrize("label", ["-+", pytest.param("+-", marks=pytest.mark.slow)])
def test_a_five_bar_changes_its_mode_moves_in_it_and_comes_back(steered, label: str) -> None:
    robot = steered("five_bar")
    robot.run(2 * PERIOD)
    changed_to(robot, label)
    followed(robot, 0.03, 0.02, 0.0, 0.0, 0.0, 0.0)
    changed_to(robot, "++")
    followed(robot, 0.03, 0.02, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.slow
def test_a_planar_3rrr_changes_its_mode_where_it_can(steered) -> None:
    robot = steered("planar_3rrr")
    robot.run(2 * PERIOD)
    moved_to(robot, displace(np.array(robot.kinematics.home), TURNED))
    changed_to(robot, "+-+")
    followed(robot, 0.02, 0.01, 0.0, 0.0, 0.0, 0.05)
    changed_to(robot, "+++")


@pytest.mark.slow
def test_a_hexaglide_changes_two_limbs_at_once(steered) -> None:
    robot = steered("hexaglide")
    robot.run(2 * PERIOD)
    changed_to(robot, "--++++")
    followed(robot, 0.0, 0.0, 0.01, 0.0, 0.02, 0.0)
    changed_to(robot, "++++++")


def test_whoever_tracks_the_readings_follows_and_names_the_modes(steered) -> None:
    robot = steered("five_bar")
    robot.run(2 * PERIOD)
    tracker = AssemblyModeTracker(robot.kinematics)
    assert robot.follower.begin_change(planned_change(robot.follower, "-+")) == ""
    modes, lost = [], 0
    while robot.follower.change is not None:
        robot.run(PERIOD)
        state = robot.machine.read()
        found = tracker.observe(state.positions, state.velocities)
        lost += not tracker.tracking
        if tracker.tracking:
            assert np.abs(displacement_between(found.pose, robot.machine.pose)).max() < 1e-6
            modes.append(tracker.modes.working)
    assert lost <= 2  # periods, in the singularity itself
    assert modes[0] == "++"
    assert modes[-1] == "-+"
    assert sum(a != b for a, b in itertools.pairwise(modes)) == 1


@pytest.mark.slow
def test_a_stop_holds_it_on_the_way_and_it_goes_on_or_back(steered) -> None:
    robot = steered("five_bar")
    robot.run(2 * PERIOD)
    follower = robot.follower
    assert follower.begin_change(planned_change(follower, "-+")) == ""
    while follower.change.progress < 0.5:
        robot.run(PERIOD)
    assert follower.stop() == ""
    robot.run(2.0)
    assert follower.mode is Mode.PAUSED
    assert follower.paused
    assert not follower.moving
    stood = robot.machine.read().positions
    robot.run(1.0)
    np.testing.assert_allclose(robot.machine.read().positions, stood, atol=1e-4)
    assert follower.jog_to(follower.hold) == HALTED
    assert "change the working mode to -+ to go on, or to ++ to go back" in robot.actions[-1].reason
    with pytest.raises(RecoveryError, match="was halted"):
        recovery_pose(seen(follower))
    loop = SimpleNamespace(follower=follower)
    assert "between" in continue_change(loop, "+-")
    assert continue_change(loop, "++") == ""
    until_it_holds(robot)
    assert follower.check.mode == 0
    robot.run(0.3)
    assert np.abs(displacement_between(robot.machine.pose, np.array(robot.kinematics.home))).max() < 1e-3
    followed(robot, 0.03, 0.02, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.slow
def test_a_robot_that_strays_is_held_and_comes_back_to_its_way(steered) -> None:
    robot = steered("five_bar")
    robot.run(2 * PERIOD)
    follower, machine = robot.follower, robot.machine
    assert follower.begin_change(planned_change(follower, "-+")) == ""
    while follower.change.progress < 0.3:
        robot.run(PERIOD)
    for _ in range(40):  # somebody pushes an arm
        state = machine.read()
        follower.update(state.time, state.time, state.positions, state.velocities)
        machine.write(np.array([0.2 * machine.limits.effort[0], 0.0]))
        machine.step(PERIOD)
    robot.run(1.0)
    assert follower.mode is Mode.PAUSED
    assert "from its place" in robot.actions[-1].reason
    assert follower.resume() == ""
    until_it_holds(robot)
    assert follower.check.kinematics.mode_label(follower.check.mode) == "-+"
    robot.run(0.3)
    assert np.abs(displacement_between(machine.pose, np.array(robot.kinematics.home))).max() < 1e-3


def test_a_reading_that_jumps_on_the_way_repeats_the_last_command(steered) -> None:
    robot = steered("five_bar")
    robot.run(2 * PERIOD)
    follower = robot.follower
    assert follower.begin_change(planned_change(follower, "-+")) == ""
    while follower.change.progress < 0.5:
        before = robot.run(PERIOD)
    state = robot.machine.read()
    jumped = follower.update(state.time, state.time, state.positions + np.array((1.0, 0.0)), state.velocities)
    assert jumped.mode is Mode.TRACKING
    np.testing.assert_array_equal(jumped.command, before.command)
    assert before.command.any()


@pytest.mark.slow
def test_silent_readings_halt_it_under_its_weight(steered) -> None:
    robot = steered("planar_3rrr")
    robot.run(2 * PERIOD)
    moved_to(robot, displace(np.array(robot.kinematics.home), TURNED))
    follower = robot.follower
    assert follower.begin_change(planned_change(follower, "+-+")) == ""
    while follower.change.progress < 0.5:
        robot.run(PERIOD)
    now = robot.machine.time
    silent = follower.silent(now + 6 * PERIOD)
    assert silent.mode is Mode.STOPPED
    np.testing.assert_allclose(silent.command, follower.change.weight())
    assert np.abs(silent.command).max() > 0.1
    assert not follower.silent(now + 2.0).command.any()
    robot.run(1.5)
    assert follower.mode is Mode.PAUSED
    assert follower.resume() == ""
    until_it_holds(robot)
    assert robot.kinematics.mode_label(follower.check.mode) == "+-+"


@pytest.mark.parametrize(
    ("name", "label", "reason"),
    [
        ("five_bar", "--", "other side of the type 2"),
        ("delta", "-++", "limb1_arm"),
        ("planar_3rrr", "--+", "type 2"),
        ("gough_stewart", "-", "there is no working mode '-': the robot has only one$"),
        ("tripod_3prs", "-++", "motion space depends"),
    ],
)
def test_what_cannot_be_is_refused_with_the_true_reason(steered, name: str, label: str, reason: str) -> None:
    robot = steered(name)
    robot.run(2 * PERIOD)
    with pytest.raises(PkmError, match=reason):
        planned_change(robot.follower, label)
    assert robot.run(PERIOD).mode is Mode.HOLDING


def test_a_way_whose_joints_range_forbids_it_is_refused(steered) -> None:
    robot = steered("planar_3rrr")
    robot.run(2 * PERIOD)
    with pytest.raises(ModeTransitionError, match="limb3_elbow"):
        planned_change(robot.follower, "+--")


def test_the_way_keeps_to_the_weaker_side_of_a_drive(of_gallery) -> None:
    text, home = of_gallery["five_bar"].dynamics.mechanism.urdf, np.asarray(of_gallery["five_bar"].kinematics.home)
    durations = []
    for least, most in ((-30.0, 30.0), (-30.0, 0.1), (-0.1, 30.0)):  # friction takes 0.1 N m
        bounds = f'<command_interface name="effort"><param name="min">{least}</param><param name="max">{most}</param>'
        uneven = text.replace('<command_interface name="effort"/>', f"{bounds}</command_interface>")
        dynamics = Dynamics(load_mechanism(uneven))
        ways = ModeTransitions(CurveCheck(dynamics, ActuatorLimits.of(dynamics.mechanism)))
        mode = next(mode for mode in range(4) if dynamics.kinematics.mode_label(mode) == "-+")
        if least == -0.1:
            with pytest.raises(ModeTransitionError, match="efforts are not sufficient on the path"):
                ways.find(home, mode)
        else:
            durations.append(ways.find(home, mode).duration)
    assert durations[1] > 1.2 * durations[0]


def test_a_follower_that_begins_in_another_mode_is_stopped_and_says_so(steered) -> None:
    """As after the restart of a controller: its efforts would be those of home's mode."""
    robot, anew = steered("five_bar"), steered("five_bar").follower
    robot.run(2 * PERIOD)
    changed_to(robot, "-+")
    state = robot.machine.read()
    action = anew.update(state.time, state.time, state.positions, state.velocities)
    assert action.mode is Mode.STOPPED
    assert "working mode" in action.reason
    assert action.withhold_command
    assert not action.command.any()


@pytest.mark.slow
def test_a_machine_that_is_not_as_described_changes_too(steered) -> None:
    """Encoders with steps and noise, commands that act late, links heavier than the controller believes."""
    robot = steered("five_bar")
    robot.machine = realistic_machine(robot.kinematics.mechanism)
    robot.machine.configure()
    robot.machine.activate()
    robot.follower.lead += PERIOD
    robot.run(2 * PERIOD)
    while robot.run(PERIOD).mode is not Mode.HOLDING:  # noise looks like motion, which is brought to rest
        assert len(robot.actions) < 1.0 / PERIOD
    tracker, lost = AssemblyModeTracker(robot.kinematics), 0
    assert robot.follower.begin_change(planned_change(robot.follower, "+-")) == ""
    while robot.follower.change is not None:
        assert robot.run(PERIOD).mode is Mode.TRACKING
        state = robot.machine.read()
        tracker.observe(state.positions, state.velocities)
        lost += not tracker.tracking
    robot.run(0.5)
    assert lost <= 2
    assert tracker.modes.working == "+-"
    assert np.abs(displacement_between(robot.machine.pose, np.array(robot.kinematics.home))).max() < 1e-3
    followed(robot, 0.03, 0.02, 0.0, 0.0, 0.0, 0.0)
