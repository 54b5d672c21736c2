# SPDX-License-Identifier: Apache-2.0
"""What `Robot` needs of a running robot, wherever it runs: the contract of the two backends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pkm_control.client.state import RobotState
from pkm_control.client.task import Result
from pkm_control.conveyor.conveyor import BeltState, Conveyor
from pkm_control.loop.motion import Tolerances
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.operation.answer import Answer
from pkm_control.operation.motion_points import MotionPoints
from pkm_description.mechanism import Inertial, Mechanism

Array = NDArray[np.float64]


class Goal(Protocol):
    """A motion that the controller was given."""

    @property
    def share(self) -> float:
        """How much of the motion is done, 0 to 1."""
        ...

    def wait_begun(self) -> bool:
        """Wait until it is admitted, or refused; return which."""
        ...

    def wait(self) -> Result:
        """Wait for its end; the outcome INVALID_GOAL says that it was refused."""
        ...

    def cancel(self) -> None:
        """Have it end on its path, or not begin at all."""
        ...


class Backend(Protocol):
    """A controller and its machine. Calls may come from any thread; errors are of the class `NoRobotError`.

    `on_output` is told of each output that takes another value, with name and value, in a thread that must not be kept.
    """

    on_output: Callable[[str, float], None]

    @property
    def mechanism(self) -> Mechanism:
        """The robot as it is described."""
        ...

    @property
    def limits(self) -> ActuatorLimits:
        """Of its actuators."""
        ...

    @property
    def time(self) -> float:
        """What passes on the robot's clock [s]."""
        ...

    @property
    def outputs(self) -> dict[str, float]:
        """What motions have set the outputs to, by name."""
        ...

    @property
    def payload(self) -> Inertial | None:
        """What the controller knows the platform to carry."""
        ...

    def state(self) -> RobotState:
        """Return one look at it, not older than the call."""
        ...

    def belt(self, name: str) -> tuple[Conveyor, BeltState]:
        """Return a conveyor as it is described, and where it is now; raise `ConveyorError` where there is none."""
        ...

    def begin(self, motion: MotionPoints, tolerances: Tolerances) -> Goal:
        """Hand a motion to the controller, which judges it."""
        ...

    def steer(self, twist: Array) -> Answer:
        """Jog at a twist (6,) [m/s, rad/s], base axes, for a quarter of a second."""
        ...

    def pause(self) -> Answer:
        """Halt on the path."""
        ...

    def resume(self) -> Answer:
        """Go on with what was halted."""
        ...

    def stop(self) -> Answer:
        """End whatever moves, and hold."""
        ...

    def enable(self) -> Answer:
        """Have the drives follow commands."""
        ...

    def disable(self) -> Answer:
        """Turn the drives off."""
        ...

    def emergency_stop(self) -> Answer:
        """Turn the drives off at once, until a reset."""
        ...

    def reset(self) -> Answer:
        """Lead the machine out of a fault; its drives stay off."""
        ...

    def recover(self) -> Answer:
        """Lead the robot out of a stop."""
        ...

    def change_working_mode(self, label: str) -> Answer:
        """Begin to go to the working mode of a label, or go on with it."""
        ...

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction of their planned speed."""
        ...

    def wait(self, seconds: float) -> None:
        """Let time pass on the robot's clock."""
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """Within it, somebody waits for the robot: a simulation may hurry."""
        ...

    def close(self) -> None:
        """Let the robot go."""
        ...
