# SPDX-License-Identifier: Apache-2.0
"""A control loop in a thread of this process."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pkm_control.conveyor.conveyor import BeltState
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.jogging import Jog
from pkm_control.loop.running_loop import LoopEndedError, RunningLoop, Situation
from pkm_control.motion.curve_check import CurveCheck
from pkm_runtime.scheduling import LoopScheduling

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
        self.done = True


def situation_of(loop: ControlLoop, wake: float) -> Situation:
    """The situation of a loop's last period; in its own thread."""
    assert loop.last is not None
    follower, machine = loop.follower, loop.machine
    return Situation(
        time=follower.time,
        now=machine.time,
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
    """Runs a loop's periods in a thread; an exception that gets out of a period disables the drives.

    What threads share is a slot that is replaced and a queue that is taken from: no lock. The loop is configured, and
    belongs to the thread from now on. `pace` waits for the next period and returns how many have passed; `after` is
    called after each.
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
        """End the loop, drives off; a warning where a drive may still be on.
        Waits `patience` [s] for the present period; `reason` is for a motion that runs.
        """
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
                    self._requests.popleft().run(self.loop)
                self.loop.period(periods)
                self._situation = situation_of(self.loop, time.monotonic())
                self._after()
        except BaseException as error:  # it is raised in the thread that asks next
            self.failure = error
            self.loop.emergency_stop(f"the loop has ended: {type(error).__name__}: {error}")
            self._situation = situation_of(self.loop, time.monotonic())
            self._after()
