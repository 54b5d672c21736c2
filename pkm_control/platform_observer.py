# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to the motion of the platform, following one assembly mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured
from pkm_control.kernels.follow import follow
from pkm_kinematics import Status
from pkm_kinematics.lean import bind

if TYPE_CHECKING:
    from pkm_kinematics import Kinematics

Array = NDArray[np.float64]

_USABLE = (int(Status.CONVERGED), int(Status.JOINT_LIMIT))  # a joint may be beyond its limit by what an end stop gives
_CONDITION = 1e10  # of the task Jacobian, about: beyond it encoder noise is all that is left


class PlatformObserver:
    """Forward kinematics that continues from the last pose, so that the assembly mode is kept.

    `reason` is empty while readings make sense, and otherwise says why the last one was refused. Where the motion space
    does not turn with the pose, a reading takes one compiled call; the general call serves the other robots, and the
    readings that the compiled one cannot follow.
    """

    def __init__(self, kinematics: Kinematics, pose: Array | None = None) -> None:
        self.kinematics = kinematics
        self.pose = np.array(kinematics.home if pose is None else pose, dtype=np.float64)
        self.reason = ""
        self._joints: Array | None = None  # at `pose`, once one was observed
        n, freedoms = len(kinematics.actuated_names), kinematics.mobility
        bodies = len(kinematics.tables.bodies)
        self._columns = kinematics.engine.body_column[2:]
        self._found = np.array(self.pose)
        self._rates = np.zeros((n, 6))
        self._positions = np.zeros(bodies)
        self._scratch = (np.zeros((freedoms, freedoms)), np.zeros(max(n, freedoms)), np.zeros(6), self._positions)
        self._follow = self._bind() if kinematics.constant_space else None

    def observe(self, positions: Array, velocities: Array) -> Measured | None:
        """Return the measured motion for actuator positions and velocities (n_actuated,), or None with a `reason`."""
        if not (np.isfinite(positions).all() and np.isfinite(velocities).all()):
            self.reason = "an actuator reading is not finite"
            return None
        found = self._quickly(positions) or self._generally(positions)
        if found is None:
            return None
        pose, joints, jacobian = found
        if jacobian is None:
            self.reason = "the platform's twist is not determined by the actuators (type 2 singularity)"
            return None
        self.pose, self._joints = pose, joints
        self.reason = ""
        return Measured(positions, velocities, pose, jacobian @ velocities, joints, jacobian)

    def _quickly(self, positions: Array) -> tuple[Array, Array, Array | None] | None:
        """Return pose, joints and Jacobian by one compiled call, or None where that does not arrive."""
        if self._follow is None:
            return None
        self._found[:] = self.pose
        if self._follow(np.ascontiguousarray(positions), self._found) != Status.CONVERGED:
            self._follow = self._bind()  # its workspace holds what it gave up at
            return None
        joints = np.array(self.kinematics.home_joints)  # the platform's own branch stays at home: no solver reads it
        joints[self._columns] = self._positions[2:]
        return self._found.copy(), joints, self._inverted(self._rates @ self.kinematics.task.subspace)

    def _generally(self, positions: Array) -> tuple[Array, Array, Array | None] | None:
        solution = self.kinematics.forward(positions, near=self.pose, seed=self._joints)
        if int(solution.status) not in _USABLE:
            self.reason = f"forward kinematics: {solution.reason(0)}"
            return None
        pose, joints = np.asarray(solution.pose, np.float64), np.asarray(solution.joints, np.float64)
        jacobian = np.asarray(self.kinematics.forward_jacobian(pose, seed=joints), dtype=np.float64)
        return pose, joints, jacobian if np.isfinite(jacobian).all() else None

    def _inverted(self, rates: Array) -> Array | None:
        """Return the platform's twist per actuator rates (6, n_actuated), from rates (n_actuated, freedoms)."""
        try:
            inverse = np.linalg.inv(rates) if rates.shape[0] == rates.shape[1] else np.linalg.pinv(rates)
        except np.linalg.LinAlgError:
            return None
        if not np.abs(inverse).max() * np.abs(rates).max() < _CONDITION:
            return None
        return np.asarray(self.kinematics.task.subspace @ inverse)

    def _bind(self) -> Callable[[Array, Array], int]:
        """Return the compiled call with a fresh workspace, which begins at home."""
        tables = self.kinematics.tables
        fixed = (tables.bodies, tables.closures, tables.blocks, *tables.workspace(), self.kinematics.task.subspace)
        home = np.array(self.kinematics.home)
        q = np.array(self.kinematics.inverse(home).actuated)
        rest = (np.zeros(7), self._rates, *self._scratch)
        call = bind(follow, fixed, (q, home, *rest))
        return lambda positions, pose: call(positions, pose, *rest)
