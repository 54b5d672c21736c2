# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to the motion of the whole robot, following one assembly mode, and its modes by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.mode_tracker import Modes, ModeTracker
from pkm_kinematics.status import Status

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
        status, reason = Status(int(motion.status)), ""  # forward kinematics asks no limits
        if status is not Status.CONVERGED:
            reason = self.kinematics.inverse(solution.pose, seed=motion.joints).reason(0)
        self.tracking = True
        modes = self._modes.observe(solution.pose, motion.joints)
        self.last = TrackedMotion(
            status, reason, solution.pose, twist, motion.joints, motion.velocities, float(solution.residual), modes
        )
        return self.last

    def _lost(self, status: Status, reason: str, residual: float) -> TrackedMotion:
        last = self.last
        self.tracking = False
        return TrackedMotion(status, reason, last.pose, last.twist, last.joints, last.velocities, residual, UNKNOWN)
