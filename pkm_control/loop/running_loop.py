# SPDX-License-Identifier: Apache-2.0
"""A control loop as seen from another thread or process, and one in a thread of this process."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pkm_control.conveyor.conveyor import BeltState, Conveyor
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.followed_motion import Action
from pkm_control.loop.jogging import Jog
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.operator_interface import Mode
from pkm_description.mechanism import Array
from pkm_hardware.machine import MachineState
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError
from pkm_runtime.scheduling import LoopScheduling


class LoopEndedError(PkmError):
    """The loop does not run any more; the message says why."""


@dataclass(frozen=True, eq=False)
class Situation:
    """What one period of a loop saw and did. `time` [s] is of the last usable reading; `hold` (7,) is the held pose.
    `now` is when the period began, on the machine's clock, `wake` on the monotonic one.
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
        """Pose (7 + r,) that is held at rest; PkmError where no reading has arrived yet."""
        if self.hold is None:
            raise PkmError("no measured state yet")
        return self.hold


class RunningLoop(ABC):
    """The other end of a loop in a thread or a process of its own. `check` and `jog` are for planning, in the present
    working mode and with its payload; copies where the loop is in another process.
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
        """Run a function of `requests`, with its arguments after the loop, between two periods, and wait for its
        result. It raises the errors of the request, and LoopEndedError where nobody answers.
        """

    @abstractmethod
    def tell(self, request: Callable[..., Any], *arguments: Any) -> None:
        """The same without waiting; the result is lost."""


@dataclass
class Controls:
    """The loop of the present description, None before there is one."""

    loop: RunningLoop | None = None
    problem: str = ""  # why there is no loop
    commands_blocked: str = ""  # why commands do not reach the drives; empty: they do, as far as is known

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
        if self.commands_blocked:
            raise PkmError(self.commands_blocked)
        return loop


_LOOK = 5e-4  # s, between two looks whether a request is done
_PATIENCE = 10.0  # s, for the answer


class Request:
    """A request to the loop, and its result."""

    def __init__(self, request: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._request, self._arguments = request, arguments
        self.answer: Any = None
        self.error: Exception | None = None
        self.done = False

    def run(self, loop: ControlLoop) -> None:
        """In the loop's thread: do it."""
        try:
            self.answer = self._request(loop, *self._arguments)
        except Exception as error:  # it is raised in the thread that asked
            self.error = error


def situation_of(loop: ControlLoop, wake: float) -> Situation:
    """The situation of a loop's last period; in its own thread."""
    assert loop.last is not None
    follower, machine = loop.follower, loop.machine
    return Situation(
        time=follower.time,
        now=loop.began,
        wake=wake,
        action=loop.last.action,
        state=loop.last.state,
        hold=follower.known_hold,
        moving=follower.moving,
        paused=follower.paused,
        changing=follower.change is not None,
        override=follower.override,
        working_mode=follower.check.mode,
        readable=machine.readable,
        silent_for=machine.silent_for,
        saturated=any(machine.saturated.tolist()),
    )


class LoopThread(RunningLoop):
    """Runs a configured loop's periods in a thread; an exception that gets out of a period disables the drives.

    What threads share is a slot that is replaced and a queue that is taken from: no lock. `pace` waits for the next
    period and returns how many have passed; `after` is called after each.
    """

    def __init__(
        self,
        loop: ControlLoop,
        pace: Callable[[], int],
        after: Callable[[], None] = lambda: None,
        scheduling: LoopScheduling | None = None,
    ) -> None:
        self.loop = loop
        self.conveyors = {name: belt.conveyor for name, belt in loop.follower.belts.items()}
        self.failure: BaseException | None = None
        self._pace, self._after, self._scheduling = pace, after, scheduling
        self._requests: deque[Request] = deque()
        self._run_requests: list[Request] = []  # since the last period
        self._ended = False
        loop.period()
        self._situation = situation_of(loop, time.monotonic())
        self._thread = threading.Thread(target=self._run, name="robot", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def situation(self) -> Situation:
        """The newest one."""
        return self._situation

    @property
    def check(self) -> CurveCheck:
        """The follower's own."""
        return self.loop.follower.check

    @property
    def jog(self) -> Jog:
        """The follower's own."""
        return self.loop.follower.jog

    def belt(self, name: str) -> BeltState:
        """The present state of a belt."""
        follower = self.loop.follower
        return follower.belts[name].state(follower.time)

    @property
    def ended(self) -> bool:
        """Whether it was asked to end."""
        return self._ended

    @property
    def alive(self) -> bool:
        """Whether periods follow each other."""
        return not self._ended and self.failure is None

    def ask(self, request: Callable[..., Any], *arguments: Any) -> Any:
        """Run a request in the loop between two periods, and wait until it is done."""
        asked = Request(request, arguments)
        self._requests.append(asked)
        until = time.monotonic() + _PATIENCE
        while not asked.done:
            if not self._thread.is_alive():
                raise LoopEndedError(f"the loop has ended: {self.failure!r}" if self.failure else "the loop has ended")
            if time.monotonic() > until:
                raise LoopEndedError(f"the loop does not answer within {_PATIENCE:g} s")
            time.sleep(_LOOK)
        if asked.error is not None:
            raise asked.error
        return asked.answer

    def tell(self, request: Callable[..., Any], *arguments: Any) -> None:
        """Run a request in the loop between two periods."""
        self._requests.append(Request(request, arguments))

    def end(self, patience: float, reason: str = "the loop has ended") -> str:
        """End the loop after its period, in `patience` [s]; a warning where drives may be on. `reason`: a motion's."""
        self._ended = True
        if self._thread.is_alive():
            self._thread.join(patience)
        return self.loop.shut_down(reason)

    def _run(self) -> None:
        if self._scheduling is not None:
            self._scheduling.request()
        try:
            while not self._ended:
                periods = self._pace()
                while self._requests:
                    self._run_requests.append(self._requests.popleft())
                    self._run_requests[-1].run(self.loop)
                self.loop.period(periods)
                self._show()
        except BaseException as error:  # it is raised in the thread that asks next
            self.failure = error
            self.loop.emergency_stop(f"the loop has ended: {type(error).__name__}: {error}")
            self._show()

    def _show(self) -> None:
        self._situation = situation_of(self.loop, time.monotonic())
        while self._run_requests:  # only now: who asked looks at the situation next
            self._run_requests.pop().done = True
        self._after()
