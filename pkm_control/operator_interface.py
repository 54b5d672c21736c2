# SPDX-License-Identifier: Apache-2.0
"""What a controller and its operator tell each other: states, outcomes, requests, answers. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol


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


STOPPED_SINCE = "it was stopped after this was asked for"


@dataclass(frozen=True)
class Answer:
    """Whether a request is done, and a message: where it is not, the reason."""

    success: bool
    message: str = ""


class OperatorRequests(Protocol):
    """Requests to a running robot. Calls may come from any thread, and wait for the answer."""

    def enable(self) -> Answer:
        """Enable the drives."""

    def disable(self) -> Answer:
        """Disable the drives."""

    def emergency_stop(self) -> Answer:
        """Disable the drives at once, until a reset."""

    def reset(self) -> Answer:
        """Clear a fault of the machine; its drives stay disabled."""

    def pause(self) -> Answer:
        """Halt on the path."""

    def resume(self) -> Answer:
        """Go on with what was halted."""

    def stop(self) -> Answer:
        """Decelerate whatever moves, and hold."""

    def recover(self) -> Answer:
        """Lead the robot out of a stop."""

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction (0 to 1) of their planned speed."""

    def change_working_mode(self, label: str) -> Answer:
        """Begin the change to the working mode of this label, or continue it."""
