# SPDX-License-Identifier: Apache-2.0
"""A control loop as seen from another thread or process: its situation, and requests to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pkm_control.conveyor.conveyor import BeltState, Conveyor
from pkm_control.loop.followed_motion import Action
from pkm_control.loop.jogging import Jog
from pkm_control.loop.modes import Mode
from pkm_control.motion.curve_check import CurveCheck
from pkm_description.mechanism import Array
from pkm_hardware.machine import MachineState
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError


class LoopEndedError(PkmError):
    """The loop does not run any more; the message says why."""


@dataclass(frozen=True, eq=False)
class Situation:
    """What one period of a loop saw and did: a value that replaces the one before it.

    `time` [s] is of the last usable reading, `now` of the machine; `hold` (7,) is the held pose. `wake` is when the
    period began, on the monotonic clock.
    """

    time: float
    now: float
    wake: float
    action: Action
    state: MachineState
    hold: Array | None
    moving: bool
    paused: bool
    changing: bool
    override: float
    working_mode: int
    readable: bool = True
    silent_for: float = 0.0
    saturated: bool = False

    @property
    def mode(self) -> Mode:
        """What the controller is doing."""
        return self.action.mode

    @property
    def held(self) -> Array:
        """Pose (7,) that is held at rest; PkmError where no reading has arrived yet."""
        if self.hold is None:
            raise PkmError("no measured state yet")
        return self.hold


class RunningLoop(ABC):
    """The other end of a loop that runs in a thread or a process of its own. `check` and `jog` are for planning: they
    know the present working mode and payload, and are copies where the loop is in another process.
    """

    conveyors: Mapping[str, Conveyor]

    @property
    @abstractmethod
    def situation(self) -> Situation:
        """The newest one; never waits for the loop."""

    @property
    @abstractmethod
    def check(self) -> CurveCheck:
        """What the machine can do, in its present working mode."""

    @property
    @abstractmethod
    def jog(self) -> Jog:
        """For queries; not the one that jogs."""

    @property
    def kinematics(self) -> Kinematics:
        """Of the robot."""
        return self.check.kinematics

    @abstractmethod
    def belt(self, name: str) -> BeltState:
        """The present state of a belt, by the name of its conveyor."""

    @abstractmethod
    def ask(self, request: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function of `requests`, with its arguments after the loop, between two periods; wait for its result.
        It raises the errors of the request, and LoopEndedError where nobody answers.
        """

    @abstractmethod
    def tell(self, request: Callable[..., Any], *arguments: Any) -> None:
        """The same without waiting; the result is lost."""


@dataclass
class Controls:
    """The loop of the present description, None before there is one."""

    loop: RunningLoop | None = None
    problem: str = ""  # why there is no loop
    unheeded: str = ""  # why commands do not reach the drives; empty: they do, as far as is known

    @property
    def kinematics(self) -> Kinematics:
        """The robot's kinematics."""
        return self.ready().kinematics

    def ready(self) -> RunningLoop:
        """The loop; raises `PkmError` with the reason where there is none."""
        if self.loop is None:
            raise PkmError(self.problem or "there is no robot description")
        return self.loop

    def ready_to_move(self) -> RunningLoop:
        """As `ready`, where commands reach the drives: a motion that nothing follows would be caught up with a jump."""
        loop = self.ready()
        if self.unheeded:
            raise PkmError(self.unheeded)
        return loop
