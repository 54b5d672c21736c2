# SPDX-License-Identifier: Apache-2.0
"""What ends a change of the working mode: an emergency stop, a fault, drives turned off, a stop. And how it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from bench.reckless.seen_follower import planned_change, seen
from pkm_control.control_errors import GoalError
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.loop import requests
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop.follower import HALTED
from pkm_control.loop.follower_watches import MachineWatch
from pkm_control.loop.operator import RecoveryError, plan_change, recovery_pose
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import NO_FAULT
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics

RATE = 250.0  # Hz
BACK_OR_ON = "change the working mode to -+ to go on, or to ++ to go back"


@pytest.fixture(scope="module")
def dynamics() -> Dynamics:
    return Dynamics(Kinematics(load_mechanism("five_bar")))


@pytest.fixture
def loop(dynamics: Dynamics) -> ControlLoop:
    limits = ActuatorLimits.of(dynamics.kinematics.mechanism)
    controller = ComputedTorque(dynamics, limits, natural_frequency=40.0)
    loop = ControlLoop.of(SimulatedMachine(dynamics, limits), controller, RATE)
    assert loop.configure() == ""
    assert loop.enable() == ""
    run(loop, 0.05)
    return loop


def run(loop: ControlLoop, seconds: float) -> None:
    for _ in range(max(1, round(seconds * RATE))):
        loop.period()


def change_until(loop: ControlLoop, share: float) -> None:
    assert loop.follower.begin_change(planned_change(loop.follower, "-+")) == ""
    while loop.follower.change.progress < share:
        run(loop, 1.0 / RATE)


def until_it_holds(loop: ControlLoop) -> None:
    for _ in range(30):
        run(loop, 1.0)
        if loop.follower.change is None and loop.follower.mode is Mode.HOLDING:
            return
    raise AssertionError(loop.last.action.reason)


def drives_fail(loop: ControlLoop) -> None:
    loop.machine.emergency_stop("left_arm is too hot")  # as a driver does it, without a word to the loop


ENDS: dict[str, Callable[[ControlLoop], object]] = {
    "emergency stop": requests.emergency_stop,
    "fault": drives_fail,
    "drives off": requests.disable,
    "stop": requests.stop,
}


@pytest.mark.parametrize("kick", [(1.04, 0.0), (0.968, -1.04)])
def test_an_arm_that_is_kicked_is_held_by_the_brakes_until_it_rests(loop: ControlLoop, kick: tuple[float, ...]) -> None:
    """By the machine's own state; the law alone pushed the second one on by four radians, to four times its speed."""
    machine = loop.machine
    machine.command_timeout = 5.0 / RATE
    change_until(loop, 0.75)
    push = machine._mass() @ (np.array(kick) * machine.limits.velocity)
    machine._robot.advance(push / 1e-6, 1e-6)
    run(loop, 1.0 / RATE)
    assert loop.last.action.withhold_command
    assert "of its largest speed on the way to the other working mode" in loop.last.action.reason
    run(loop, 0.05)
    assert machine._brakes.closed
    run(loop, 0.4)
    assert np.abs(machine.read().velocities).max() < 1e-3
    assert loop.follower.mode is Mode.PAUSED
    assert "of its largest speed on the way to the other working mode; halted" in loop.last.action.reason
    assert not machine.fault


@pytest.mark.by_day("stop", "emergency stop")
@pytest.mark.parametrize("label", ["++", "-+"])
@pytest.mark.parametrize("share", [0.1, pytest.param(0.5, marks=pytest.mark.slow), 0.93])
@pytest.mark.parametrize("how", ENDS)
def test_a_change_that_is_ended_rests_until_a_mode_is_chosen(
    loop: ControlLoop, how: str, share: float, label: str
) -> None:
    change_until(loop, share)
    follower, machine = loop.follower, loop.machine
    ENDS[how](loop)
    run(loop, 1.5)
    assert not follower.moving
    assert loop.reset() == ("" if how != "stop" else NO_FAULT)
    assert loop.enable() == ""
    before = machine.read().positions
    run(loop, 2.0)
    np.testing.assert_allclose(machine.read().positions, before, atol=1e-3)
    action = loop.last.action
    assert action.mode is Mode.PAUSED
    assert action.reason.startswith("the drives were turned off; halted" if how != "stop" else "halted")
    assert BACK_OR_ON in action.reason
    with pytest.raises(GoalError, match="halted"):
        requests.require_ready(loop)
    assert follower.jog_to(follower.hold) == HALTED
    with pytest.raises(RecoveryError, match="was halted"):
        recovery_pose(seen(follower))
    assert requests.continue_change(loop, label) == ""
    until_it_holds(loop)
    assert loop.kinematics.mode_label(follower.check.mode) == label
    assert follower.jog_to(follower.hold) == ""


def test_drives_that_are_on_again_at_once_go_on_with_nothing(loop: ControlLoop) -> None:
    change_until(loop, 0.3)
    loop.disable()
    assert loop.enable() == ""
    before = loop.machine.read().positions
    run(loop, 1.0)
    np.testing.assert_allclose(loop.machine.read().positions, before, atol=1e-3)
    assert BACK_OR_ON in loop.last.action.reason


@pytest.mark.parametrize("end", [requests.stop, requests.emergency_stop, requests.disable, drives_fail])
def test_no_change_begins_for_which_a_way_was_looked_for_before_a_stop(
    loop: ControlLoop, end: Callable[[ControlLoop], object]
) -> None:
    asked = requests.stops(loop)
    way = plan_change(seen(loop.follower), "-+")
    end(loop)
    run(loop, 0.1)
    assert loop.reset() == ("" if end is not requests.stop else NO_FAULT)
    assert loop.enable() == ""
    run(loop, 0.1)
    assert "stopped during the search" in requests.begin_change(loop, way, asked)
    assert loop.follower.change is None
    assert requests.begin_change(loop, plan_change(seen(loop.follower), "-+"), requests.stops(loop)) == ""


@pytest.mark.parametrize("end", [requests.emergency_stop, requests.disable, drives_fail])
def test_no_motion_begins_that_was_asked_for_before_the_drives_went_off(
    loop: ControlLoop, end: Callable[[ControlLoop], object]
) -> None:
    """Its check may take seconds, in which somebody turns them off and on again: over ROS by another node."""
    hold = loop.follower.hold.copy()
    still = np.zeros((2, 6))
    motion = Motion(PointTrajectory(np.array((0.0, 0.5)), np.tile(hold, (2, 1)), still, still), 0.0)
    before = time.monotonic()
    end(loop)
    run(loop, 0.1)
    assert loop.reset() == ""
    assert loop.enable() == ""
    run(loop, 0.1)
    with pytest.raises(GoalError, match=requests.WENT_OFF):
        requests.begin(loop, motion, hold, 0.005, 0.05, before)
    assert not loop.follower.moving
    requests.begin(loop, motion, hold, 0.005, 0.05, time.monotonic())
    assert loop.follower.moving


def test_drives_of_another_process_go_off_only_after_they_were_on(loop: ControlLoop) -> None:
    """The motion of a launch is asked for before its machine is on for the first time."""
    loop.follower.machine = MachineWatch()
    for state, off in (("inactive", False), ("active", False), ("inactive", True)):
        requests.hear_machine(loop, state)
        assert (loop.went_off > 0.0) == off


def test_a_change_that_has_lost_the_robot_is_given_up_by_a_recovery(loop: ControlLoop) -> None:
    """Its readings do not go on from the last ones; at home they fit again."""
    change_until(loop, 0.5)
    follower, now, still = loop.follower, loop.machine.time, np.zeros(2)
    weight = follower.guard.gravity
    action = follower.update(now + 2.0, now + 2.0, np.array((np.pi, 0.0)), still)
    assert action.mode is Mode.STOPPED
    assert "lost hold" in action.reason
    requests.relocate(loop)
    assert follower.change is None
    assert follower.guard.gravity is not weight
    home = np.array(loop.kinematics.inverse(loop.kinematics.home).actuated)
    found = follower.update(now + 4.0, now + 4.0, home, still)
    assert found.mode is Mode.HOLDING


def test_an_emergency_stop_of_the_simulated_machine_leaves_the_robot_as_it_is(loop: ControlLoop) -> None:
    change_until(loop, 0.93)
    loop.emergency_stop()
    loop.emergency_stop()
    stood = loop.machine.joints.copy()
    assert loop.reset() == ""
    np.testing.assert_allclose(loop.machine.joints, stood)
