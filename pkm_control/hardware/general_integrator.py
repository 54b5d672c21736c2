# SPDX-License-Identifier: Apache-2.0
"""Integration through the library's general calls, for motion spaces that turn with the pose (parasitic motion)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Inertial
from pkm_kinematics import Status

if TYPE_CHECKING:
    from pkm_dynamics import Dynamics

Array = NDArray[np.float64]

_USABLE = (int(Status.CONVERGED), int(Status.JOINT_LIMIT))


class GeneralIntegrator:
    """An `Integrator` that knows any motion space.

    Its state is that of the actuators; the platform follows by forward kinematics, so it cannot leave its motion space.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None) -> None:
        self._dynamics = dynamics
        self._kinematics = dynamics.kinematics
        self._runge_kutta = runge_kutta
        self._payload = payload
        n = len(self._kinematics.actuated_names)
        self.pose = np.array(self._kinematics.home)
        self.twist = np.zeros(6)
        self.positions = np.zeros(n)
        self.velocities = np.zeros(n)
        self._joints = np.array(self._kinematics.home_joints)

    def place(self, pose: Array) -> str:
        """Put the robot at rest at a pose (7,), in its home working mode."""
        solution = self._kinematics.inverse(pose)
        if int(solution.status) not in _USABLE:
            return str(solution.reason(0))
        self.pose[:] = pose
        self.twist[:] = 0.0
        self.positions[:] = solution.actuated
        self.velocities[:] = 0.0
        self._joints = np.array(solution.joints)
        return ""

    def advance(self, efforts: Array, h: float) -> str:
        """Let `h` seconds pass under constant efforts (n_actuated,): classical Runge-Kutta, or semi-implicit Euler."""
        q, v = self.positions, self.velocities
        try:
            if self._runge_kutta:
                a1 = self._accelerations(q, v, efforts)
                v2 = v + 0.5 * h * a1
                a2 = self._accelerations(q + 0.5 * h * v, v2, efforts)
                v3 = v + 0.5 * h * a2
                a3 = self._accelerations(q + 0.5 * h * v2, v3, efforts)
                v4 = v + h * a3
                a4 = self._accelerations(q + h * v3, v4, efforts)
                q = q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
                v = v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
            else:
                v = v + h * self._accelerations(q, v, efforts)
                q = q + h * v
            pose, twist, joints = self._platform(q, v)
        except _NoAnswerError as error:
            return str(error)
        self.pose[:], self.twist[:], self._joints = pose, twist, joints
        self.positions[:], self.velocities[:] = q, v
        return ""

    def _platform(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return pose (7,), twist (6,) and joints for the state of the actuators."""
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise _NoAnswerError("the integration diverged")
        solution = self._kinematics.forward(q, near=self.pose, seed=self._joints)
        if int(solution.status) not in _USABLE:
            raise _NoAnswerError(str(solution.reason(0)))
        twist = self._kinematics.platform_twist(solution.pose, v, seed=solution.joints)
        if not np.isfinite(twist).all():
            raise _NoAnswerError("the actuators do not determine the platform's twist: singular pose")
        return np.asarray(solution.pose), np.asarray(twist), np.asarray(solution.joints)

    def _accelerations(self, q: Array, v: Array, efforts: Array) -> Array:
        """Return the actuators' accelerations (n_actuated,)."""
        pose, twist, joints = self._platform(q, v)
        answer = self._dynamics.direct(pose, twist, efforts, payload=self._payload, seed=joints)
        if int(answer.status) not in _USABLE:
            raise _NoAnswerError(Status(int(answer.status)).meaning)
        motion = self._kinematics.motion(pose, twist, answer.acceleration, seed=joints)
        accelerations = np.asarray(motion.actuated_accelerations)
        if not np.isfinite(accelerations).all():
            raise _NoAnswerError("the joint accelerations are not determined: singular pose")
        return accelerations


class _NoAnswerError(Exception):
    """The library has no answer at a stage of the step; the text says why."""
