# SPDX-License-Identifier: Apache-2.0
"""Integration through stretched or folded limbs into other working modes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.contact.surroundings import NOTHING, Touch, touched
from pkm_control.hardware.simulated.compiled_integrator import CompiledIntegrator
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.status import closes

Array = NDArray[np.float64]

NEAR = 0.1  # of home's regularity of the limbs: nearer to a singularity of type 1 the actuators are the coordinates
AWAY = 0.2  # farther from it the platform's are, again


class PassingIntegrator:
    """An `Integrator` in the platform's coordinates, and near singularities of type 1 in the actuators'.

    Both have the same equations of motion, in coordinates that are regular where they are used: a hand-over changes
    neither positions nor velocities. PkmError where the robot has more actuators than degrees of freedom.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        self._kinematics = dynamics.kinematics
        self._runge_kutta = runge_kutta
        self._platform = platform = CompiledIntegrator(dynamics, runge_kutta, payload, touch)
        self._actuators = ActuatorDynamics(dynamics, payload)
        self._passing = False
        self.pose, self.twist = platform.pose, platform.twist
        self.positions, self.velocities = platform.positions, platform.velocities
        self.wrench, self._touch = platform.wrench, touch
        platform.place(np.array(self._kinematics.home))
        at_home = platform.regularity()
        self._near, self._away = NEAR * at_home, AWAY * at_home

    @staticmethod
    def serves(kinematics: Kinematics) -> bool:
        """Whether a robot has limbs with several branches, and actuators that are coordinates."""
        branches = int(np.prod(kinematics.tables.blocks["branches"]))
        return branches > 1 and len(kinematics.actuated_names) == kinematics.mobility

    @property
    def mode(self) -> int:
        """Number of the working mode, as far as closed forms tell it: the last one while a limb passes."""
        return self._platform.mode

    @property
    def passing(self) -> ActuatorDynamics | None:
        """The dynamics in the actuators near a type 1 singularity, where the platform does not tell the joints."""
        return self._actuators if self._passing else None

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        self._passing = False
        return self._platform.place(pose)

    def carry(self, payload: Inertial | None) -> None:
        """As `Integrator.carry`."""
        self._platform.carry(payload)
        self._actuators.carry(payload)

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        if self._passing:
            return self._pass(efforts, h)
        problem = self._platform.advance(efforts, h)
        if problem:  # a limb may have been stretched within the step
            return self._pass(efforts, h) if np.isfinite(efforts).all() and self._take_over() else problem
        if self._platform.regularity() < self._near:
            self._take_over()
        return ""

    def _take_over(self) -> bool:
        """Begin to integrate in the actuators, without any jump; whether that is possible."""
        pose, twist = self.pose.copy(), self.twist.copy()
        motion = self._kinematics.motion(pose, twist, seed=self._platform.joints(), mode=self.mode)
        if not closes(motion.status) or self._actuators.place(pose, np.array(motion.joints)) is not Status.CONVERGED:
            return False
        self._passing = self._actuators.move(self.velocities) is Status.CONVERGED
        return self._passing

    def _pass(self, efforts: Array, h: float) -> str:
        """Make a step in the actuators, and return to the platform where the limbs are regular enough again."""
        moving = self._actuators
        before = moving.actuated
        touched(self._touch, self.pose, self.twist, self.wrench)
        pushed = moving.platform().jacobian.T @ self.wrench  # virtual work: what it does to the actuators
        status = moving.step(efforts + pushed, h, self._runge_kutta)
        if status is not Status.CONVERGED:
            return str(status.meaning)
        pose, joints = moving.pose, moving.joints
        self.pose[:], self.twist[:] = pose, moving.twist
        self.positions += moving.actuated - before
        self.velocities[:] = moving.velocities
        if self._platform.regularity_at(pose, joints) > self._away:
            self._passing = not self._platform.resume(joints)
        return ""
