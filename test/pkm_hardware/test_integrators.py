# SPDX-License-Identifier: Apache-2.0
"""Two integrators with different states (platform, actuators) and different code must find the same motion."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.platform_kernels import attitude_rate
from pkm_hardware.simulated.integrator import ActuatorIntegrator, CompiledIntegrator, GeneralIntegrator, make_integrator
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between

H = 5e-4


@pytest.mark.parametrize("payload", [None, Inertial(mass=1.5, com=np.array([0.01, 0.02, -0.03]))])
@pytest.mark.parametrize("robot", ["delta", "gough_stewart", "planar_3rrr", "agile_eye", "gough_stewart_7"])
def test_both_integrators_agree(robot: str, payload: Inertial | None) -> None:
    dynamics = Dynamics(Kinematics(load_mechanism(robot)), friction=False)
    fast, general = CompiledIntegrator(dynamics, payload), GeneralIntegrator(dynamics, payload)
    home = np.array(dynamics.kinematics.home)
    weight = dynamics.gravity(home, payload=payload).effort
    push = weight + 0.02 * np.random.default_rng(3).uniform(-1, 1, len(weight)) * np.abs(weight).max()
    if not weight.any():
        push = np.random.default_rng(3).uniform(-0.2, 0.2, len(weight))
    for integrator in (fast, general):
        assert integrator.place(home.copy()) == ""
        for _ in range(60):
            assert integrator.advance(push, H) == ""
    way = np.linalg.norm(fast.pose[:3] - home[:3]) + np.linalg.norm(displacement_between(home, fast.pose)[3:])
    assert way > 1e-5  # it did move
    np.testing.assert_allclose(fast.positions, general.positions, atol=1e-6 * way)
    np.testing.assert_allclose(fast.velocities, general.velocities, atol=1e-5 * way / (60 * H))
    np.testing.assert_allclose(fast.pose[:3], general.pose[:3], atol=1e-6 * way)
    np.testing.assert_allclose(displacement_between(fast.pose, general.pose)[3:], 0.0, atol=1e-6 * way + 1e-12)


@pytest.mark.parametrize("robot", ["tripod_3prs", "tricept", "carpal_wrist", "five_bar"])
def test_integration_in_the_actuators_agrees_with_the_general_one(robot: str) -> None:
    dynamics = Dynamics(Kinematics(load_mechanism(robot)))
    payload = Inertial(mass=0.5, com=np.array([0.01, 0.02, -0.03]))
    fast, general = (kind(dynamics, payload) for kind in (ActuatorIntegrator, GeneralIntegrator))
    home = np.array(dynamics.kinematics.home)
    weight = dynamics.gravity(home, payload=payload).effort
    push = 1.1 * weight + 0.05 * np.array([1.0, -0.7, 0.3])[: len(weight)] * max(np.abs(weight).max(), 1.0)
    close, steps = 1e-6, 40
    for integrator in (fast, general):
        assert integrator.place(home) == ""
        for _ in range(steps):
            assert integrator.advance(push, H) == ""
    moved = np.abs(general.positions - dynamics.kinematics.inverse(home).actuated).max()
    assert moved > 1e-6
    np.testing.assert_allclose(fast.positions, general.positions, rtol=0.0, atol=close * moved)
    np.testing.assert_allclose(
        fast.velocities, general.velocities, rtol=0.0, atol=close * np.abs(general.velocities).max()
    )
    np.testing.assert_allclose(fast.twist, general.twist, rtol=0.0, atol=close * np.abs(general.twist).max())


@pytest.mark.parametrize("robot", ["tripod_3prs", "tricept"])
def test_a_motion_space_that_turns_is_integrated_in_the_actuators(robot: str) -> None:
    dynamics = Dynamics(Kinematics(load_mechanism(robot)), friction=False)
    integrator = make_integrator(dynamics, None)
    assert isinstance(integrator, ActuatorIntegrator)
    home = np.array(dynamics.kinematics.home)
    assert integrator.place(home) == ""
    weight = np.asarray(dynamics.gravity(home).effort)
    for _ in range(20):
        assert integrator.advance(weight, 1e-3) == ""
    np.testing.assert_allclose(integrator.pose, home, atol=1e-9)
    # pushed off its balance it moves, and stays where its limbs can be
    for _ in range(50):
        assert integrator.advance(weight * np.array([1.1, 0.95, 1.0]), 1e-3) == ""
    assert np.linalg.norm(integrator.velocities) > 1e-4
    assert dynamics.kinematics.inverse(integrator.pose).status == 0


def test_all_joints_of_a_halted_machine_rest() -> None:
    mechanism = load_mechanism("tripod_3prs")
    machine = SimulatedMachine(Dynamics(Kinematics(mechanism)), ActuatorLimits.of(mechanism))
    machine.configure()
    machine.activate()
    for _ in range(20):
        machine.write(np.array([40.0, 10.0, 20.0]))
        machine.step(1e-3)
    assert np.abs(machine._motion()[1]).max() > 0.1
    machine.deactivate()
    np.testing.assert_array_equal(machine._motion()[1], 0.0)


def test_refusals_leave_everything_as_it_was() -> None:
    dynamics = Dynamics(Kinematics(load_mechanism("delta")))
    for kind in (CompiledIntegrator, GeneralIntegrator, ActuatorIntegrator):
        integrator = kind(dynamics, None)
        assert integrator.place(np.array(dynamics.kinematics.home)) == ""
        before = integrator.pose.copy(), integrator.positions.copy()
        assert integrator.advance(np.full(3, np.nan), 1e-3) != ""
        if kind is CompiledIntegrator:  # the other one's state are angles, which turn full circles before they fail
            assert integrator.advance(np.array([1e12, -1e12, 1e12]), 1e-3) != ""
        np.testing.assert_array_equal(integrator.pose, before[0])
        np.testing.assert_array_equal(integrator.positions, before[1])
        far = np.array(dynamics.kinematics.home)
        far[0] += 3.0
        assert integrator.place(far) != ""


def test_attitudes_are_integrated_with_order_four() -> None:
    """A body whose angular velocity is a known function of time; the reference takes far smaller steps."""

    def rate_at(t: float) -> np.ndarray:
        return np.array([0, 0, 0, 2 * np.cos(3 * t), 1.5 * np.sin(2 * t), 1 + t])

    def rate(displacement: np.ndarray, t: float) -> np.ndarray:
        out = np.empty(6)
        attitude_rate(displacement, rate_at(t), out)
        return out

    def turn(n: int) -> np.ndarray:
        h, pose = 1.0 / n, np.array([0, 0, 0, *Rotation.random(rng=1).as_quat()])
        for i in range(n):
            t = i * h
            u1 = rate(np.zeros(6), t)
            u2 = rate(0.5 * h * u1, t + 0.5 * h)
            u3 = rate(0.5 * h * u2, t + 0.5 * h)
            u4 = rate(h * u3, t + h)
            pose = displace(pose, h / 6 * (u1 + 2 * u2 + 2 * u3 + u4))
        return pose

    reference = turn(2000)
    errors = [np.linalg.norm(displacement_between(turn(n), reference)[3:]) for n in (20, 40)]
    assert errors[1] == pytest.approx(errors[0] / 16.0, rel=0.15)
