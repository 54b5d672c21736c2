# SPDX-License-Identifier: Apache-2.0
"""Integration in the actuators, for configuration-dependent motion spaces: one compiled call per step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.contact.surroundings import NOTHING, Touch, touched
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.status import closes

Array = NDArray[np.float64]


class ActuatorIntegrator:
    """An `Integrator` whose coordinates are the actuators, whatever the motion space.
    All joints are integrated, and their loops closed after each step. PkmError: more actuators than degrees of freedom.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        self._kinematics = dynamics.kinematics
        self._runge_kutta = runge_kutta
        self._robot = ActuatorDynamics(dynamics, payload)
        self.pose, self.twist = np.array(self._kinematics.home), np.zeros(6)
        self.wrench, self._touch = np.zeros(6), touch
        self.positions, self.velocities = self._robot.actuated, self._robot.velocities

    @staticmethod
    def serves(kinematics: Kinematics) -> bool:
        """Whether the actuators of a robot are coordinates of it."""
        return GraphTracker.serves(kinematics.engine)

    @property
    def mode(self) -> int:
        """Number of the working mode in which the robot was placed: home's."""
        return 0

    @property
    def passing(self) -> ActuatorDynamics:
        """The dynamics in the actuators, which tell the joints."""
        return self._robot

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        solution = self._kinematics.inverse(pose)
        if not closes(solution.status):
            return str(solution.reason(0))
        status = self._robot.place(np.array(pose, dtype=np.float64), np.array(solution.joints))
        if status is not Status.CONVERGED:
            return status.meaning
        self.positions[:] = solution.actuated
        self._read()
        return ""

    def carry(self, payload: Inertial | None) -> None:
        """As `Integrator.carry`."""
        self._robot.carry(payload)

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        if not np.isfinite(efforts).all():
            return "an effort is not finite"
        touched(self._touch, self.pose, self.twist, self.wrench)
        pushed = self._robot.platform().jacobian.T @ self.wrench  # virtual work: what it does to the actuators
        status = self._robot.step(efforts + pushed, h, self._runge_kutta)
        if status is not Status.CONVERGED:
            return status.meaning
        self.positions[:] = self._robot.actuated
        self._read()
        return ""

    def _read(self) -> None:
        found = self._robot.platform()
        self.pose[:], self.twist[:] = found.pose, found.twist
