# SPDX-License-Identifier: Apache-2.0
"""A platform that fell, by a load that nobody knows of or by drives that give nothing, is led back by `recover`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pkm_client import RefusedError, Robot, Setup
from pkm_client.simulated import SimulatedBackend
from pkm_control.controllers.controller import Measured
from pkm_control.loop.platform_locator import PlatformLocator
from pkm_control.operator_interface import Mode
from pkm_control.robot_loop import make_controller
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.status import closes

RATE = 250.0  # Hz


def loaded(mass: float, aside: float = 0.0) -> Callable[[SimulatedMachine], Callable[[], None]]:
    """What puts a body [kg], aside along x [m], on the platform unknown to the controller, and takes it off again."""

    def act(machine: SimulatedMachine) -> Callable[[], None]:
        machine.carry(Inertial(mass, np.array([aside, 0.0, 0.0]), 0.01 * mass * np.eye(3)))
        return lambda: machine.carry(None)

    return act


def without(*drives: int) -> Callable[[SimulatedMachine], Callable[[], None]]:
    """What takes all effort from some drives, and gives it back."""

    def act(machine: SimulatedMachine) -> Callable[[], None]:
        given = machine.write

        def less(command: Array, answers: float | None = None) -> None:
            weak = command.copy()
            weak[list(drives)] = 0.0
            given(weak, answers)

        machine.write = less  # type: ignore[method-assign]

        def again() -> None:
            machine.write = given  # type: ignore[method-assign]

        return again

    return act


def fallen(robot: Robot, fall: Callable[[SimulatedMachine], Callable[[], None]]) -> SimulatedMachine:
    """Have it fall, and assert that it did; what made it fall is over then."""
    assert isinstance(robot._backend, SimulatedBackend)
    machine = robot._backend.loop.machine
    assert isinstance(machine, SimulatedMachine)
    robot.wait(0.1)
    over = fall(machine)
    robot.wait(2.0)
    for _ in range(100):
        if not machine.twist.any():
            break
        robot.wait(0.1)
    assert robot.state.mode is Mode.STOPPED
    assert robot.state.reason
    assert not machine.twist.any()  # its brakes hold it
    over()
    return machine


@pytest.mark.parametrize(
    ("name", "fall", "outside"),
    [
        ("delta", loaded(200.0), True),
        ("delta", without(0), False),
        pytest.param("tripod_3prs", loaded(200.0), True, marks=pytest.mark.slow),
        pytest.param("tripod_3prs", without(0), True, marks=pytest.mark.slow),
        pytest.param("quattro", without(1), False, marks=pytest.mark.slow),
        ("gough_stewart", without(*range(6)), False),
        pytest.param("gough_stewart", without(0), False, marks=pytest.mark.slow),
    ],
)
def test_who_fell_is_led_back(name: str, fall: Callable[[SimulatedMachine], Callable[[], None]], outside: bool) -> None:
    with Robot.simulated(name, False, Setup(rate=RATE)) as robot:
        machine = fallen(robot, fall)
        check = robot._backend.loop.follower.check
        assert bool(check.standing(machine.pose)) == outside
        answer = robot.recover()
        assert ("moves back inside" in answer) == outside
        fastest = 0.0
        for _ in range(400):
            robot.wait(0.05)
            fastest = float(np.maximum(fastest, (np.abs(machine.read().velocities) / machine.limits.velocity).max()))
            if not robot.state.moving:
                break
        state = robot.state
        assert state.mode is Mode.HOLDING, state.reason
        assert fastest < 0.5
        assert check.standing(state.reference) == ""
        assert np.abs(displacement_between(machine.pose, state.reference)).max() < 1e-3
        assert robot.recover() == "nothing is wrong: the platform stands well"


@pytest.mark.parametrize(
    "fall",
    [
        pytest.param(loaded(1000.0), id="1 t", marks=pytest.mark.slow),
        pytest.param(loaded(2500.0), id="2.5 t"),
        pytest.param(loaded(2500.0, 0.05), id="2.5 t, aside", marks=pytest.mark.slow),
    ],
)
def test_who_fell_through_a_singularity_is_not_moved(fall: Callable[[SimulatedMachine], Callable[[], None]]) -> None:
    """Several assembly modes fit its readings, and efforts of one throw who is in another. Led home, it is known."""
    with Robot.simulated("gough_stewart", False, Setup(rate=RATE)) as robot:
        machine = fallen(robot, fall)
        why = r"the platform's pose is unknown: the limbs may have lost hold .* modes fit its readings .*by hand"
        for _ in range(2):
            with pytest.raises(RefusedError, match=why):
                robot.recover()
            stays(robot, machine)
        robot.disable()
        robot.reset()
        robot.enable()
        stays(robot, machine)
        assert "must be led home by hand" in robot.state.reason
        robot.disable()
        machine.configure()  # where it was led to
        robot.reset()
        robot.enable()
        robot.wait(0.5)
        assert robot.state.mode is Mode.HOLDING
        assert np.abs(displacement_between(machine.pose, robot.kinematics.home)).max() < 1e-3


@pytest.mark.slow
def test_who_was_stretched_through_a_singularity_of_type_1_is_to_be_led_by_hand() -> None:
    with Robot.simulated("quattro", False, Setup(rate=RATE)) as robot:
        machine = fallen(robot, loaded(500.0))
        with pytest.raises(
            RefusedError, match=r"singularity of type 1: .* must be led back by hand and then recovered"
        ):
            robot.recover()
        assert "by hand" in robot.state.reason
        assert " old" not in robot.state.reason  # its readings come
        stays(robot, machine)
        robot.disable()
        machine.configure()  # where it was led to, in the working mode of the controller
        robot.enable()
        robot.wait(0.5)
        assert robot.recover() == "nothing is wrong: the platform stands well"
        assert robot.state.mode is Mode.HOLDING
        robot.emergency_stop()
        robot.wait(0.1)
        with pytest.raises(RefusedError, match=r"reset the machine \(pkm reset\), then enable"):  # nothing by hand
            robot.recover()
        assert np.abs(displacement_between(machine.pose, robot.kinematics.home)).max() < 1e-3


def stays(robot: Robot, machine: SimulatedMachine) -> None:
    """Assert that nothing is sent to it."""
    before = machine.pose.copy()
    robot.wait(0.5)
    assert robot.state.mode is Mode.STOPPED
    np.testing.assert_allclose(machine.pose, before, atol=1e-9)


def test_who_recovers_right_after_an_emergency_stop_is_told_of_it() -> None:
    with Robot.simulated("five_bar", False, Setup(rate=RATE)) as robot:
        for _ in range(5):  # the loop had not always shown the stop yet
            robot.emergency_stop()
            with pytest.raises(RefusedError, match="emergency stop"):
                robot.recover()
            robot.reset()
            robot.enable()


@pytest.mark.by_day("pd_gravity")
@pytest.mark.parametrize("law", ["pd_gravity", "adaptive"])
def test_a_hexapod_near_a_type_2_singularity_is_held_by_laws_in_the_actuators(law: str) -> None:
    """Where gains by the mass matrix of home would act 33 times as strongly: it fell at rest."""
    near = np.array([0.17, 0.114, 0.817, 0.238, 0.089, 0.076, 0.964])
    near[3:] /= np.linalg.norm(near[3:])
    with Robot.simulated("gough_stewart", realtime=False, setup=Setup(controller=law, rate=500.0)) as robot:
        home = robot.kinematics.home
        robot._backend.loop.follower.check.noise = None  # of encoders that have none
        assert robot.kinematics.singularity(near).type2 < 0.05 * robot.kinematics.singularity(home).type2
        assert robot.move_to(near, 0.2).result().max_position_error < 1e-3
        robot.jog([0.021, -0.014, 0.002], [-0.042, 0.056, 0.074], 1.0)
        robot.wait(0.5)
        assert robot.state.mode is Mode.HOLDING
        assert robot.state.position_error < 1e-4
        robot.move_to(home)


@pytest.mark.parametrize(("share", "readings", "stops"), [(1.5, 20, True), (1.5, 3, False), (1.2, 20, False)])
def test_a_drive_that_races_turns_the_drives_off(share: float, readings: int, stops: bool) -> None:
    """As of a hexapod that is pushed through a singularity, at 4.3 times the limit; not for one wrong reading."""
    with Robot.simulated("gough_stewart", False, Setup(rate=RATE, controller="admittance")) as robot:
        machine = robot._backend.loop.machine
        read, left = machine.read, [readings]

        def racing():
            state = read()
            left[0] -= 1
            return replace(state, velocities=share * machine.limits.velocity) if left[0] >= 0 else state

        machine.read = racing
        robot.wait((readings + 10) / RATE)
        state = robot.state
        assert (state.mode is Mode.STOPPED) == stops, state.reason
        assert ("its limit is 2 m/s" in state.reason) == stops


def test_a_platform_that_yields_into_another_working_mode_is_let_go(of_gallery) -> None:
    """Its drives pushed it on, saturated, 0.7 m from where it was to be."""
    robot = of_gallery["five_bar"]
    controller = make_controller("admittance", robot.dynamics, ActuatorLimits.of(robot.kinematics.mechanism), 1e-3)
    locator, k = PlatformLocator(controller, 0.01), robot.kinematics
    n = len(k.actuated_names)
    for mode, wrong in ((0, ""), (1, "working mode")):
        at = k.at(k.home, mode=mode)
        assert closes(at.status)
        measured = Measured(at.actuated, np.zeros(n), np.array(k.home), np.zeros(6), at.joints, at.forward_jacobian)
        assert locator.astray(measured, False) == ""
        found = locator.astray(measured, True)
        assert wrong in found
        assert bool(found) == bool(wrong)


PUSHED_BY_HAND = """\
task: {force_axes: [y], wrench: [0, 0, 0, 0, 0, 0]}
surroundings:
  points: [[0, 0, 0]]
  planes:
    hand: {point: [0, 0, -100], normal: [0, 1, 0], stiffness: 5000, damping: 0, friction: 0}
"""


@pytest.mark.parametrize(("way", "border"), [(1.0, "end of its range"), (-1.0, "limits")])
def test_a_push_leads_no_platform_out_of_where_it_can_be_held(way: float, border: str, tmp_path) -> None:
    """By 15 N, in three seconds, a planar 3-RRR fell through a singularity."""
    (tmp_path / "force.yaml").write_text(PUSHED_BY_HAND)
    setup = Setup(controller="hybrid", rate=RATE, force_file=tmp_path / "force.yaml")
    with Robot.simulated("planar_3rrr", False, setup) as robot:
        loop = robot._backend.loop
        machine, period = loop.machine, loop.period
        hand = machine._surroundings.touch.solids[0]
        reasons, speeds = set(), []

        def pushed(periods: int = 1):
            depth = 15.0 / 5000.0 if machine.time < 4.0 else -1.0
            hand[:3], hand[3:6] = machine.pose[:3], (0.0, way, 0.0)
            hand[1] += way * depth
            found = period(periods)
            reasons.add(found.action.reason)
            speeds.append(np.max(np.abs(machine.read().velocities) / machine.limits.velocity))
            return found

        loop.period = pushed
        robot.wait(4.0)
        assert robot.state.mode in (Mode.HOLDING, Mode.JOGGING), robot.state.reason
        assert any(border in reason and "held there" in reason for reason in reasons), reasons
        robot.wait(1.0)
        assert robot.state.mode is Mode.HOLDING
        assert max(speeds) < 0.5


def test_after_an_emergency_stop_the_platform_is_where_it_was() -> None:
    """From home, the straight way of the drives to there leads through a singularity: nothing led it back."""
    there = np.array([-0.046, -0.238, -0.121, -0.227, 0.276, -0.335, 0.872])
    there[3:] /= np.linalg.norm(there[3:])
    with Robot.simulated("hexaglide", False, Setup(rate=RATE)) as robot:
        robot.move_to(there)
        robot.emergency_stop()
        robot.reset()
        robot.enable()
        robot.wait(0.1)
        assert robot.state.mode is Mode.HOLDING, robot.state.reason
        np.testing.assert_allclose(robot.state.pose, there, atol=1e-4)
