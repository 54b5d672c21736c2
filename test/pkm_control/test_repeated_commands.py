# SPDX-License-Identifier: Apache-2.0
"""A controller that gives up, behind a forward controller, which repeats the last command until it is deactivated."""

from __future__ import annotations

import numpy as np

from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.operator_interface import Mode
from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.simulated_machine import SimulatedMachine

RATE = 1000.0
UNTIL_THE_BRAKES = 300  # periods: silence is noticed after 0.1 s, and a busy computer takes its time to act
PUSH = 60.0  # N m


class Forwarded(SimulatedMachine):
    """A Delta behind a forward controller; now and then, the drives hear somebody else."""

    repeated = True
    other = False

    def write(self, command: Array, answers: float | None = None) -> None:
        self.asked = np.array(command)

    def step(self, dt: float) -> None:
        super().write(np.full(3, PUSH) if self.other else self.asked)
        super().step(dt)


def strayed(of_gallery) -> ControlLoop:
    """A loop that has just given up, because the platform is too far from where it should be."""
    built = of_gallery["delta"]
    limits = ActuatorLimits.of(built.kinematics.mechanism)
    machine = Forwarded(built.dynamics, limits)
    loop = ControlLoop.of(machine, ComputedTorque(built.dynamics, limits), RATE)
    machine.configure()
    machine.activate()
    for _ in range(1000):
        if loop.period().action.withhold_command:
            break
        machine.other = True
    machine.other = False
    return loop


def test_a_platform_that_strays_is_not_thrown_by_what_was_asked_of_the_drives_last(of_gallery) -> None:
    loop = strayed(of_gallery)
    machine = loop.machine
    assert loop.last is not None
    assert loop.last.action.mode is Mode.STOPPED
    assert "where it should be" in loop.last.action.reason
    weight = of_gallery["delta"].dynamics.gravity(loop.last.action.measured.pose).effort
    np.testing.assert_allclose(machine.asked, weight, atol=1e-9)
    speed = np.abs(machine.read().velocities).max()
    for _ in range(UNTIL_THE_BRAKES):
        loop.period()
        assert np.abs(machine.read().velocities).max() < speed + 0.5


def test_it_is_said_once_so_that_the_silence_is_noticed(of_gallery) -> None:
    loop = strayed(of_gallery)
    loop.machine.asked = other = np.zeros(3)
    loop.period()
    assert loop.machine.asked is other
