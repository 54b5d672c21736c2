# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to `Measured` for controllers, by a `Tracker`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.tracker import Tracker
from pkm_kinematics.status import closes

Array = NDArray[np.float64]


class PlatformObserver:
    """The measured motion of one machine, which stays in its working and assembly mode.

    `reason` is empty while readings make sense, and otherwise says why the last one was refused. A joint beyond its
    limit by the give of an end stop is no reason. `pose` (7,) is the one before the first reading, home by default.
    """

    def __init__(self, kinematics: Kinematics, pose: Array | None = None) -> None:
        self._kinematics = kinematics
        self._tracker = Tracker(kinematics, pose)
        self.reason = ""

    def forget(self, mode: int = 0) -> None:
        """Take the next reading as one of a platform that comes from home, or goes on from the last one.
        Where home is out of reach in the working mode, the last configuration is kept.
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
        if not closes(found.status):
            return None
        return Measured(positions, velocities, found.pose, found.twist, found.joints, found.jacobian)
