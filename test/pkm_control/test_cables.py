# SPDX-License-Identifier: Apache-2.0
"""Cables pull: in plans, in the loop with any law and payload, and on the simulated machine, where they go slack."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from pkm_bringup.main_job import plan_cycle, run_motion
from pkm_control.control_errors import UnreachableMotionError
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Measured, Reference
from pkm_control.loop.control_loop import ControlLoop, switch_on
from pkm_control.loop.guard import guard_of
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.motion.trajectory import Trajectory
from pkm_control.operator_interface import EFFORT_LAWS
from pkm_control.robot_loop import make_controller
from pkm_description import DescriptionError, load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import holding_efforts
from pkm_hardware.simulated.simulated_machine import SimulatedMachine

PERIOD = 2e-3
LEAST, MOST = -600.0, -20.0  # of the efforts of a winch, N: tensions of 20 to 600 N


@pytest.fixture(scope="module")
def cables(of_gallery):
    return of_gallery["cable_8"]


@pytest.fixture(scope="module")
def limits(cables):
    return ActuatorLimits.of(cables.kinematics.mechanism)


def test_the_description_bounds_the_tension(limits, of_gallery):
    np.testing.assert_array_equal(limits.least_effort, np.full(8, LEAST))
    np.testing.assert_array_equal(limits.most_effort, np.full(8, MOST))
    assert limits.one_sided
    assert limits.described_bounds == "cable1_leg and 7 more: -600 to -20 N"
    least, most = limits.bounds(0.25)
    np.testing.assert_array_equal(least, np.full(8, 0.75 * LEAST))  # a reserve is of the strong side
    np.testing.assert_array_equal(most, np.full(8, MOST))
    drives = ActuatorLimits.of(of_gallery["gough_stewart_7"].kinematics.mechanism)
    assert not drives.one_sided
    np.testing.assert_array_equal(drives.least_effort, -drives.most_effort)


def test_a_winch_without_least_tension_pulls_only_all_the_same(limits):
    loose = replace(limits, effort_range=(limits.least_effort, np.zeros(8)))
    assert loose.one_sided
    assert loose.described_bounds == "cable1_leg and 7 more: -600 to 0 N"
    assert not replace(limits, effort=np.zeros(8), effort_range=None).one_sided  # a drive without effort is no winch


def test_bounds_that_leave_nothing_are_an_error(cables):
    text = cables.kinematics.mechanism.urdf
    assert text.count('<param name="min">-600</param>') == 8
    with pytest.raises(
        DescriptionError, match="the range of efforts from 5 to -20 is empty; write a min less than the max"
    ):
        load_mechanism(text.replace('<param name="min">-600</param>', '<param name="min">5</param>', 1))


def efforts_of(cables, limits, law, period, payload):
    """Efforts (n, 8) of every period of a cycle, as fast as the limits allow."""
    dynamics = cables.dynamics
    machine = SimulatedMachine(dynamics, limits, payload=payload)
    controller = make_controller(law, dynamics, limits, period, natural_frequency=40.0)
    loop, planner = (
        ControlLoop.of(machine, controller, 1.0 / period),
        MotionPlanner(dynamics, limits),
    )
    job = plan_cycle(planner, motion_named("auto", cables.kinematics))
    switch_on(loop)
    run_motion(loop, planner.rest(np.asarray(cables.kinematics.home), 0.5), recorded=False)
    run_motion(loop, job.approach, recorded=False)
    seen = []
    recording = run_motion(loop, job.cycle, watch=lambda done: seen.append(done.action.command))
    assert not recording.faults
    assert len(seen) > 100
    return np.array(seen)


@pytest.mark.by_day("adaptive")
@pytest.mark.parametrize("law", EFFORT_LAWS)
def test_in_the_loop_tensions_stay_within_their_bounds(cables, limits, law):
    """Whatever the law, and with a payload of half the platform's mass that it does not know of."""
    efforts = efforts_of(cables, limits, law, PERIOD, Inertial(mass=4.0))
    assert efforts.min() >= LEAST
    assert efforts.max() <= MOST
    assert (efforts > MOST - 1e-9).any()  # some are held at their least tension


@pytest.mark.slow
def test_in_the_loop_tensions_go_on(cables, limits):
    """Half the period, half the largest step from one to the next: what jumped would jump as far."""
    steps = [
        np.abs(np.diff(efforts_of(cables, limits, "computed_torque", period, None), axis=0)).max()
        for period in (PERIOD, 0.5 * PERIOD)
    ]
    assert steps[1] < 0.65 * steps[0]


def test_holding_is_within_the_bounds_where_least_squares_are_not(cables, limits):
    home = np.asarray(cables.kinematics.home)
    free = cables.dynamics.inverse(home, distribution=Distribution()).effort
    assert np.asarray(free).max() > 0.0  # they would push
    np.testing.assert_allclose(cables.dynamics.gravity(home).effort, holding_efforts(cables.dynamics, limits, home))
    held = holding_efforts(cables.dynamics, limits, home)
    assert held.min() >= LEAST
    assert held.max() <= MOST
    guard = guard_of("effort", limits, 0.01, lambda pose: holding_efforts(cables.dynamics, limits, pose))
    np.testing.assert_allclose(guard.check(0.0, {"state": 0.0}, None, home).command, held)
    assert guard.check(0.0, {"state": 0.0}, np.full(8, 50.0), home).command.max() == MOST


def outside(cables):
    """A pose in the joints' ranges that cables cannot hold."""
    return cables.kinematics.engine.inputs.one_pose([0.0, 0.0, 0.595, 0.5, 0.4, 0.4])


def test_what_no_tensions_hold_is_refused_before_it_moves(cables, limits):
    planner = MotionPlanner(cables.dynamics, limits)
    words = r"cannot hold it there within their bounds \(cable1_leg and 7 more: -600 to -20 N\)"
    with pytest.raises(UnreachableMotionError, match=words):
        planner.between(np.asarray(cables.kinematics.home), outside(cables))
    check = CurveCheck(cables.dynamics, limits)
    poses, still = np.array([cables.kinematics.home, outside(cables)]), np.zeros((2, 6))
    refusal = check.refusal(PointTrajectory(np.array((0.0, 5.0)), poses, still, still))
    assert "no efforts do it within the bounds of the actuators (cable1_leg and 7 more: -600 to -20 N)" in refusal


def test_a_motion_too_quick_for_the_tensions_is_refused(cables, limits):
    check = CurveCheck(cables.dynamics, limits)
    home = np.asarray(cables.kinematics.home)
    still = np.zeros((2, 6))

    def judged(down, seconds):
        end = home.copy()
        end[2] -= down
        return check.refusal(PointTrajectory(np.array((0.0, seconds)), np.array([home, end]), still, still))

    assert judged(0.05, 1.0) == ""
    assert "no efforts do it within the bounds of the actuators" in judged(0.02, 0.015)


def test_the_machine_lets_a_cable_go_slack_and_never_lets_it_push(cables, limits):
    machine = SimulatedMachine(cables.dynamics, limits)
    machine.configure()
    machine.activate()
    machine.write(np.full(8, 300.0))
    for _ in range(50):
        machine.step(1e-3)
    np.testing.assert_array_equal(machine.read().efforts, np.zeros(8))
    assert not machine.fault
    assert machine.twist[2] < -0.1  # it falls
    machine = SimulatedMachine(cables.dynamics, limits)
    machine.configure()
    machine.activate()
    machine.write(np.full(8, MOST))
    machine.step(1e-3)
    np.testing.assert_array_equal(machine.read().efforts, np.full(8, MOST))


@pytest.mark.by_day("planar_redundant")
@pytest.mark.parametrize("name", ["planar_redundant", "gough_stewart_7"])
def test_redundant_drives_take_what_one_of_them_cannot(of_gallery, name):
    """Where least squares ask one drive for too much, the others do its part: less work is missed than by a clip."""
    robot = of_gallery[name]
    k, home = robot.kinematics, np.asarray(robot.kinematics.home)
    limits = ActuatorLimits.of(k.mechanism)
    controller = ComputedTorque(robot.dynamics, limits, natural_frequency=40.0)
    J = np.asarray(k.at(home).forward_jacobian)
    solution = k.inverse(home)
    measured = Measured(np.asarray(solution.actuated), 0.0 * limits.effort, home, np.zeros(6), solution.joints, J)
    push = np.asarray(k.subspace(home))[:, 0]
    for size in np.geomspace(1.0, 1e5, 60):
        reference = Reference(home, np.zeros(6), size * push)
        wanted = controller.law(reference, measured)
        if (np.abs(wanted) > limits.effort).any():
            break
    assert (np.abs(wanted) > limits.effort).any()
    applied = controller.command(reference, measured)
    assert (np.abs(applied) <= limits.effort).all()
    rows = np.linalg.svd(J, full_matrices=False)[2][: k.mobility]
    clipped = np.clip(wanted, -limits.effort, limits.effort)
    missed, missed_by_clip = (np.linalg.norm(rows @ (x - wanted)) for x in (applied, clipped))
    assert missed < 0.999 * missed_by_clip
    if not controller.saturated.any():
        assert missed < 1e-9 * np.linalg.norm(wanted)


def test_drives_that_are_weaker_on_one_side_are_planned_so(of_gallery):
    """As cylinders are, which push with the whole piston and pull with the ring around the rod."""
    strong = of_gallery["five_bar"].dynamics
    bounds = '<command_interface name="effort"><param name="min">-3</param><param name="max">12</param>'
    text = strong.mechanism.urdf.replace('<command_interface name="effort"/>', f"{bounds}</command_interface>")
    dynamics = Dynamics(load_mechanism(text))
    limits = ActuatorLimits.of(dynamics.mechanism)
    assert not limits.one_sided
    np.testing.assert_array_equal(limits.effort, [12.0, 12.0])
    assert re.search(r"largest_effort\[2\] = \{\s+3\.0, 3\.0\s+\}", CFiles(dynamics).source())  # clamped to both ways
    start = np.asarray(dynamics.kinematics.home)
    end = start + np.array([0.1, -0.05, 0.0, 0.0, 0.0, 0.0, 0.0])

    def efforts(way: Trajectory) -> np.ndarray:
        s = way.sample(np.linspace(0.0, way.duration, 500))
        return dynamics.inverse(s.pose, s.twist, s.acceleration).effort

    planned = efforts(MotionPlanner(dynamics, limits).between(start, end))
    assert -2.41 < planned.min() < -2.2  # a fifth of the stronger side is kept for control; of the weaker one as much
    hasty = MotionPlanner(strong, ActuatorLimits.of(strong.mechanism)).between(start, end)
    assert efforts(hasty).min() < -3.0
    words = r"within the bounds of the actuators \(left_arm and 1 more: -3 to 12 N m\)"
    s = hasty.sample(np.linspace(0.0, hasty.duration, 50))
    points = PointTrajectory(s.times, s.pose, s.twist, s.acceleration)
    assert re.search(words, CurveCheck(dynamics, limits).refusal(points))
