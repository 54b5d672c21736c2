# SPDX-License-Identifier: Apache-2.0
"""States of a controller and outcomes of motions: names and codes. Imports nothing heavy."""

from __future__ import annotations

from enum import IntEnum


class Mode(IntEnum):
    """What the controller is doing."""

    WAITING = 0  # no reading yet, or the machine says that its drives do not follow commands
    HOLDING = 1
    TRACKING = 2
    STOPPED = 3  # readings are silent or unusable
    PAUSED = 4  # a motion is halted on its path
    JOGGING = 5


class Outcome(IntEnum):
    """How a motion ended; the codes of the action FollowPlatformTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    PATH_TOLERANCE_VIOLATED = -2
    GOAL_TOLERANCE_VIOLATED = -3
    PREEMPTED = -4
    STATE_LOST = -5


def unready_to_jog(mode: Mode) -> str:
    """Why a controller in this mode takes no jog; empty where it takes one."""
    if mode in (Mode.WAITING, Mode.STOPPED):
        return f"the controller is {mode.name.lower()}"
    return "a motion runs; pause or stop it first" if mode is Mode.TRACKING else ""
