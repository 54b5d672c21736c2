# SPDX-License-Identifier: Apache-2.0
"""What the parts of the controller node share: the follower, and the lock that its callers take."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.motion import Action
from pkm_description.errors import PkmError
from pkm_kinematics import Kinematics


@dataclass
class Controls:
    """The follower of the present description, None before there is one, and what it did last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    follower: TrajectoryFollower | None = None
    action: Action | None = None
    problem: str = ""  # why there is no follower

    @property
    def kinematics(self) -> Kinematics:
        """Of the robot."""
        return self.ready().check.kinematics

    def ready(self) -> TrajectoryFollower:
        """The follower.

        Returns:
            It.

        Raises:
            PkmError: there is none, with the reason.
        """
        if self.follower is None:
            raise PkmError(self.problem or "there is no robot description")
        return self.follower
