# SPDX-License-Identifier: Apache-2.0
"""The contract of the two backends of `Robot`: what it needs of a running robot, wherever that runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from pkm_client.motion_task import Result
from pkm_client.state import RobotState
from pkm_control.conveyor.conveyor import BeltState, Conveyor
from pkm_control.loop.followed_motion import Tolerances
from pkm_control.operation.answer import Answer, OperatorRequests
from pkm_control.operation.motion_points import MotionPoints
from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_dynamics.motion_limits import ActuatorLimits


class Goal(Protocol):
    """A motion that was handed to the controller."""

    @property
    def share(self) -> float:
        """How much of the motion is done, 0 to 1."""

    def wait_begun(self) -> bool:
        """Wait until it is admitted or refused; True: admitted."""

    def wait(self) -> Result:
        """Wait for its end; the outcome INVALID_GOAL says that it was refused."""

    def cancel(self) -> None:
        """End it on its path, or keep it from beginning."""


class Backend(Protocol):
    """A controller and its machine. Calls may come from any thread; errors are of the class `NoRobotError`.

    `on_output` is called with name and value of each output that changes, in a thread that it must not hold up.
    """

    on_output: Callable[[str, float], None]

    @property
    def mechanism(self) -> Mechanism:
        """The robot's description."""

    @property
    def limits(self) -> ActuatorLimits:
        """Limits of the robot's actuators."""

    @property
    def time(self) -> float:
        """The robot's clock [s]."""

    @property
    def outputs(self) -> dict[str, float]:
        """Values that motions have set the outputs to, by name."""

    @property
    def payload(self) -> Inertial | None:
        """The platform's payload as the controller knows it; None: nothing."""

    @property
    def operator(self) -> OperatorRequests:
        """Takes an operator's requests."""

    def state(self) -> RobotState:
        """Return a snapshot of the robot, not older than the call."""

    def belt(self, name: str) -> tuple[Conveyor, BeltState]:
        """Return a conveyor's description and its present state; raise `ConveyorError` where there is none so named."""

    def begin(self, motion: MotionPoints, tolerances: Tolerances, asked: float) -> Goal:
        """Hand a motion to the controller, which admits or refuses it; a stop after `asked` [s, monotonic] ends it."""

    def steer(self, twist: Array, asked: float) -> Answer:
        """Jog at a twist (6,) [m/s, rad/s], base axes, for a quarter of a second, unless it was stopped since."""

    def wait(self, seconds: float) -> None:
        """Let time pass on the robot's clock."""

    def waiting(self) -> AbstractContextManager[None]:
        """Within this context somebody waits for the robot, so a simulation may run faster than real time."""

    def close(self) -> None:
        """Release the robot."""
