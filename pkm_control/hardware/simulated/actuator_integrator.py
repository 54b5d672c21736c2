# SPDX-License-Identifier: Apache-2.0
"""Integration in the actuators, for motion spaces that turn with the pose: one compiled call per step."""

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

    All joints are integrated, and their loops closed after each step.

    Args:
        dynamics: of the robot.
        runge_kutta: classical Runge-Kutta, else semi-implicit Euler.
        payload: what the platform carries, in its frame.
        touch: solids in its way.

    Raises:
        PkmError: the robot has more actuators than freedoms.
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
        """Whether the actuators of a robot are coordinates of it.

        Args:
            kinematics: of the robot.

        Returns:
            They are.
        """
        return GraphTracker.serves(kinematics.engine)

    @property
    def mode(self) -> int:
        """Number of the working mode in which the robot was placed: home's."""
        return 0

    @property
    def passing(self) -> ActuatorDynamics:
        """What moves the robot, and tells its joints."""
        return self._robot

    def place(self, pose: Array) -> str:
        """Put the robot at rest at a pose, in its home working mode.

        Args:
            pose: of the platform (7,), base frame.

        Returns:
            Why it cannot be there; empty where it is.
        """
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
        """The platform carries something else from now on, and moves on as it does.

        Args:
            payload: in the platform's frame; nothing where None.
        """
        self._robot.carry(payload)

    def advance(self, efforts: Array, h: float) -> str:
        """Let time pass under constant efforts.

        Args:
            efforts: of the actuators (n_actuated,) [N m or N].
            h: length of the step [s].

        Returns:
            Why no motion goes on, everything being left as it was; empty where it does.
        """
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
