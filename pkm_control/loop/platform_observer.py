# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to `Measured` for controllers, by a `Tracker`."""

from __future__ import annotations

import numpy as np

from pkm_control.controllers.controller import Measured
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.tracker import Tracker
from pkm_kinematics.status import Status, closes


class PlatformObserver:
    """The measured motion of one machine, which stays in its working and assembly mode.

    `reason` is empty while readings make sense, and otherwise says why the last one was refused; the next is taken as
    one that goes on from the last that was not. A joint beyond its limit, by what an end stop gives, is no reason.

    Args:
        kinematics: of the robot.
        pose: of the platform (7,) before the first reading, home by default.
    """

    def __init__(self, kinematics: Kinematics, pose: Array | None = None) -> None:
        self._kinematics = kinematics
        self._tracker = Tracker(kinematics, pose)
        self.reason = ""
        self.singular = False  # a singularity of type 2 lies before the last reading

    def forget(self, mode: int = 0) -> None:
        """Take the next reading as one of a platform that comes from home.

        Args:
            mode: number of the working mode; where home is out of reach in it, the last configuration is kept.
        """
        home = np.array(self._kinematics.home)
        solution = self._kinematics.inverse(home, mode=mode)
        if closes(solution.status):
            self.start(home, np.array(solution.joints))

    def start(self, pose: Array, joints: Array) -> None:
        """Take the next reading as one that goes on from a pose (7,), base frame, with joint positions (n_joints,)."""
        self._tracker = Tracker(self._kinematics, pose, joints)

    @property
    def pose(self) -> Array:
        """The last known pose (7,)."""
        return self._tracker.last.pose

    def observe(self, positions: Array, velocities: Array) -> Measured | None:
        """Motion of platform and joints for positions, velocities (n_actuated,) [rad or m, per s]; None: a `reason`."""
        found = self._tracker.observe(positions, velocities)
        self.reason = "" if closes(found.status) else found.reason
        self.singular = found.status is Status.SINGULAR
        if not closes(found.status):
            return None
        return Measured(positions, velocities, found.pose, found.twist, found.joints, found.jacobian)
