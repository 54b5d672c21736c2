# SPDX-License-Identifier: Apache-2.0
"""The simulated machine where a limb is stretched or folded: it passes, and nothing jumps at the hand-over."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.energy import energy
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.integrator import PassingIntegrator
from pkm_hardware.simulated.simulated_machine import SimulatedMachine

H = 1e-3  # s


@pytest.mark.parametrize(("name", "mode", "passages"), [("five_bar", 1, 1), ("five_bar", 2, 1), ("planar_3rrr", 6, 2)])
def test_it_passes_into_another_working_mode(of_gallery, name: str, mode: int, passages: int) -> None:
    k = of_gallery[name].kinematics
    dynamics = Dynamics(k, friction=False)
    robot, twin = PassingIntegrator(dynamics, None), ActuatorDynamics(dynamics)
    assert robot.place(np.array(k.home)) == ""
    begin, goal = robot.positions.copy(), np.array(k.inverse(k.home, mode=mode).actuated)
    passed, was, gains = 0, False, []
    for i in range(3000):
        share = min(1.0, i * H / 2.5)
        target = begin + share**3 * (10.0 - 15.0 * share + 6.0 * share**2) * (goal - begin)
        assert twin.follow(robot.positions) is not None
        twin.move(robot.velocities)
        tau = twin.efforts(400.0 * (target - robot.positions) - 40.0 * robot.velocities)
        before = robot.positions.copy(), robot.velocities.copy()
        assert robot.advance(tau, H) == ""
        expected = before[1] + H * twin.accelerations(tau)
        assert np.abs(robot.velocities - expected).max() < 0.02 * max(1.0, np.abs(before[1]).max())  # it never jumps
        passed += was and robot.passing is None
        was = robot.passing is not None
        gains.append(was)
    assert passed == passages
    assert any(gains)
    assert robot.mode == mode
    np.testing.assert_allclose(robot.positions, goal, atol=1e-5)
    np.testing.assert_allclose(robot.pose, k.home, atol=1e-5)


def test_a_hand_over_changes_no_energy(of_gallery) -> None:
    """Swinging freely through the stretched limb; weighed in the platform's coordinates before and after."""
    k = of_gallery["five_bar"].kinematics
    dynamics = Dynamics(k, friction=False)

    def swing(h: float) -> tuple[float, list[bool]]:
        robot = PassingIntegrator(dynamics, None)
        robot.place(np.array(k.home))
        rates = np.array(k.inverse(k.home, mode=1).actuated) - robot.positions
        robot.twist[:] = k.at(np.array(k.home)).platform_twist(3.0 * rates)
        robot.advance(np.zeros(2), 1e-9)
        energies, passing = [], []
        for _ in range(round(0.4 / h)):
            passing.append(robot.passing is not None)
            if not passing[-1]:
                energies.append(
                    float(energy(dynamics, dynamics.kinematics.at(robot.pose, mode=robot.mode), robot.twist).total)
                )
            assert robot.advance(np.zeros(2), h) == ""
        assert robot.mode == 1
        return float(np.ptp(energies)) / energies[0], passing

    coarse, passing = swing(1e-3)
    assert True in passing
    assert not passing[0]
    assert not passing[-1]
    fine, _ = swing(5e-4)
    assert coarse < 1e-3
    assert fine < coarse / 8.0


def test_the_machine_tells_its_joints_all_the_way(of_gallery) -> None:
    k, dynamics = of_gallery["planar_3rrr"].kinematics, of_gallery["planar_3rrr"].dynamics
    machine = SimulatedMachine(dynamics, ActuatorLimits.of(k.mechanism))
    machine.configure()
    machine.activate()
    twin = ActuatorDynamics(dynamics)
    begin, goal = machine.read().positions, np.array(k.inverse(k.home, mode=6).actuated)
    joints = machine.joints
    for i in range(2800):
        share = min(1.0, i * H / 2.5)
        state = machine.read()
        target = begin + share**3 * (10.0 - 15.0 * share + 6.0 * share**2) * (goal - begin)
        twin.follow(state.positions)
        twin.move(state.velocities)
        machine.write(twin.efforts(400.0 * (target - state.positions) - 40.0 * state.velocities))
        machine.step(H)
        assert not machine.fault
        now = machine.joints
        assert np.isfinite(now).all()
        assert np.abs(now - joints).max() < 0.05
        joints = now
        np.testing.assert_allclose(joints[k.engine.actuated_column], machine.read().positions, atol=1e-9)
    there = k.inverse(k.home, mode=6).joints
    np.testing.assert_allclose(np.exp(1j * joints), np.exp(1j * there), atol=1e-3)  # whole turns aside
