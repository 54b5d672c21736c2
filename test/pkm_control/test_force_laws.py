# SPDX-License-Identifier: Apache-2.0
"""Laws in contact: on robots of every kind they press as they say, calm down, and stop without a sensor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from pkm_control.control_errors import LawError
from pkm_control.controllers.controller import Measured, Reference
from pkm_control.controllers.force_task import ForceTask
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import guard_of
from pkm_control.loop.platform_locator import PlatformObserver
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import ADMITTANCE, FORCE_LAWS, HYBRID, IMPEDANCE, Mode, Outcome
from pkm_control.robot_loop import make_controller
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode
from pkm_hardware.machine_kinds import HEAVIER
from pkm_hardware.simulated.simulated_machine import SimulatedMachine, heavier
from pkm_hardware.simulated.surroundings import Hole, Plane, Surroundings, peg
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between

DT = 1e-3
STILL = np.zeros(6)
PRESS = 10.0  # N
STIFFNESS = 2000.0  # N/m
HIT = 0.1  # m/s
# six, four, three and two degrees of freedom, redundant actuators, cables, motion spaces that turn
EVERYDAY = ("delta", "tripod_3prs")
OTHERS = (
    "five_bar",
    "gough_stewart_7",
    "quattro",
    "planar_3rrr",
    "planar_redundant",
    "gough_stewart",
    "hexaglide",
    "tricept",
    "cable_8",
    "linear_delta",
    "h4",
)
SETTLES = {"gough_stewart": 2.0, "gough_stewart_7": 2.0, "hexaglide": 2.0, "planar_3rrr": 2.0}  # s: heavy ones
ROBOTS = (*EVERYDAY, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS))


@dataclass(frozen=True, eq=False)
class Run:
    """What a machine in contact did, period by period."""

    forces: Array  # (n,) N, along the normal
    errors: Array  # (n, 6) reference minus platform
    speeds: Array  # (n,) m/s, along the normal
    controller: object


class Bench:
    """A robot above a plane that it can be pressed against, with a law."""

    def __init__(self, built, law: str, friction: float = 0.2, machine=None, payload=None, **task) -> None:
        self.kinematics, dynamics = built.kinematics, built.dynamics
        space = np.asarray(self.kinematics.subspace(self.kinematics.home))
        onto = space @ np.linalg.pinv(space)
        self.axis = max(range(3), key=lambda c: (round(onto[c, c], 6), c))
        self.normal = np.eye(6)[self.axis]
        self.home = np.array(self.kinematics.home)
        self.gap = 5e-3 * min(1.0, self.kinematics.characteristic_length / 0.3)
        chosen = ForceTask.usual()
        chosen = replace(
            chosen,
            selected=self.normal > 0.5,
            wrench=-PRESS * self.normal,
            stiffness=np.where(np.arange(6) < 3, STIFFNESS, np.nan),
            **task,
        )
        limits = ActuatorLimits.of(self.kinematics.mechanism)
        self.controller = make_controller(law, dynamics, limits, DT, task=chosen)
        self.machine = SimulatedMachine(machine or dynamics, limits, payload=payload)
        at = self.home[:3] - self.gap * self.normal[:3]
        self.machine.surround(Surroundings([Plane(tuple(at), tuple(self.normal[:3]), friction=friction)]))
        self.machine.configure()
        self.machine.activate()
        self.observer = PlatformObserver(self.kinematics)

    def run(self, seconds: float, reference) -> Run:
        """Follow a reference of time."""
        forces, errors, speeds = [], [], []
        for i in range(round(seconds / DT)):
            state = self.machine.read()
            measured = self.observer.observe(state.positions, state.velocities)
            assert measured is not None, self.observer.reason
            measured = self.controller.felt_by(measured, state.wrench)
            wanted = reference(i * DT)
            self.machine.write(self.controller.command(wanted, measured))
            self.machine.step(DT)
            assert not self.machine.fault, self.machine.fault
            forces.append(measured.wrench @ self.normal)
            errors.append(displacement_between(measured.pose, wanted.pose))
            speeds.append(measured.twist @ self.normal)
        return Run(np.array(forces), np.array(errors), np.array(speeds), self.controller)

    def down(self, depth: float):
        """A reference that goes straight down at the speed of an impact, and stays."""

        def reference(t: float) -> Reference:
            moves = HIT * t < depth
            return Reference(displace(self.home, -self.normal * min(HIT * t, depth)), -HIT * moves * self.normal, STILL)

        return reference


@pytest.mark.by_day("delta")
@pytest.mark.parametrize("law", [IMPEDANCE, ADMITTANCE])
@pytest.mark.parametrize("name", ROBOTS)
def test_presses_as_its_stiffness_says_after_an_impact(name: str, law: str, of_gallery) -> None:
    bench = Bench(of_gallery[name], law)
    run = bench.run(SETTLES.get(name, 0.9), bench.down(2.0 * bench.gap))
    expected = -run.controller.spring[bench.axis, bench.axis] * run.errors[-1] @ bench.normal
    assert run.forces[-1] == pytest.approx(expected, rel=0.01)
    # spring and contact in series: the reference is the gap's depth behind the surface
    series = 1.0 / (1.0 / run.controller.spring[bench.axis, bench.axis] + 1.0 / 2e4)
    assert run.forces[-1] == pytest.approx(series * bench.gap, rel=0.02)
    assert_calms_down(run)


@pytest.mark.parametrize("name", ROBOTS)
def test_holds_a_force(name: str, of_gallery) -> None:
    bench = Bench(of_gallery[name], HYBRID)
    run = bench.run(SETTLES.get(name, 1.0), bench.down(2.0 * bench.gap))
    assert np.abs(run.forces[-50:] - PRESS).max() < 0.5
    assert_calms_down(run)


@pytest.mark.parametrize("name", ["delta", pytest.param("gough_stewart", marks=pytest.mark.slow)])
def test_holds_a_force_on_a_machine_heavier_than_described(name: str, of_gallery) -> None:
    machine = Dynamics(heavier(of_gallery[name].kinematics.mechanism, HEAVIER), friction=False)
    bench = Bench(of_gallery[name], HYBRID, machine=machine)
    run = bench.run(2.0, bench.down(2.0 * bench.gap))
    assert np.abs(run.forces[-50:] - PRESS).max() < 0.5


@pytest.mark.parametrize("name", ["delta_rr", pytest.param("gough_stewart", marks=pytest.mark.slow)])
def test_a_hidden_payload_does_not_press_the_path_into_the_surface(name: str, of_gallery) -> None:
    """It hangs below the path, so that position control wants to push less than the force does."""
    mechanism = of_gallery[name].kinematics.mechanism
    platform = next(link for link in mechanism.links if link.name == mechanism.platform_link)
    bench = Bench(of_gallery[name], HYBRID, payload=Inertial(mass=0.5 * platform.inertial.mass))
    run = bench.run(2.0, bench.down(2.0 * bench.gap))
    assert np.abs(run.forces[-50:] - PRESS).max() < 0.5


def assert_calms_down(run: Run) -> None:
    """No rebound is faster than the impact, and none than an earlier one."""
    first = int(np.argmax(run.forces > 0.0))
    assert run.forces[first] > 0.0
    hit = np.abs(run.speeds[: first + 1]).max()
    thirds = np.array_split(np.abs(run.speeds[first + 5 :]), 3)
    peaks = [part.max() for part in thirds]
    assert peaks[0] < 1.2 * hit
    assert peaks[0] > peaks[1] > peaks[2] or peaks[2] < 1e-3 * hit
    assert np.ptp(run.forces[-100:]) < 0.02 * run.forces[-1]


@pytest.mark.slow
def test_holds_ten_newton_while_it_slides(of_gallery) -> None:
    def sliding(bench: Bench):
        along = np.eye(6)[0]

        def reference(t: float) -> Reference:
            s, v = (0.0, 0.0) if t < 0.8 else (0.05 * (t - 0.8), 0.05)  # m, m/s
            return Reference(displace(bench.down(2.0 * bench.gap)(t).pose, along * s), v * along, STILL)

        return reference

    touching = Bench(of_gallery["delta"], HYBRID)
    run = touching.run(1.5, sliding(touching))
    free = Bench(of_gallery["delta"], HYBRID)
    free.machine.deactivate()
    free.machine.surround(Surroundings([Plane((0.0, 0.0, -9.0))]))
    free.machine.configure()
    free.machine.activate()
    free.controller.engage(False)
    without = free.run(1.5, sliding(free))
    late = slice(900, None)  # the start of the slide is a step in speed
    assert np.abs(run.forces[late] - PRESS).max() < 0.5
    assert np.abs(run.errors[late, :2]).max() < np.abs(without.errors[late, :2]).max() + 2e-5  # m


def test_finds_a_hole_with_a_peg_and_goes_in(of_gallery) -> None:
    radius, bore, length = 0.01, 0.011, 0.03
    built = of_gallery["delta"]
    home = np.array(built.kinematics.home)
    tip = np.array([0.0, 0.0, -length])
    surface = home[2] - length - 2e-3
    mouth = (home[0], home[1], surface)
    hole = Plane(mouth, friction=0.1, hole=Hole(mouth, bore, 0.02))
    limits = ActuatorLimits.of(built.kinematics.mechanism)
    for aside, depth in ((0.8e-3, 0.02), (6e-3, 0.0)):
        task = replace(ForceTask.usual(), selected=np.arange(6) == 2, wrench=np.array([0, 0, -PRESS, 0, 0, 0.0]))
        controller = make_controller(IMPEDANCE, built.dynamics, limits, DT, task=task)
        machine = SimulatedMachine(built.dynamics, limits)
        machine.surround(Surroundings([hole], peg(radius, length, tip)))
        machine.configure()
        machine.activate()
        observer = PlatformObserver(built.kinematics)
        for i in range(800):
            state = machine.read()
            measured = observer.observe(state.positions, state.velocities)
            down = min(0.05 * i * DT, 0.025)
            pose = displace(home, np.array([aside, 0.0, -down, 0.0, 0.0, 0.0]))
            machine.write(controller.command(Reference(pose, STILL, STILL), measured))
            machine.step(DT)
        reached = surface - (machine.pose[2] - length)
        assert reached == pytest.approx(depth, abs=1.5e-3)
        if depth:  # the bore has centred the peg as far as it has play
            assert abs(machine.pose[0] - home[0]) < bore - radius + 3e-4


def test_position_commands_meet_solids_as_well(of_gallery) -> None:
    built = of_gallery["tripod_3prs"]
    machine = SimulatedMachine(built.dynamics, ActuatorLimits.of(built.kinematics.mechanism))
    home = np.array(built.kinematics.home)
    machine.surround(Surroundings([Plane((0.0, 0.0, home[2] - 2e-3))]))
    machine.configure()
    machine.activate()
    machine.set_command_mode(CommandMode.POSITION)
    start = machine.read().positions
    goal = np.array(built.kinematics.inverse(displace(home, np.array([0, 0, -4e-3, 0, 0, 0.0]))).actuated)
    for i in range(300):
        machine.write(start + min(1.0, i / 200) * (goal - start))
        machine.step(DT)
    assert machine.read().wrench[2] > 5.0
    assert home[2] - machine.pose[2] < 4e-3


def follower_of(bench: Bench) -> TrajectoryFollower:
    k = bench.kinematics
    weight = bench.controller.dynamics.gravity
    limits = bench.machine.limits
    guard = guard_of("effort", limits, 10 * DT, lambda pose: np.asarray(weight(pose).effort))
    return TrajectoryFollower(k, bench.controller, guard, 0.5 * DT)


@pytest.mark.by_day(ADMITTANCE)
@pytest.mark.parametrize("law", [IMPEDANCE, ADMITTANCE])
def test_a_law_that_is_pushed_away_does_not_let_go(law: str, of_gallery) -> None:
    """What is in the way holds the platform back by more than a stiff law may miss its reference."""
    bench = Bench(of_gallery["delta"], law)
    follower, machine = follower_of(bench), bench.machine
    far = 0.4 * bench.kinematics.characteristic_length
    poses = np.array([bench.home, displace(bench.home, -far * bench.normal)])
    motion = Motion(PointTrajectory(np.array([0.0, 1.5]), poses, np.zeros((2, 6)), np.zeros((2, 6))), 0.01)
    for i in range(2500):
        state = machine.read()
        follower.force.hear(state.wrench, state.time)
        action = follower.update(state.time, state.time, state.positions, state.velocities)
        assert action.mode is not Mode.STOPPED, (i, action.reason)
        assert not action.withhold_command
        if i == 5:
            follower.follow(motion)
        machine.write(action.command)
        machine.step(DT)
    assert action.mode is Mode.HOLDING
    assert bench.home[2] - machine.pose[2] < 0.5 * far  # it was held back
    assert machine.read().wrench[bench.axis] > PRESS
    assert np.abs(machine.twist).max() < 1e-3


@pytest.mark.parametrize("law", [ADMITTANCE, pytest.param(HYBRID, marks=pytest.mark.slow)])
def test_a_silent_force_sensor_stops_on_the_path_and_then_lets_go(law: str, of_gallery) -> None:
    bench = Bench(of_gallery["delta"], law)
    follower, machine = follower_of(bench), bench.machine
    machine.command_timeout = 20 * DT
    poses = np.array([bench.home, displace(bench.home, np.array([0.05, 0, 0, 0, 0, 0.0]))])
    motion = Motion(PointTrajectory(np.array([0.0, 1.0]), poses, np.zeros((2, 6)), np.zeros((2, 6))), 0.01)
    speeds, actions = [], []
    for i in range(1600):
        state = machine.read()
        if not 300 <= i < 1400:
            follower.force.hear(state.wrench, state.time)
        action = follower.update(state.time, state.time, state.positions, state.velocities)
        if i == 5:
            assert action.mode is Mode.HOLDING
            follower.follow(motion)
        if not action.withhold_command:
            machine.write(action.command)
        machine.step(DT)
        speeds.append(float(np.linalg.norm(machine.twist)))
        actions.append(action)
    assert motion.outcome is Outcome.STATE_LOST
    assert "force sensor is silent" in motion.reason
    gone = next(i for i, action in enumerate(actions) if action.withhold_command)
    assert 310 < gone < 1200
    assert np.abs(np.diff(speeds[310:gone])).max() / DT < 1.0  # m/s^2
    assert speeds[gone - 1] < 2e-3  # at rest before the drives turn off
    assert all(action.withhold_command and action.mode is Mode.STOPPED for action in actions[gone:1400])
    assert actions[1350].reason.startswith("the force sensor is silent: the last reading is 1")
    assert speeds[1350] == 0.0  # on its brakes
    assert actions[-1].mode is Mode.HOLDING


@pytest.mark.parametrize("law", FORCE_LAWS)
def test_gains_are_lowered_to_what_the_rate_carries(law: str, of_gallery) -> None:
    bench = Bench(of_gallery["delta"], law)
    controller = bench.controller
    controller.set_gains(10.0, 1.0)
    assert controller.natural_frequency == 10.0
    if law == IMPEDANCE:
        assert controller.lowered < 1.0
        basis, mass = controller.freedoms.basis, controller.freedoms.mass
        squares = np.linalg.eigvals(np.linalg.solve(mass, basis.T @ controller.spring @ basis))
        assert np.sqrt(squares.real.max()) == pytest.approx(10.0, rel=1e-6)


def test_what_makes_no_sense_is_refused(of_gallery) -> None:
    limits = ActuatorLimits.of(of_gallery["five_bar"].kinematics.mechanism)
    task = ForceTask.usual()
    with pytest.raises(LawError, match="needs an axis"):
        make_controller(HYBRID, of_gallery["five_bar"].dynamics, limits, DT, task=task)
    out_of_plane = replace(task, selected=np.arange(6) == 2)
    with pytest.raises(LawError, match="no degree of freedom of its own"):
        make_controller(HYBRID, of_gallery["five_bar"].dynamics, limits, DT, task=out_of_plane)
    with pytest.raises(ValueError, match="stiffness is"):
        replace(task, stiffness=np.full(6, -1.0))
    with pytest.raises(ValueError, match="a plane at"):
        Surroundings([Plane((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))])
    with pytest.raises(ValueError, match="points have shape"):
        Surroundings(points=[0.0, 0.0, 0.0])


def test_an_impedance_follows_the_mass_that_the_platform_has_where_it_is(of_gallery) -> None:
    """An agile eye is a third as heavy at its border as at home: damping for home's mass shook it at 250 Hz."""
    robot = of_gallery["agile_eye"]
    k, limits = robot.kinematics, ActuatorLimits.of(robot.kinematics.mechanism)
    controller = make_controller(IMPEDANCE, robot.dynamics, limits, 0.004, 60.0)
    pose = displace(np.array(k.home), np.array([0.0, 0.0, 0.0, 0.5, -0.4, 0.3]))
    at, still = k.at(pose), np.zeros(6)
    n = len(k.actuated_names)
    measured = Measured(at.actuated, np.zeros(n), pose, still, at.joints, at.forward_jacobian)
    for _ in range(4):
        controller.command(Reference.at_rest(pose), measured)
    S, mass = at.subspace, robot.dynamics.mass_matrix(at)
    squares = np.linalg.eigvals(np.linalg.solve(mass, S.T @ controller.spring @ S)).real
    rates = np.linalg.eigvals(np.linalg.solve(mass, S.T @ controller.damper @ S)).real
    np.testing.assert_allclose(squares, 60.0**2, rtol=1e-6)  # each direction as stiff as the rate carries
    np.testing.assert_allclose(rates, 2.0 * controller.damping * 60.0, rtol=1e-6)


@pytest.mark.parametrize(("law", "apart"), [(IMPEDANCE, 0.9), (ADMITTANCE, 0.003)])
def test_at_a_limit_the_whole_correction_is_made_smaller(law: str, apart: float, of_gallery) -> None:
    """Cut at single drives it pushed a hexapod aside, at 250 Hz through a singularity."""
    robot = of_gallery["gough_stewart"]
    k, limits = robot.kinematics, ActuatorLimits.of(robot.kinematics.mechanism)
    controller = make_controller(law, robot.dynamics, limits, 0.001)
    home, still = np.array(k.home), np.zeros(6)
    at = k.at(home)
    measured = Measured(at.actuated, np.zeros(6), home, still, at.joints, at.forward_jacobian, wrench=np.zeros(6))
    far = Reference.at_rest(displace(home, np.array([apart, 0.0, 0.0, 0.3 * apart, 0.0, 0.0])))
    held = controller.law(Reference.at_rest(home), measured)
    wanted, given = controller.law(far, measured) - held, controller.command(far, measured) - held
    assert controller.saturated.any()
    assert np.abs(given + held).max() == pytest.approx(limits.effort.max())
    np.testing.assert_allclose(given / np.linalg.norm(given), wanted / np.linalg.norm(wanted), atol=1e-6)
