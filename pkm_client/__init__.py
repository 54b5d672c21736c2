# SPDX-License-Identifier: Apache-2.0
"""`Robot`: what scripts and the commands `pkm move`, `pkm stop`, ... write against, in one process or over ROS."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pkm_client.client_errors import MotionEndedError, NoRobotError, RefusedError

if TYPE_CHECKING:
    from pkm_client.backend import Result, RobotState, Task
    from pkm_client.robot import Robot
    from pkm_control.loop_settings import Setup

__all__ = ["MotionEndedError", "NoRobotError", "RefusedError", "Result", "Robot", "RobotState", "Setup", "Task"]

_LATE = dict.fromkeys(("Result", "RobotState", "Task"), "pkm_client.backend")
_LATE |= {"Robot": "pkm_client.robot", "Setup": "pkm_control.loop_settings"}


def __getattr__(name: str) -> Any:
    """Import heavy modules on first access, so that `pkm estop` does not wait for what it does not use."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)
