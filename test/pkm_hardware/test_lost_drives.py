# SPDX-License-Identifier: Apache-2.0
"""Drives of the simulated machine that leave their commands stop with a reason; brakes take energy away."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode, Lifecycle
from pkm_hardware.simulated.drive_parts import Brakes
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between

RATE = 250.0


def driven(machine: SimulatedMachine, goal: Array, seconds: float) -> float:
    """Command positions from where it is to others, as a trajectory controller does that knows of no platform; the
    largest speed on the way, in shares of the limits.
    """
    start, fastest = machine.read().positions.copy(), 0.0
    for i in range(round((seconds + 2.0) * RATE)):
        s = min(1.0, i / RATE / seconds)
        if machine.lifecycle is not Lifecycle.ACTIVE:
            break
        machine.write(start + s**3 * (10.0 - 15.0 * s + 6.0 * s * s) * (goal - start))
        for _ in range(4):
            machine.step(0.25 / RATE)
            fastest = float(np.maximum(fastest, (np.abs(machine.read().velocities) / machine.limits.velocity).max()))
    return fastest


@pytest.mark.parametrize("leg", [0, 1])
def test_a_hexapod_whose_legs_lose_hold_of_it_stops_and_is_reset(of_gallery, leg: int) -> None:
    """One leg longer by a twentieth of its range: a type 2 singularity lies on the way."""
    kinematics, dynamics = of_gallery["gough_stewart"].kinematics, of_gallery["gough_stewart"].dynamics
    limits = ActuatorLimits.of(kinematics.mechanism)
    machine = SimulatedMachine(dynamics, limits, command_mode=CommandMode.POSITION)
    machine.configure()
    machine.activate()
    home = machine.read().positions.copy()
    driven(machine, home + 0.05 * (limits.upper - limits.lower) * (np.arange(6) == leg), 1.0)
    assert machine.lifecycle is Lifecycle.FAULT
    assert "from its commanded position" in machine.fault
    assert "reset" in machine.fault
    assert machine.time < 0.6
    assert not machine.read().velocities.any()
    assert np.abs(displacement_between(np.array(kinematics.home), machine.pose)).max() < 1.0
    machine.reset()
    assert machine.lifecycle is Lifecycle.INACTIVE
    machine.activate()
    driven(machine, home, 0.1)
    assert not machine.fault
    np.testing.assert_allclose(machine.read().positions, home, atol=1e-6)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_no_leg_passes_its_largest_speed_before_a_jam_is_noticed(of_gallery, seed: int) -> None:
    """Goals within the ranges that the legs of a hexapod cannot take together."""
    limits, random = ActuatorLimits.of(of_gallery["gough_stewart"].kinematics.mechanism), np.random.default_rng(seed)
    for trial in range(20 if seed > 1 else 8):
        machine = SimulatedMachine(of_gallery["gough_stewart"].dynamics, limits, command_mode=CommandMode.POSITION)
        machine.configure()
        machine.activate()
        start = machine.read().positions.copy()
        way = limits.lower + (limits.upper - limits.lower) * random.uniform(0.05, 0.95, 6) - start
        way *= 1.0 if trial % 2 == 0 else 0.3
        assert driven(machine, start + way, max(1.0, 1.9 * float((np.abs(way) / limits.velocity).max()))) < 1.02
        assert machine.lifecycle is Lifecycle.FAULT


def test_positions_that_are_followed_are_no_fault(of_gallery) -> None:
    built = of_gallery["delta"]
    machine = SimulatedMachine(
        built.dynamics, ActuatorLimits.of(built.kinematics.mechanism), command_mode=CommandMode.POSITION
    )
    machine.configure()
    machine.activate()
    goal = np.array(
        built.kinematics.inverse(displace(np.array(built.kinematics.home), np.array([0.1, 0, 0.1, 0, 0, 0.0]))).actuated
    )
    driven(machine, goal, 0.3)
    for _ in range(200):  # at once, as no drive can
        machine.write(goal - 0.3)
        machine.step(1.0 / RATE)
    assert not machine.fault
    np.testing.assert_allclose(machine.read().positions, goal - 0.3, atol=1e-3)


def test_brakes_take_energy_away_from_coupled_actuators() -> None:
    random = np.random.default_rng(3)
    for _ in range(40):
        root = random.normal(size=(6, 6)) * np.geomspace(0.1, 10.0, 6)
        mass = root @ root.T + 0.1 * np.eye(6)
        brakes = Brakes(mass, np.full(6, 50.0))
        velocities = random.normal(size=6) * 5.0
        energy, h = [0.5 * velocities @ mass @ velocities], 1e-3
        for _ in range(50):
            velocities = velocities + h * np.linalg.solve(mass, brakes.efforts(velocities, h))
            energy.append(0.5 * velocities @ mass @ velocities)
            if brakes.holding:
                break
        assert (np.diff(energy) <= 1e-9 * energy[0]).all()


def test_a_falling_hexapod_is_stopped_by_its_brakes(of_gallery) -> None:
    built = of_gallery["gough_stewart"]
    limits = ActuatorLimits.of(built.kinematics.mechanism)
    machine = SimulatedMachine(built.dynamics, limits, command_timeout=0.02)
    machine.configure()
    machine.activate()
    for _ in range(75):
        machine.write(np.zeros(6))
        machine.step(2e-3)
    fallen, fastest = machine.pose.copy(), 0.0
    for _ in range(200):
        machine.step(2e-3)
        fastest = float(np.maximum(fastest, np.abs(machine.read().velocities).max()))
    assert not machine.fault
    assert not machine.twist.any()
    assert fastest < limits.velocity.min()
    assert np.abs(displacement_between(fallen, machine.pose)).max() < 0.15
