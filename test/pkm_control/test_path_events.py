# SPDX-License-Identifier: Apache-2.0
"""What happens on the way of a motion: outputs and payloads at their instants, in order, once; and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from pkm_bringup.main_job import run_motion, simulated_loop
from pkm_control.control_errors import LimitError, MotionFileError
from pkm_control.controllers.adaptive import Adaptive
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Measured, Reference
from pkm_control.loop.control_loop import switch_on
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop.mode_change import ModeChange
from pkm_control.motion.files.motion_file import parse_motion
from pkm_control.motion.path_events import (
    EventCursor,
    OutputEvent,
    PathEventError,
    PathEvents,
    PayloadChange,
)
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import MotionPoints, PointTrajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import holding_efforts, payload_wrench, together
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError

from .conftest import Steered

CYCLE = """# frame: home
# lead: 5 ms
x [mm], y [mm], z [mm], blend [mm], dwell [ms], payload [g], output:gripper, output:lamp
-60, 0,  0,  0, 30, 500, 1,
-60, 0, 20, 15,  0, 500,  , 1
 60, 0, 20, 15,  0, 500,  , 0
 60, 0,  0,  0, 30,   0, 0,
"""
BODY = Inertial(0.4, np.array((0.01, -0.02, -0.05)), np.diag((1e-3, 2e-3, 2.5e-3)))


def planner_of(name: str) -> MotionPlanner:
    dynamics = shared_dynamics(load_mechanism(name))
    return MotionPlanner(dynamics, ActuatorLimits.of(dynamics.mechanism))


@pytest.fixture(scope="module")
def planner() -> MotionPlanner:
    return planner_of("delta")


@pytest.mark.parametrize("name", ["gough_stewart", "tripod_3prs", "planar_3rrr"])
def test_a_body_on_the_platform_is_a_wrench_on_it(name: str) -> None:
    """Inverse dynamics with the payload in the model agree with those under the wrench of the payload."""
    dynamics = shared_dynamics(load_mechanism(name))
    motion = random_motions(dynamics.kinematics, 20)
    pose, twist, acceleration = motion.pose, motion.twist, motion.acceleration
    wanted = dynamics.inverse(pose, twist, acceleration, payload=BODY).effort
    wrench = payload_wrench(BODY, dynamics.mechanism.gravity, pose, twist, acceleration)
    effort = dynamics.inverse(pose, twist, acceleration, wrench).effort
    usable = np.isfinite(wanted).all(axis=1)
    assert usable.sum() > 10
    np.testing.assert_allclose(effort[usable], wanted[usable], rtol=1e-7, atol=1e-7 * np.abs(wanted[usable]).max())
    assert np.abs(effort - dynamics.inverse(pose, twist, acceleration).effort)[usable].max() > 0.1


def test_two_bodies_are_one(planner: MotionPlanner) -> None:
    other = Inertial(1.1, np.array((0.0, 0.1, 0.0)), np.diag((3e-3, 1e-3, 3e-3)))
    home = np.array(planner.kinematics.home)[None]
    rates = np.arange(1.0, 7.0)[None]
    both = together(BODY, other)
    assert both is not None
    parts = [payload_wrench(one, planner.dynamics.mechanism.gravity, home, rates, -rates) for one in (BODY, other)]
    whole = payload_wrench(both, planner.dynamics.mechanism.gravity, home, rates, -rates)
    np.testing.assert_allclose(whole, parts[0] + parts[1], atol=1e-12)
    assert together(None, BODY) is BODY
    assert together(None, None) is None


def test_events_are_on_the_clock_of_the_plan(planner: MotionPlanner) -> None:
    motion = parse_motion(CYCLE)
    plan = planner.plan(motion)
    poses = motion.in_base(np.array(planner.kinematics.home)).poses
    assert [(event.name, event.value) for event in plan.events.outputs] == [
        ("gripper", 1.0),
        ("lamp", 1.0),
        ("lamp", 0.0),
        ("gripper", 0.0),
    ]
    times = [event.time for event in plan.events.outputs]
    assert times[0] == 0.0  # no earlier than the motion
    assert times[3] == pytest.approx(plan.duration - 0.03 - 0.005)  # at the beginning of the dwell, by the lead before
    for event, corner in zip(plan.events.outputs[1:3], poses[1:3], strict=True):
        at = plan.sample(np.array([event.time + 0.005])).pose[0]
        off = at[:3] - corner[:3]
        assert abs(off[0]) == pytest.approx(abs(off[2]), rel=1e-6)  # in the middle of the blend
        assert 0.0 < np.linalg.norm(off) < 0.23 * 0.015
    masses = [(0.0 if one.payload is None else one.payload.mass) for one in plan.events.payloads]
    assert masses == [0.5, 0.0]  # changes alone
    assert plan.events.payloads[1].time == pytest.approx(plan.duration - 0.03)
    closed = planner.plan_closed(motion)
    assert closed.events.outputs == plan.events.outputs
    assert closed.duration > plan.duration


def test_events_of_recorded_times(planner: MotionPlanner) -> None:
    text = "# frame: home\nx [mm], y [mm], z [mm], time [s], output:on\n0,0,0,1,\n20,0,0,1.5,1\n40,0,0,2.5,0\n"
    plan = planner.plan(parse_motion(text))
    assert plan.events.outputs == (OutputEvent(0.5, "on", 1.0), OutputEvent(1.5, "on", 0.0))


def test_a_payload_slows_a_motion_down_where_it_is_carried(planner: MotionPlanner) -> None:
    def duration(*masses: float) -> float:
        rows = "".join(f"{x}, 0, 0, {mass}\n" for x, mass in zip((-100, 100, -100), masses, strict=True))
        return planner.plan(parse_motion(f"# frame: home\nx [mm], y [mm], z [mm], payload [kg]\n{rows}")).duration

    empty, there, both = duration(0, 0, 0), duration(8, 0, 0), duration(8, 8, 0)
    assert empty * 1.05 < there < both
    assert there - empty == pytest.approx(0.5 * (both - empty), rel=0.05)
    with pytest.raises(LimitError, match="line 5 with its payload"):
        duration(0, 0, 500)


@pytest.mark.parametrize("name", ["tripod_3prs", "cable_8"])
def test_other_robots_plan_with_payloads(name: str) -> None:
    planner = planner_of(name)
    home = np.array(planner.kinematics.home)
    rows = f"{home[0]}, {home[1]}, {home[2]}, 0, 0\n{home[0]}, {home[1]}, {home[2] + 0.02}, 5, 1\n"
    motion = parse_motion(f"x [m], y [m], z [m], payload [kg], output:gripper\n{rows}", home=home)
    plan = planner.plan_closed(motion)
    assert [change.payload and change.payload.mass for change in plan.events.payloads] == [None, 5.0]
    assert plan.events.payloads[1].time == pytest.approx(plan.events.outputs[1].time)
    assert plan.duration > plan.events.payloads[1].time * 1.5  # with the way back


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("output:lamp", "output:"), "column 'output:': is not a valid output name"),
        (("output:lamp", "output:a lamp"), "is not a valid output name"),
        (("output:lamp", "output:lamp [V]"), "has the unit"),
        (("output:lamp", "output:gripper"), "appears twice"),
        (("  , 1", "  , on"), "column 'output:lamp': 'on' is not a number"),
        (("  , 1", "  , nan"), "column 'output:lamp': is nan"),
        (("payload [g]", "payload"), "column 'payload': has no unit"),
        (("0, 500,  , 0", "0, -5,  , 0"), "column 'payload': is negative"),
        (("0, 500,  , 0", "0, ,  , 0"), "column 'payload': is empty"),
        (("lead: 5 ms", "lead: 5"), "lead has the unit ''"),
        (("lead: 5 ms", "lead: -5 ms"), "lead is -5 ms"),
        (("lead: 5 ms", "lead: soon s"), "'soon' is not a number"),
    ],
)
def test_columns_that_make_no_sense(change: tuple[str, str], message: str) -> None:
    assert change[0] in CYCLE
    with pytest.raises(MotionFileError) as caught:
        parse_motion(CYCLE.replace(*change))
    assert message in str(caught.value)


def events(*times: float, name: str = "a", value: float = 1.0) -> PathEvents:
    return PathEvents(tuple(OutputEvent(time, name, value) for time in times))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (events(0.5, 0.2), "event 1: its time 0.2 s is not from 0.5"),
        (events(-0.1), "event 0: its time -0.1 s"),
        (events(1.5), "event 0: its time 1.5 s"),
        (events(float("nan")), "event 0: its time nan"),
        (events(0.1, name=""), "'' is not a valid"),
        (events(0.1, name="x" * 65), "is not a valid"),
        (events(0.1, value=float("inf")), "the value of 'a' is inf"),
        (events(*np.linspace(0.0, 1.0, 10_001)), "10001 events"),
        (PathEvents(tuple(OutputEvent(0.0, f"o{k}", 0.0) for k in range(65))), "65 outputs"),
        (PathEvents((), (PayloadChange(2.0, None),)), "payload event 0: its time 2 s"),
        (PathEvents((), (PayloadChange(0.0, Inertial(-1.0)),)), "mass"),
        (PathEvents((), (PayloadChange(0.0, Inertial(1.0, np.full(3, np.nan))),)), "finite"),
    ],
)
def test_events_that_make_no_sense(bad: PathEvents, message: str, planner: MotionPlanner) -> None:
    with pytest.raises(PkmError, match=message):
        bad.require(1.0)
    home, still = np.tile(planner.kinematics.home, (2, 1)), np.zeros((2, 6))
    points = MotionPoints(np.array((0.0, 1.0)), home, still, still, events=bad)
    with pytest.raises(PkmError, match=message):
        points.trajectory(planner.kinematics, None, 0.01)


def test_each_event_is_given_out_once_in_order() -> None:
    both = PathEvents((OutputEvent(0.0, "a", 1.0), OutputEvent(0.5, "a", 0.0)), (PayloadChange(0.5, BODY),))
    cursor = EventCursor(both, 1.0, 2)
    assert [event.time for event in cursor.due(0.2)] == [0.0]
    assert cursor.due(0.2) == []
    assert [type(event) for event in cursor.due(0.5)] == [OutputEvent, PayloadChange]
    assert [event.time for event in cursor.due(7.0)] == [0.0, 0.5, 0.5]  # what a stall jumped over
    assert cursor.due(9.0) == []
    assert EventCursor(PathEvents(), 0.0).due(1.0) == []


def begin(steered: Steered, both: PathEvents, repetitions: int = 1) -> tuple[Motion, list[tuple[float, str, float]]]:
    """A motion of 1 s with events begins; what was told goes to the list, with its time on the path."""
    there = steered.way(steered.offset(), steered.offset(0.05), steered.offset(), seconds=0.5)
    trajectory = PointTrajectory(there.times, there.poses, np.zeros((3, 6)), np.zeros((3, 6)), repetitions)
    motion = Motion(trajectory, steered.machine.time + 0.02, events=both)
    told: list[tuple[float, str, float]] = []
    follower = steered.follower
    follower.effects.on_output = lambda event: told.append((follower.run.clock.time, event.name, event.value))
    follower.follow(motion)
    return motion, told


def test_events_follow_the_path_and_not_the_clock_on_the_wall(steered: Callable[[str], Steered]) -> None:
    robot = steered("delta")
    robot.run(0.1)
    motion, told = begin(robot, events(0.0, 0.3, 1.0), repetitions=2)
    assert told == []
    robot.run(0.15)
    assert len(told) == 1
    robot.follower.pause()
    robot.run(0.8)
    assert robot.follower.mode is Mode.PAUSED
    reached = len(told)
    robot.run(0.4)
    assert len(told) == reached  # nothing happens while it rests
    robot.follower.set_override(0.5)
    robot.follower.resume()
    robot.run(4.2)
    assert motion.outcome is Outcome.SUCCESSFUL
    np.testing.assert_allclose([time for time, *_ in told], (0.0, 0.3, 1.0, 1.0, 1.3, 2.0), atol=6e-3)
    assert robot.follower.effects.events == 6
    assert robot.follower.effects.outputs == {"a": 1.0}


def test_what_a_motion_does_not_reach_does_not_happen(steered: Callable[[str], Steered]) -> None:
    robot = steered("delta")
    robot.run(0.1)
    motion, told = begin(robot, events(0.1, 0.9))
    robot.run(0.3)
    robot.follower.stop()
    robot.run(0.8)
    assert motion.outcome is Outcome.PREEMPTED
    assert len(told) == 1
    robot.follower.follow(Motion(robot.way(robot.follower.hold, robot.offset()), robot.machine.time))
    robot.run(1.1)  # without events of its own
    assert len(told) == 1


def test_a_payload_that_is_told_costs_no_accuracy(steered: Callable[[str], Steered]) -> None:
    errors = []
    for told in (True, False):
        robot = steered("delta")
        robot.run(0.1)
        change = PathEvents((), (PayloadChange(0.1, BODY), PayloadChange(0.4, Inertial(2.0))))
        motion, _ = begin(robot, change if told else PathEvents())
        load = robot.follower.effects.on_payload

        def both(payload: Inertial | None, robot: Steered = robot, load: Callable = load) -> None:
            load(payload)
            robot.machine.carry(payload)

        robot.follower.effects.on_payload = both
        if not told:
            robot.machine.carry(Inertial(2.0))
        robot.run(1.2)
        assert motion.outcome is Outcome.SUCCESSFUL
        errors.append(motion.largest[0])
    assert errors[0] < 0.05 * errors[1]


def test_a_change_of_mode_waits_for_the_payload(steered: Callable[[str], Steered]) -> None:
    robot = steered("delta")
    robot.run(0.1)
    robot.follower.effects.on_payload(BODY)
    assert robot.follower.check.payload is BODY
    change = SimpleNamespace(way=SimpleNamespace(pose=robot.follower.hold))
    assert "carries a payload" in robot.follower.begin_change(cast(ModeChange, change))
    assert robot.follower.change is None


def test_what_is_too_heavy_on_the_way_is_refused(kinematics: Kinematics, steered: Callable[[str], Steered]) -> None:
    robot = steered("delta")
    way = robot.way(robot.offset(), robot.offset(0.02))
    assert robot.follower.check.refusal(way) == ""
    heavy = PathEvents((), (PayloadChange(0.5, Inertial(500.0)),))
    assert "at 0.500 s: effort of limb" in robot.follower.check.refusal(way, heavy)
    assert robot.follower.check.braking(way, PathEvents((), (PayloadChange(0.0, Inertial(20.0)),))).least <= 4.0


def test_an_adaptive_law_learns_on_from_what_it_is_told(kinematics: Kinematics, dynamics: Dynamics) -> None:
    limits = ActuatorLimits.of(kinematics.mechanism)
    law, exact = Adaptive(dynamics, limits), ComputedTorque(dynamics, limits)
    before = law.parameters.copy()
    home = np.array(kinematics.home)
    solution = kinematics.inverse(home)
    q = np.array(solution.actuated)
    jacobian = np.asarray(kinematics.at(home).forward_jacobian)
    measured = Measured(q, np.zeros_like(q), home, np.zeros(6), np.array(solution.joints), jacobian)
    reference = Reference(home, np.zeros(6), np.array((1.0, 2.0, 3.0, 0.0, 0.0, 0.0)))
    for payload in (BODY, Inertial(1.0), None):
        law.load(payload)
        exact.load(payload)
        np.testing.assert_allclose(law.law(reference, measured), exact.law(reference, measured), atol=1e-9)
    np.testing.assert_allclose(law.parameters, before, atol=1e-12)
    law.load(BODY)
    law.reset()
    assert law.adapted["platform.m"] == pytest.approx(before[law._columns[0]] + BODY.mass)


@pytest.mark.parametrize("name", ["delta", "planar_3rrr", "tripod_3prs", "cable_8"])
def test_a_simulated_machine_carries_it_too(name: str) -> None:
    """With the efforts that hold robot and payload, the robot stays; without the payload it would not."""
    dynamics = shared_dynamics(load_mechanism(name))
    limits, home = ActuatorLimits.of(dynamics.mechanism), np.array(dynamics.kinematics.home)
    machine = SimulatedMachine(dynamics, limits)
    machine.configure()
    machine.activate()
    hold = holding_efforts(dynamics, limits, home, payload=BODY)
    start = machine.pose.copy()
    machine.write(hold)
    machine.carry(BODY)
    machine.step(0.02)
    assert not machine.fault
    fell = np.abs(machine.pose - start).max()
    machine.carry(None)
    machine.step(0.02)
    if np.abs(hold - holding_efforts(dynamics, limits, home)).max() > 1e-6:  # not where it moves in a level plane
        assert np.abs(machine.pose - start).max() > 100.0 * fell + 1e-7


def test_the_main_job_has_them_happen_and_records_them(planner: MotionPlanner) -> None:
    loop = simulated_loop(planner.kinematics.mechanism, 250.0, planner.dynamics)
    switch_on(loop)
    plan = planner.plan_closed(parse_motion(CYCLE))
    run_motion(loop, planner.between(np.array(planner.kinematics.home), plan.start), recorded=False)
    recording = run_motion(loop, plan, 2)
    assert not recording.faults
    assert loop.machine.outputs == {"gripper": 0.0, "lamp": 0.0}
    assert [mark.name for mark in recording.marks] == ["gripper", "lamp", "lamp", "gripper"] * 2
    again = np.array([mark.time for mark in recording.marks]).reshape(2, 4)
    np.testing.assert_allclose(again[1] - again[0], recording.run.cycle_duration, atol=5e-3)
    assert loop.controller.payload is None


def test_a_machine_says_what_outputs_it_has(planner: MotionPlanner) -> None:
    loop = simulated_loop(planner.kinematics.mechanism, 250.0, planner.dynamics)
    loop.require_outputs(("gripper",))
    loop.machine.output_problem = lambda name: f"there is no output '{name}'"  # type: ignore[method-assign]
    with pytest.raises(PathEventError, match="no output 'gripper'"):
        loop.require_outputs(("gripper",))


def names(both: Sequence[OutputEvent]) -> list[str]:
    return [event.name for event in both]


def test_plans_one_after_the_other_keep_their_events(planner: MotionPlanner) -> None:
    plan = planner.plan_closed(parse_motion(CYCLE))
    twice = plan.then(plan)
    assert names(twice.events.outputs) == names(plan.events.outputs) * 2
    assert twice.events.outputs[4].time == pytest.approx(plan.duration)
    twice.events.require(twice.duration)
