# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to the motion of the whole robot, following one assembly mode, and its modes by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.kernels.tracking import track_reading
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.lean import bind
from pkm_kinematics.mode_tracker import Modes, ModeTracker
from pkm_kinematics.status import Status
from pkm_kinematics.task import chain_state

Array = NDArray[np.float64]
UNKNOWN = Modes("", "")


@dataclass(frozen=True, eq=False)
class TrackedMotion:
    """The robot as the actuators show it: pose (7,) and twist (6,) of the platform, joints and velocities (n_joints,).

    Where `status` is not CONVERGED, `reason` says why, and the other values are those of the last reading that was;
    labels of modes are then empty.
    """

    status: Status
    reason: str
    pose: Array
    twist: Array
    joints: Array
    velocities: Array
    residual: float
    modes: Modes


class AssemblyModeTracker:
    """Forward kinematics that continues from the last reading, so that assembly mode and working mode are kept.

    Starts at home. A reading that cannot be continued from the last pose is tried from home, which is where a machine
    that was moved by hand or started anew is most likely to be found.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self.tracking = False
        self._modes = ModeTracker(kinematics)
        home, joints, rest = kinematics.home, kinematics.home_joints, np.zeros(len(kinematics.joint_names))
        self.last = TrackedMotion(Status.DIVERGED, "no reading yet", home, np.zeros(6), joints, rest, 0.0, UNKNOWN)

    def observe(self, positions: Array, velocities: Array) -> TrackedMotion:
        """Return the motion for actuator positions and velocities (n_actuated,)."""
        return self._straight_on(positions, velocities) or self._by_any_way(positions, velocities)

    def _straight_on(self, positions: Array, velocities: Array) -> TrackedMotion | None:
        """The motion where the platform's path alone leads on from the last one, in one compiled call; else None."""
        if not self.kinematics.constant_space:
            return None
        q, qd = (np.array(x, dtype=np.float64) for x in (positions, velocities))
        if not (np.isfinite(q).all() and np.isfinite(qd).all()):
            return None
        pose, joints = np.array(self.last.pose), np.array(self.last.joints)
        twist, rates = np.zeros(6), np.zeros(len(joints))
        status, error = self._track(q, qd, pose, joints, twist, rates)
        if status not in (Status.CONVERGED, Status.JOINT_LIMIT):
            return None
        return self._found(Status(status), pose, twist, joints, rates, error)

    @cached_property
    def _track(self) -> Callable[..., Any]:
        k, e, t = self.kinematics, self.kinematics.engine, self.kinematics.tables
        task, m, f = e.task, len(k.actuated_names), k.mobility
        matrices = (np.empty((m, 6)), np.empty((m, 6)), np.empty((f, f)))
        vectors = (
            np.empty(max(m, f)),
            np.empty(6),
            np.empty((len(t.bodies), 3)),
            np.empty(m),
            np.empty(m),
            np.zeros(6),
        )
        fixed = (
            t.bodies, t.closures, t.blocks, *t.workspace(),
            task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task),
            e.body_column, e.chain_column, np.ascontiguousarray(task.subspace), k.characteristic_length,
            np.empty(7), *matrices, *vectors,
        )  # fmt: skip
        joints = np.array(k.home_joints)
        q = joints[e.actuated_column]
        return bind(
            track_reading, fixed, (q, np.zeros(m), np.array(k.home), joints, np.zeros(6), np.zeros(len(joints)))
        )

    def _by_any_way(self, positions: Array, velocities: Array) -> TrackedMotion:
        """The motion, also through singularities of type 1, or from home, or where the motion space turns."""
        solution = self.kinematics.forward(positions, near=self.last.pose, seed=self.last.joints)
        if int(solution.status) not in (Status.CONVERGED, Status.JOINT_LIMIT):
            again = self.kinematics.forward(positions, near=self.kinematics.home, seed=self.kinematics.home_joints)
            solution = again if int(again.status) == Status.CONVERGED else solution
        status = Status(int(solution.status))
        if status not in (Status.CONVERGED, Status.JOINT_LIMIT):
            return self._lost(status, solution.reason(0), float(solution.residual))
        twist = np.asarray(self.kinematics.platform_twist(solution.pose, velocities, seed=solution.joints))
        if not np.isfinite(twist).all():
            return self._lost(Status.SINGULAR, "the actuators do not determine the platform's twist", 0.0)
        motion = self.kinematics.motion(solution.pose, twist, seed=solution.joints)
        if not (np.isfinite(motion.joints).all() and np.isfinite(motion.velocities).all()):
            return self._lost(Status(int(motion.status)), "the passive joints have no solution there", 0.0)
        status = Status(int(motion.status))  # forward kinematics asks no limits
        return self._found(status, solution.pose, twist, motion.joints, motion.velocities, float(solution.residual))

    def _found(
        self, status: Status, pose: Array, twist: Array, joints: Array, rates: Array, residual: float
    ) -> TrackedMotion:
        reason = "" if status is Status.CONVERGED else self.kinematics.inverse(pose, seed=joints).reason(0)
        self.tracking = True
        modes = self._modes.observe(pose, joints)
        self.last = TrackedMotion(status, reason, pose, twist, joints, rates, residual, modes)
        return self.last

    def _lost(self, status: Status, reason: str, residual: float) -> TrackedMotion:
        last = self.last
        self.tracking = False
        return TrackedMotion(status, reason, last.pose, last.twist, last.joints, last.velocities, residual, UNKNOWN)
