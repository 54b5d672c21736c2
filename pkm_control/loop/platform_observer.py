# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to what controllers take: a `Tracker`, whose answers are `Measured`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.tracker import Tracker
from pkm_kinematics.status import Status, closes

Array = NDArray[np.float64]


class PlatformObserver:
    """The measured motion of one machine, in the working and assembly mode that it was in before.

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
        """Take the next reading as one that goes on from a configuration.

        Args:
            pose: of the platform (7,), base frame.
            joints: positions (n_joints,) there.
        """
        self._tracker = Tracker(self._kinematics, pose, joints)

    @property
    def pose(self) -> Array:
        """The last pose (7,) that was known."""
        return self._tracker.last.pose

    def observe(self, positions: Array, velocities: Array) -> Measured | None:
        """The measured motion of a reading.

        Args:
            positions: of the actuators (n_actuated,) [rad or m].
            velocities: of the actuators (n_actuated,) [rad/s or m/s].

        Returns:
            The motion of platform and joints, or None, with a `reason`.
        """
        found = self._tracker.observe(positions, velocities)
        self.reason = "" if closes(found.status) else found.reason
        self.singular = found.status is Status.SINGULAR
        if not closes(found.status):
            return None
        return Measured(positions, velocities, found.pose, found.twist, found.joints, found.jacobian)
