# SPDX-License-Identifier: Apache-2.0
"""A running robot, wherever it runs: its state, and the contract of the two backends of `Robot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pkm_control.operator_interface import Mode
from pkm_description.mechanism import Array
from pkm_runtime.describable import fixed

if TYPE_CHECKING:  # `RobotState` is for links, too, which import no solver
    from pkm_client.motion_task import Result
    from pkm_control.conveyor.conveyor import BeltState, Conveyor
    from pkm_control.loop.followed_motion import Tolerances
    from pkm_control.motion.point_trajectory import MotionPoints
    from pkm_control.operator_interface import Answer, OperatorRequests
    from pkm_description.mechanism import Inertial, Mechanism
    from pkm_dynamics.motion_limits import ActuatorLimits


@dataclass(frozen=True, eq=False)
class RobotState:
    """What the robot does now. Vectors and poses are in the base frame; NaN where there is no usable reading.

    `mode` and `reason` are the controller's. `pose` (7,), x y z qx qy qz qw, and `twist` (6,) of the platform are
    measured, `reference` (7,) is the commanded pose; `position_error` [m] and `rotation_error` [rad] lie between them.
    `speed` is the fraction of their plan at which motions run. `positions` [rad or m], `velocities` and `efforts` [N m
    or N] are those of the actuated joints, by name; `efforts` is empty where positions are commanded.
    """

    mode: Mode
    reason: str
    pose: Array
    twist: Array
    reference: Array
    position_error: float
    rotation_error: float
    speed: float
    positions: Mapping[str, float]
    velocities: Mapping[str, float]
    efforts: Mapping[str, float]

    @property
    def moving(self) -> bool:
        """Whether a motion or a jog is under way."""
        return self.mode in (Mode.TRACKING, Mode.JOGGING)

    @property
    def known(self) -> bool:
        """Whether the platform's pose is known."""
        return self.mode not in (Mode.WAITING, Mode.STOPPED) and bool(np.isfinite(self.reference).all())

    def __str__(self) -> str:
        """A few lines for a person."""
        lines = [self.mode.name.lower() + (f": {self.reason}" if self.reason else "")]
        place = ", ".join(fixed(value, 4) for value in self.pose[:3])
        attitude = ", ".join(fixed(value, 4) for value in self.pose[3:])
        lines.append(f"platform at ({place}) m, quaternion ({attitude})")
        lines.append(f"off by {1e3 * self.position_error:.3f} mm and {self.rotation_error:.5f} rad")
        lines.append(f"motions run at {self.speed:.0%} of their plan")
        lines += [f"{name} at {fixed(value, 4)}" for name, value in self.positions.items()]
        return "\n".join(lines)


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
    """A controller and its machine. Calls may come from any thread; errors are `NoRobotError`. `on_output` gets name
    and value of each output that changes, in a thread that it must not hold up.
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
