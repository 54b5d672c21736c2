# SPDX-License-Identifier: Apache-2.0
"""What those who ask a controller for something share: the loop that runs now, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from pkm_control.loop.running_loop import RunningLoop
from pkm_description.errors import PkmError
from pkm_kinematics import Kinematics


@dataclass
class Controls:
    """The loop of the present description, None before there is one."""

    loop: RunningLoop | None = None
    problem: str = ""  # why there is no loop

    @property
    def kinematics(self) -> Kinematics:
        """Of the robot."""
        return self.ready().kinematics

    def ready(self) -> RunningLoop:
        """The loop.

        Returns:
            It.

        Raises:
            PkmError: there is none, with the reason.
        """
        if self.loop is None:
            raise PkmError(self.problem or "there is no robot description")
        return self.loop
