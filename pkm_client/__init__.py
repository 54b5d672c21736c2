# SPDX-License-Identifier: Apache-2.0
"""`Robot`: what scripts and the commands `pkm move`, `pkm stop`, ... write against, in one process or over ROS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_client.client_errors import MotionEndedError, NoRobotError, RefusedError
from pkm_runtime.optional import late

if TYPE_CHECKING:
    from pkm_client.backend import Result, RobotState, Task
    from pkm_client.robot import Robot
    from pkm_control.loop_settings import Setup

__all__ = ["MotionEndedError", "NoRobotError", "RefusedError", "Result", "Robot", "RobotState", "Setup", "Task"]

# heavy modules on first access, so that `pkm estop` does not wait for what it does not use
__getattr__ = late(
    __name__,
    {
        "pkm_client.backend": ("Result", "RobotState", "Task"),
        "pkm_client.robot": ("Robot",),
        "pkm_control.loop_settings": ("Setup",),
    },
)
