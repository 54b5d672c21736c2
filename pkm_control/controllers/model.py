# SPDX-License-Identifier: Apache-2.0
"""The robot's model as a control law asks for it: one state at a time, in a few microseconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.weight import payload_wrench
from pkm_description.mechanism import Inertial
from pkm_description.rotations import pose_distance
from pkm_dynamics import Distribution, Dynamics
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.short_vectors import all_finite
from pkm_kinematics.status import closes

Array = NDArray[np.float64]

_HOME_MODE = 0  # the working mode of home
ROUNDED = 1e-6  # of the characteristic length: by how much interpolation may miss a motion space that turns


class ControlModel:
    """Inverse kinematics and inverse dynamics by the lean calls of the library, `payload` on the platform.

    Where the model has no answer it returns NaN, which the guard refuses to apply. Poses beside a motion space that
    turns with the pose are left to the library's general calls, and so are redundant actuators there.

    Args:
        kinematics: of the robot.
        dynamics: of the same.
        mode: number of the working mode.
        joints: positions (n_joints,) in that mode whose turns the first ones are nearest to; its own where None.
    """

    def __init__(
        self, kinematics: Kinematics, dynamics: Dynamics, mode: int = _HOME_MODE, joints: Array | None = None
    ) -> None:
        n = len(kinematics.actuated_names)
        self._kinematics = kinematics
        self._dynamics = dynamics
        self._position_out = np.zeros(n)
        self._effort_out = np.zeros(n)
        self._motion = np.zeros(25)  # pose, twist, acceleration and wrench, as the lean call takes them
        self.mode = mode
        self.payload: Inertial | None = None
        self._positions = kinematics.lean_inverse(mode, joints)
        lean = kinematics.constant_space or GraphTracker.serves(kinematics.engine)
        self._efforts = dynamics.lean_inverse(mode) if lean else None

    def positions(self, pose: Array) -> Array:
        """Actuator positions at a pose, in the working mode.

        Args:
            pose: of the platform (7,), base frame.

        Returns:
            (n_actuated,) [rad or m].
        """
        if not all_finite(pose):
            return np.full(len(self._position_out), np.nan)
        if not closes(self._positions(pose, self._position_out)):
            return self._rounded(pose)
        return self._position_out.copy()

    def _rounded(self, pose: Array) -> Array:
        """Return the positions at the pose that exists beside one which interpolation put outside a turning space."""
        at = None if self._kinematics.constant_space else self._kinematics.nearest(pose)
        missed = np.inf if at is None else float(pose_distance(pose, at.pose, self._kinematics.characteristic_length))
        if at is None or not missed < ROUNDED * self._kinematics.characteristic_length:
            return np.full(len(self._position_out), np.nan)
        if not closes(self._positions(np.array(at.pose), self._position_out)):
            return np.full(len(self._position_out), np.nan)
        return self._position_out.copy()

    def efforts(
        self, pose: Array, twist: Array, acceleration: Array, joints: Array, wrench: Array | None = None
    ) -> Array:
        """Actuator efforts of a motion.

        Args:
            pose: of the platform (7,), base frame.
            twist: (6,) [m/s, rad/s].
            acceleration: (6,) [m/s^2, rad/s^2].
            joints: positions (n_joints,) near those of the pose.
            wrench: from outside on the platform (6,), about its origin, base axes [N, N m]; none where None.

        Returns:
            (n_actuated,) [N m or N].
        """
        self._motion[:7], self._motion[7:13], self._motion[13:19] = pose, twist, acceleration
        self._motion[19:] = 0.0 if wrench is None else wrench
        if self.payload is not None:
            rows = (part[None] for part in (pose, twist, acceleration))
            self._motion[19:] += payload_wrench(self.payload, self._kinematics.mechanism.gravity, *rows)[0]
            wrench = self._motion[19:].copy()
        if not all_finite(self._motion):
            return np.full(len(self._effort_out), np.nan)
        if self._efforts is not None and closes(self._efforts(self._motion, self._effort_out)):
            return self._effort_out.copy()
        if self._kinematics.constant_space:
            return np.full(len(self._effort_out), np.nan)
        answer = self._dynamics.inverse(  # by least squares, as the lean call: `Sharing` comes after the law
            pose, twist, acceleration, wrench=wrench, seed=joints, distribution=Distribution()
        )
        return np.asarray(answer.effort, dtype=np.float64)
