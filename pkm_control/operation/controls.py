# SPDX-License-Identifier: Apache-2.0
"""The present control loop, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from pkm_control.loop.running_loop import RunningLoop
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError


@dataclass
class Controls:
    """The loop of the present description, None before there is one."""

    loop: RunningLoop | None = None
    problem: str = ""  # why there is no loop

    @property
    def kinematics(self) -> Kinematics:
        """The robot's kinematics."""
        return self.ready().kinematics

    def ready(self) -> RunningLoop:
        """The loop; raises `PkmError` with the reason where there is none."""
        if self.loop is None:
            raise PkmError(self.problem or "there is no robot description")
        return self.loop
