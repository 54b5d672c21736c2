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

    def request(self, word: str) -> Answer:
        """Do what a word says: the name of one of the methods below without arguments."""

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction (0 to 1) of their planned speed."""

    def change_working_mode(self, label: str) -> Answer:
        """Begin the change to the working mode of this label, or continue a halted change."""

    def enable(self) -> Answer:
        """Enable the drives."""
        return self.request("enable")

    def disable(self) -> Answer:
        """Disable the drives."""
        return self.request("disable")

    def emergency_stop(self) -> Answer:
        """Disable the drives at once, until a reset."""
        return self.request("emergency_stop")

    def reset(self) -> Answer:
        """Clear a fault of the machine; its drives stay disabled."""
        return self.request("reset")

    def pause(self) -> Answer:
        """Halt on the path."""
        return self.request("pause")

    def resume(self) -> Answer:
        """Go on with what was halted."""
        return self.request("resume")

    def stop(self) -> Answer:
        """Decelerate any motion on its path, drop those that wait, and hold."""
        return self.request("stop")

    def recover(self) -> Answer:
        """Find a lost platform again where it was last followed, or bring one that is outside back inside."""
        return self.request("recover")
