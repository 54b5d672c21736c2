# SPDX-License-Identifier: Apache-2.0
"""The robot's model for control laws: one state at a time, in a few microseconds."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_description.rotations import pose_distance
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.weight import payload_wrench
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.dense import all_finite
from pkm_kinematics.status import closes

_HOME_MODE = 0  # the working mode of home
ROUNDED = 1e-6  # of the characteristic length: by how much interpolation may miss a motion space that turns


class ControlModel:
    """Inverse kinematics and inverse dynamics by the lean calls of the library, with `payload` on the platform.

    Where the model has no answer it returns NaN, which the guard refuses to apply. Poses off a configuration-dependent
    motion space, redundant actuators there, and redundant joints use the library's general calls. The turns of the
    first positions are the nearest to `joints` (n_joints,), which lie in the working mode `mode`.
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
        open_ = bool(kinematics.redundant_names)
        self._answers = kinematics.constant_space and not open_  # the lean call has, where there is one
        lean = not open_ and (self._answers or GraphTracker.serves(kinematics.engine))
        self._efforts = dynamics.lean_inverse(mode) if lean else None

    def positions(self, pose: Array) -> Array:
        """Actuator positions (n_actuated,) [rad or m] at a pose (7,), in the working mode."""
        if not all_finite(pose):
            return np.full(len(self._position_out), np.nan)
        if self._kinematics.redundant_names:
            return np.asarray(self._kinematics.inverse(pose, mode=self.mode).actuated, dtype=np.float64)
        if not closes(self._positions(pose, self._position_out)):
            return self._rounded(pose)
        return self._position_out.copy()

    def _rounded(self, pose: Array) -> Array:
        """Positions at the nearest existing pose, where interpolation left a configuration-dependent motion space."""
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
        """Actuator efforts (n_actuated,) [N m or N] of a motion: pose (7,), twist (6,), acceleration (6,), base frame.

        `joints` (n_joints,) are positions near those of the pose; `wrench` (6,) [N, N m] acts on the platform from
        outside, about its origin, base axes.
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
        if self._answers:
            return np.full(len(self._effort_out), np.nan)
        at = self._kinematics.at(pose, seed=joints)
        # by least squares, as the lean call: `Sharing` comes after the law
        answer = self._dynamics.inverse(at, twist, acceleration, wrench=wrench, distribution=Distribution())
        return np.asarray(answer.effort, dtype=np.float64)
