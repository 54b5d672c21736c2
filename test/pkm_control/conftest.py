# SPDX-License-Identifier: Apache-2.0
"""A follower with the machine it drives."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.keep_out import KeepOuts
from pkm_control.loop.followed_motion import Action
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import EffortGuard
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between

PERIOD = 4e-3


class Steered:
    """A follower and the simulated machine it drives; `run` lets time pass and asserts that nothing goes wrong."""

    def __init__(self, kinematics: Kinematics, dynamics: Dynamics, space: KeepOuts | None = None) -> None:
        self.kinematics, self.dynamics = kinematics, dynamics
        limits = ActuatorLimits.of(kinematics.mechanism)
        guard = EffortGuard(
            limits.effort, 5 * PERIOD, "gravity", lambda pose: np.asarray(dynamics.gravity(pose).effort)
        )
        controller = ComputedTorque(dynamics, limits, natural_frequency=40.0)
        self.follower = TrajectoryFollower(kinematics, controller, guard, 0.5 * PERIOD, space=space)
        self.machine = SimulatedMachine(dynamics, limits)
        self.machine.configure()
        self.machine.activate()
        self.actions: list[Action] = []

    def run(self, seconds: float) -> Action:
        for _ in range(max(1, round(seconds / PERIOD))):
            state = self.machine.read()
            assert not state.fault, state.fault
            action = self.follower.update(state.time, state.time, state.positions, state.velocities)
            assert action.mode is not Mode.STOPPED, action.reason
            self.machine.write(action.command)
            self.machine.step(PERIOD)
            self.actions.append(action)
        return self.actions[-1]

    def offset(self, *by: float) -> Array:
        pose = np.array(self.kinematics.home)
        pose[: len(by)] += by
        return pose

    def way(self, *poses: Array, seconds: float = 1.0) -> PointTrajectory:
        still = np.zeros((len(poses), 6))
        return PointTrajectory(np.arange(len(poses)) * seconds, np.array(poses), still, still)

    @property
    def references(self) -> Array:
        return np.array([one.reference.pose for one in self.actions if one.reference is not None])

    def assert_well(self) -> None:
        """References stayed in what the robot can do, went on smoothly, and the machine followed."""
        deficits = self.follower.check.deficits(self.references[::5])
        assert deficits.max() == 0.0, deficits.max(axis=0)
        space = [one for one in self.actions if one.reference is not None and one.measured is not None]
        errors = [np.abs(displacement_between(one.measured.pose, one.reference.pose)).max() for one in space]
        assert max(errors) < 2e-3
        assert self.follower.controller.saturations.sum() == 0
        accelerations = np.array([one.reference.acceleration for one in space])
        assert np.abs(np.diff(accelerations, axis=0)).max() < 1500.0 * PERIOD


@pytest.fixture
def steered(of_gallery):
    """Makes a follower with its machine from the name of a robot."""
    return lambda name, space=None: Steered(of_gallery[name].kinematics, of_gallery[name].dynamics, space)
