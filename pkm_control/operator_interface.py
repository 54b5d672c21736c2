# SPDX-License-Identifier: Apache-2.0
"""What a controller and its operator tell each other: laws, states, outcomes, requests, answers. Nothing is heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

EFFORT_LAWS = COMPUTED_TORQUE, PD_GRAVITY, ADAPTIVE = "computed_torque", "pd_gravity", "adaptive"
FORCE_LAWS = IMPEDANCE, ADMITTANCE, HYBRID = "impedance", "admittance", "hybrid"  # for what is touched
POSITION = "position"  # for drives that take positions
LAWS = (*EFFORT_LAWS, *FORCE_LAWS, POSITION)  # the first is the default
NATURAL_FREQUENCY = 120.0  # rad/s, of the closed loop's tracking error
DAMPING = 1.0  # of the same; 1 is critical
PHASE_MARGIN = math.radians(30.0)  # of the loop over its delay; below, the error rings, and a wrong mass is too much


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


INACTIVE = "the machine is inactive"  # how the reason of a controller begins that waits for somebody to enable drives


def unready_to_jog(mode: Mode, reason: str = "") -> str:
    """Why a controller in this mode, for this reason, takes no jog; empty where it takes one."""
    if mode in (Mode.WAITING, Mode.STOPPED):
        return f"the controller is {mode.name.lower()}{reason and f': {reason}'}"
    return "a motion runs; pause or stop it first" if mode is Mode.TRACKING else ""


NO_FURTHER = "it goes no further"  # how the reason of a jog begins that ends at a border
STOPPED_SINCE = "it was stopped after this was asked for"
TOOK_OVER = "another motion took over"


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

    def take_over(self) -> Answer:
        """As `stop`; what moved is told that another motion took over."""
        return self.request("take_over")

    def recover(self) -> Answer:
        """Find a lost platform again where it was last followed, or bring one that is outside back inside."""
        return self.request("recover")


def highest_natural_frequency(period: float, damping: float = DAMPING, delay: float = 0.5) -> float:
    """Natural frequency [rad/s] up to which a loop of a period [s] keeps `PHASE_MARGIN`; 0 where there is none.

    The loop (2 zeta omega s + omega^2) / s^2 crosses one at omega_c = omega sqrt(2 zeta^2 + sqrt(4 zeta^4 + 1)), where
    its phase is atan(2 zeta omega_c / omega) from -180 degrees; a delay tau takes omega_c tau of that away. Below a
    damping of 0.3 the margin is not there even without delay, which lasts from a reading to the middle of the time in
    which its efforts act [periods]: 0.5 where they act at once.
    """
    crossing = math.sqrt(2.0 * damping**2 + math.sqrt(4.0 * damping**4 + 1.0))
    return max(0.0, (math.atan(2.0 * damping * crossing) - PHASE_MARGIN) / (crossing * delay * period))
