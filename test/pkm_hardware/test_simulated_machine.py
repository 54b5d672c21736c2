# SPDX-License-Identifier: Apache-2.0
"""The simulated machine: life cycle, physics that must hold for any machine, end stops, and faults instead of NaN."""

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode, Lifecycle, LifecycleError
from pkm_hardware.simulated.drive_parts import CAPACITY, Encoder
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics, Status


def energy(machine: SimulatedMachine, dynamics: Dynamics) -> float:
    """Return kinetic energy [J] by inverse dynamics: half the work of starting with the present velocity in one second.

    With T = v^T M v / 2, the efforts for the acceleration v from rest, less those at rest, are K^-T M v; times the
    actuator rates K v that is 2 T.
    """
    still = np.zeros(6)
    started = dynamics.inverse(machine.pose, still, machine.twist).effort - dynamics.inverse(machine.pose).effort
    return 0.5 * float(started @ machine.read().velocities)


def run(machine: SimulatedMachine, seconds: float, dt: float = 1e-3) -> None:
    for _ in range(round(seconds / dt)):
        machine.step(dt)


def active(kinematics, dynamics, limits, **settings) -> SimulatedMachine:
    machine = SimulatedMachine(dynamics, limits, **settings)
    machine.configure()
    machine.activate()
    return machine


def test_life_cycle_has_the_order_of_ros2_control(kinematics, dynamics, limits) -> None:
    machine = SimulatedMachine(dynamics, limits)
    assert machine.lifecycle is Lifecycle.UNCONFIGURED
    with pytest.raises(LifecycleError, match="configure first"):
        machine.activate()
    machine.configure()
    assert machine.lifecycle is Lifecycle.INACTIVE
    machine.write(np.full(3, 50.0))
    run(machine, 0.05)
    np.testing.assert_array_equal(machine.pose, kinematics.home)  # brakes are closed
    assert machine.time == pytest.approx(0.05)
    machine.activate()
    with pytest.raises(LifecycleError, match="deactivate first"):
        machine.configure()
    run(machine, 0.05)  # no command since activation: it falls
    assert machine.twist[2] < -0.1
    machine.deactivate()
    assert machine.lifecycle is Lifecycle.INACTIVE
    assert not machine.read().velocities.any()
    machine.cleanup()
    assert machine.lifecycle is Lifecycle.UNCONFIGURED


def test_gravity_efforts_hold_it_still(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits)
    machine.write(dynamics.gravity(kinematics.home).effort)
    run(machine, 0.5)
    assert np.linalg.norm(machine.pose[:3] - kinematics.home[:3]) < 1e-9


def test_a_free_fall_keeps_its_energy(mechanism, kinematics, limits) -> None:
    """Without friction, what it gains in speed it loses in height, although arms and rods turn."""
    dynamics = Dynamics(kinematics, friction=False)

    def drift(dt: float) -> float:
        machine = active(kinematics, dynamics, limits)
        done, work = 0.0, 0.0
        for _ in range(round(0.16 / dt)):
            weight = dynamics.gravity(machine.pose).effort
            before = machine.read().velocities
            machine.step(dt)
            after = machine.read().velocities
            middle = 0.5 * (weight @ before + dynamics.gravity(machine.pose).effort @ after)
            work -= middle * dt
            done = energy(machine, dynamics)
        assert done > 3.0  # J: it did move
        return abs(done - work) / done

    # the work is summed by the trapezium rule, so its error is of order dt^2, and so is the sum's
    coarse, fine = drift(1e-3), drift(5e-4)
    assert coarse < 1e-4
    assert fine < 0.3 * coarse


def test_rk4_converges_with_its_order(kinematics, dynamics, limits) -> None:
    def fall(dt: float) -> np.ndarray:
        machine = active(kinematics, Dynamics(kinematics, friction=False), limits)
        machine.write(np.array([30.0, -20.0, 5.0]))
        run(machine, 0.064, dt)
        return machine.pose[:3]

    reference = fall(1.25e-4)
    errors = [np.linalg.norm(fall(dt) - reference) for dt in (1e-3, 5e-4)]
    assert errors[0] < 1e-9 or errors[1] < errors[0] / 8.0  # 16 in the limit


def test_joints_stay_those_of_the_pose(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits)
    machine.write(np.array([20.0, -10.0, -15.0]))
    run(machine, 0.2)
    assert not machine.fault
    motion = kinematics.motion(machine.pose, machine.twist, seed=machine.joints)
    np.testing.assert_allclose(machine.joints, motion.joints, atol=1e-9)
    np.testing.assert_allclose(machine.joint_velocities, motion.velocities, atol=1e-9)
    found = kinematics.forward(machine.read().positions, near=machine.pose)
    np.testing.assert_allclose(found.pose, machine.pose, atol=1e-9)


def test_drives_are_limited_and_say_so(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits)
    machine.write(np.array([1e6, -1e6, 0.0]))
    machine.step(1e-3)
    np.testing.assert_array_equal(machine.read().efforts, [200.0, -200.0, 0.0])
    np.testing.assert_array_equal(machine.saturated, [True, True, False])


def test_end_stops_hold_what_falls_on_them(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits)
    machine.write(np.full(3, -60.0))  # arms up, against gravity, until the stops
    for _ in range(3000):
        machine.step(1e-3)
        assert (machine.read().positions > limits.lower - 0.03).all()
    assert not machine.fault
    assert machine.lifecycle is Lifecycle.ACTIVE
    np.testing.assert_allclose(machine.read().positions, limits.lower, atol=0.03)
    assert np.abs(machine.read().velocities).max() < 0.05


def test_position_commands_are_reached_and_held(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits, command_mode=CommandMode.POSITION)
    run(machine, 0.1)  # no command yet: it holds
    np.testing.assert_allclose(machine.pose, kinematics.home, atol=1e-6)
    target = machine.read().positions + np.array([0.2, -0.1, 0.05])
    machine.write(target)
    run(machine, 1.0)
    # dry friction leaves a little: 1 N m over the stiffness of the position loop, inertia * bandwidth^2 / 4
    np.testing.assert_allclose(machine.read().positions, target, atol=1e-3)


def test_velocity_commands_are_followed_and_silence_stops(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits, command_mode=CommandMode.VELOCITY, command_timeout=0.05)
    for _ in range(100):
        machine.write(np.array([0.3, -0.2, 0.1]))
        machine.step(1e-3)
    np.testing.assert_allclose(machine.read().velocities, [0.3, -0.2, 0.1], atol=0.02)
    run(machine, 0.2)
    np.testing.assert_allclose(machine.read().velocities, 0.0, atol=0.02)


def test_silence_stops_the_efforts(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits, command_timeout=0.01)
    machine.write(np.full(3, -15.0))
    run(machine, 0.009)
    assert machine.read().efforts.all()
    run(machine, 0.005)
    assert not machine.read().efforts.any()


def test_silence_closes_the_brakes_and_the_next_command_opens_them(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits, command_timeout=0.02)
    weight = np.asarray(dynamics.gravity(kinematics.home).effort)
    for _ in range(100):
        machine.write(weight + 20.0)
        machine.step(1e-3)
    fast, at = np.abs(machine.read().velocities), machine.pose.copy()
    assert fast.max() > 0.5
    assert machine.silent_for == 0.0
    run(machine, 0.019)
    assert machine.read().velocities.any()
    run(machine, 0.05)
    assert machine.silent_for > 0.0
    assert not machine.read().velocities.any()
    held = machine.pose.copy()
    assert np.linalg.norm(held - at) < 0.1  # where it would have gone a metre in that second, and then fallen
    run(machine, 1.0)
    np.testing.assert_array_equal(machine.pose, held)
    machine.write(weight + 5.0)
    machine.step(1e-3)
    assert machine.silent_for == 0.0
    assert machine.read().velocities.any()


def test_brakes_take_their_time_and_no_more_effort_than_they_have(kinematics, dynamics, limits) -> None:
    """What is stopped by a given effort takes the way that its energy says."""
    machine = active(kinematics, dynamics, limits, command_timeout=1e-3)
    machine.twist[2] = -4.0  # m/s
    machine._robot.advance(np.zeros(3), 1e-6)
    energy = 0.5 * machine._drive.mass @ machine.read().velocities @ machine.read().velocities
    start = machine.read().positions
    turned = np.zeros(3)
    for _ in range(400):
        machine.step(1e-3)
        turned = np.abs(machine.read().positions - start)
        if not machine.read().velocities.any():
            break
    assert not machine.read().velocities.any()
    work = CAPACITY * limits.effort @ turned
    assert work > 0.5 * energy  # brakes do not stop it at once ...
    assert work < 2.0 * energy + 0.1  # ... and not for ever; the mass matrix changes on the way, and weight helps


def test_switching_the_mode_forgets_the_command(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits)
    machine.write(np.full(3, 100.0))
    machine.set_command_mode(CommandMode.POSITION)
    run(machine, 0.1)
    np.testing.assert_allclose(machine.pose, kinematics.home, atol=1e-6)


@pytest.mark.parametrize("command", [np.zeros(2), np.array([0.0, np.nan, 0.0]), np.array([np.inf, 0.0, 0.0])])
def test_bad_commands_are_refused_and_change_nothing(kinematics, dynamics, limits, command) -> None:
    machine = active(kinematics, dynamics, limits)
    weight = dynamics.gravity(kinematics.home).effort
    machine.write(weight)
    with pytest.raises(ValueError, match="command"):
        machine.write(command)
    machine.step(1e-3)
    np.testing.assert_allclose(machine.read().efforts, weight)


def test_a_place_out_of_reach_is_a_fault_and_not_a_number(kinematics, dynamics, limits) -> None:
    machine = SimulatedMachine(dynamics, limits)
    far = kinematics.home.copy()
    far[2] = -3.0
    machine.configure(far)
    assert machine.lifecycle is Lifecycle.FAULT
    assert machine.fault
    with pytest.raises(LifecycleError):
        machine.activate()
    machine.configure()
    assert machine.lifecycle is Lifecycle.INACTIVE
    assert machine.fault == ""


def test_being_torn_apart_is_a_fault_with_a_reason_and_the_last_good_reading(kinematics, dynamics, limits) -> None:
    """Without end stops and limits, constant efforts drive it out of its workspace, through a singular pose."""
    from dataclasses import replace

    free = replace(
        limits,
        lower=np.full(3, -np.inf),
        upper=np.full(3, np.inf),
        effort=np.full(3, np.inf),
        velocity=np.full(3, np.inf),
    )
    machine = active(kinematics, dynamics, free)
    machine.write(np.array([2000.0, -2000.0, 1000.0]))
    run(machine, 2.0)
    assert machine.lifecycle is Lifecycle.FAULT
    assert machine.fault
    state = machine.read()
    assert state.fault == machine.fault
    for values in (state.positions, state.velocities, state.efforts, machine.pose, machine.twist, machine.joints):
        assert np.isfinite(values).all()


def test_a_hidden_payload_makes_it_fall_faster_than_the_model_says(kinematics, dynamics, limits) -> None:
    weight = dynamics.gravity(kinematics.home).effort
    machine = active(kinematics, dynamics, limits, payload=Inertial(mass=2.0))
    machine.write(weight)
    run(machine, 0.1)
    assert machine.twist[2] < -0.05


def test_encoders_are_read_not_the_truth(kinematics, dynamics, limits) -> None:
    machine = active(kinematics, dynamics, limits, encoder=Encoder(resolution=0.01, position_noise=0.004, seed=1))
    readings = np.array([machine.read().positions for _ in range(20)])
    np.testing.assert_allclose(readings / 0.01, np.round(readings / 0.01), atol=1e-9)
    assert readings.std() > 0.0


@pytest.mark.parametrize("dt", [0.0, -1e-3, float("nan"), float("inf")])
def test_steps_that_make_no_sense_are_refused(kinematics, dynamics, limits, dt: float) -> None:
    with pytest.raises(ValueError, match="step"):
        active(kinematics, dynamics, limits).step(dt)


def test_brakes_know_the_mass_of_every_working_mode() -> None:
    """With that of home's they never brought these arms to rest, which turn in another one."""
    dynamics = Dynamics(Kinematics(load_mechanism("five_bar")))
    k = dynamics.kinematics
    start, end = k.inverse(k.home, mode=1), np.array([0.04, 1.03])
    machine = SimulatedMachine(dynamics, ActuatorLimits.of(k.mechanism), command_timeout=0.0)
    machine.configure()
    machine.activate()
    robot = machine._robot
    robot.passing = moving = robot._actuators
    moving.place(k.home, start.joints)
    for share in np.linspace(0.0, 1.0, 50):
        assert moving.follow(start.actuated + share * (end - start.actuated)) is Status.CONVERGED
    moving.move(np.array([-12.0, 17.7]))
    for value, of in ((robot.pose, moving.pose), (robot.positions, end), (robot.twist, moving.twist)):
        value[:] = of
    robot.velocities[:] = moving.velocities
    run(machine, 0.15)
    assert machine._brakes.holding
    assert not robot.velocities.any()
