# SPDX-License-Identifier: Apache-2.0
"""A control loop in a process of its own, where nothing else runs: no middleware, and no other thread.

A loop with a real-time priority must not wait for what an ordinary thread holds, and in Python that is the interpreter
itself. Requests come through a socket that it never waits for, and it publishes each period as a row of numbers in
shared memory. The loop's process outlives its parent by the moment that it takes to disable the drives. Where it dies
itself and cannot, the parent does.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pkm_control.conveyor.conveyor import BeltState
from pkm_control.loop import requests
from pkm_control.loop.between_processes import LIVES, NO_FIGURES, Channel, Figures, Head, Kind, Marks, Rows, Texts
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.followed_motion import FIGURES, Action, Motion
from pkm_control.loop.jogging import Jog
from pkm_control.loop.running_loop import LoopEndedError, RunningLoop, Situation
from pkm_control.loop.served_loop import serve_alone
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.path_events import OutputEvent
from pkm_control.operator_interface import Mode, Outcome
from pkm_description.mechanism import Inertial
from pkm_hardware.machine import TOLD_WITHIN, Lifecycle, drives_may_be_on, unconfirmed
from pkm_runtime.child_processes import Child, end_with_program
from pkm_runtime.errors import PkmError
from pkm_runtime.scheduling import Watchdog

UNCONFIGURED = "the machine has not been configured"
_ROOM = 1 << 23  # bytes, for rows: more than two seconds at 2 kHz, of which half is read once a second
_BEAT_EVERY = 0.05  # s: how often the process that asks says that it lives
_STILL = 0.5  # s without a period, after which the loop of real drives has fallen silent
_HOPELESS = 1.0  # s without a period, after which no answer is waited for
_FROZEN = 3.0  # s: after so much silence the process of a loop with real drives is ended, and any other silent
_LONGEST = 20.0  # s that one request may take; a board that is contacted takes some of them
_TELLING = 3.0  # s that disabling drives may take beside that, of a board that is opened anew
_LOOK = 0.02  # s, between two looks whether an answer can still come
_OFF = requests.disable, requests.emergency_stop
_LAST_RESORT = 15.0  # s, for turning off the drives of a loop that has died
_PATIENCE = 5.0  # s, for an answer of a loop that runs


class _TurningOff:
    # requests for drives off, by number, until they are answered

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._asked: dict[int, float] = {}  # s, monotonic
        self.names: tuple[str, ...] = ()  # of the drives

    def late(self, number: int) -> str:
        # the warning, for who asks: what was asked before may still be answered first
        late = time.monotonic() - self._asked.get(number, math.inf) > TOLD_WITHIN
        return unconfirmed(self.names) if late else ""

    def note(self, number: int, request: Callable[..., Any] | None) -> None:
        if request in _OFF:
            self._asked[number] = time.monotonic()

    def answered(self, number: int) -> None:
        self._asked.pop(number, None)

    def end(self) -> None:
        self._asked.clear()

    @property
    def seconds(self) -> float:
        # until now
        now = time.monotonic()
        return max([self._marks.telling, *(now - at for at in tuple(self._asked.values()))])

    @property
    def warning(self) -> str:
        # that drives may be on, while they are being disabled for too long
        return unconfirmed(self.names) if self.seconds > TOLD_WITHIN else ""


class LoopProcess(RunningLoop):
    """The half in the parent process, to be made before it has any other thread.

    `planning` makes what motions are checked with, from the number of a working mode: (check, jog). `on_output` and
    `on_payload` get the effects of motions, with the time of the reading, `say` lines for a log, in their own thread.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._memory = mmap.mmap(-1, _ROOM)
        self._child = Child(partial(serve_alone, ours, theirs, self._memory))
        self.pid = self._child.pid
        theirs.close()
        self._channel = Channel(ours)
        self._socket = ours
        self._sending = threading.Lock()
        self._numbers = 0
        self._answers: dict[int, tuple[threading.Event, list[Any]]] = {}
        self._motions: dict[int, Motion] = {}
        self._rows: Rows | None = None
        self._planning: Callable[[int], tuple[CurveCheck, Jog]] | None = None
        self._planned: dict[int, tuple[CurveCheck, Jog]] = {}
        self._watchdog: Watchdog | None = None
        self._marks = Marks(self._memory)
        self._off = _TurningOff(self._marks)
        self._last_resort: Callable[[], str] = lambda: ""
        self.drives_may_be_on = ""  # the warning that drives may be on, since it has ended
        self.payload: Inertial | None = None
        self.resting = True  # there are no periods, and the drives are off
        self._period = 0.0  # s
        self._unheard = 0.0  # s without a period, as long as this process has lived
        self.real = False  # whether the machine's time passes by itself
        self.failure = ""  # why the process of the loop is gone
        self.conveyors = {}
        self.on_output: Callable[[float, OutputEvent], None] = lambda *_: None
        self.on_payload: Callable[[float, Inertial | None], None] = lambda *_: None
        self.say: Callable[[str], None] = lambda _: None
        self._reader: threading.Thread | None = None
        self._beating: threading.Thread | None = None
        self._ended = threading.Event()
        self._over = threading.Event()
        self._withdraw_end = end_with_program(self.end)  # else drives go off when Python has cleared up, seconds later

    # Life

    def build(
        self,
        build: Callable[..., ControlLoop],
        arguments: tuple[Any, ...],
        planning: Callable[[int], tuple[CurveCheck, Jog]],
        priority: int,
        last_resort: Callable[[], str] = lambda: "",
    ) -> None:
        """Build a loop in the other process by `build(*arguments)`, a function of a module; PkmError: impossible.
        `priority` is SCHED_FIFO's, 0: ordinary. `last_resort` disables the drives from this process, where the loop's
        has died; it returns a warning or nothing.
        """
        self._last_resort = last_resort
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, name="loop's words", daemon=True)
            self._reader.start()
        self._rows, self._planned, self._planning = None, {}, planning
        self.real, self._period = self._send(Kind.BUILD, _PATIENCE, build, arguments, priority)
        kinematics = planning(0)[0].kinematics
        sizes = (
            len(names) for names in (kinematics.actuated_names, kinematics.joint_names, kinematics.redundant_names)
        )
        rows = Rows(self._memory, *sizes)
        self._off.names = kinematics.actuated_names
        self._marks.beat()
        self._rows = rows
        if self._beating is None:
            self._beating = threading.Thread(target=self._beat, name="beat", daemon=True)
            self._beating.start()
        if self._watchdog is None and priority:
            self._watchdog = Watchdog(self.pid, self.say)
            self._watchdog.start()

    def run(self) -> str:
        """Connect the machine, drives off, and begin; returns why not, empty where it is done."""
        problem = str(self._send(Kind.RUN, _PATIENCE) or "")
        self.resting = bool(problem) and not self.real
        return problem

    def rest(self) -> str:
        """Disable the drives, and end periods; returns a warning where a drive may still be on."""
        warning = str(self._send(Kind.REST, _PATIENCE) or "")
        self.resting = True
        return warning

    def emergency_stop(self) -> str:
        """Disable the drives at once, even while they are being enabled, until a reset. Where the loop is silent, its
        process is ended, and the drives are disabled from here. Returns why they may be on; empty where they are off.
        """
        self._marks.ask_stop()
        try:
            return str(self._send(Kind.ASK, _PATIENCE, requests.emergency_stop, ()) or "")
        except LoopEndedError as error:
            if not self.real or self.resting:
                return str(error)
            self._give_up(str(error))
            self._over.wait(_LAST_RESORT)
            return self.failure or str(error)

    def tell_emergency_stop(self) -> None:
        """The same without waiting."""
        self._marks.ask_stop()
        with self._sending, contextlib.suppress(OSError):
            self._numbers += 1
            self._off.note(self._numbers, requests.emergency_stop)
            self._put(Kind.ASK, self._numbers, requests.emergency_stop, ())

    def _beat(self) -> None:
        # in a thread: signal that this process lives, and end a loop that has left its real drives to themselves
        silent, before, alive, untold = 0.0, time.monotonic(), 0.0, ""
        while not self._ended.wait(_BEAT_EVERY):
            self._marks.beat()
            # as long as this process has lived: where the whole computer stood still, the loop may still be well
            lived = min(time.monotonic() - before, 2.0 * _BEAT_EVERY)
            before, last, alive = time.monotonic(), alive, self._marks.alive
            self._unheard = self._unheard + lived if alive == last else 0.0
            silent = silent + lived if self._silence else 0.0
            before_that, untold = untold, self._off.warning if self.real else ""
            if untold and not before_that:
                with contextlib.suppress(Exception):
                    self.say(untold)
            if silent > _FROZEN and self.real and not self.resting:
                self._give_up(self._silence)
                return

    def _give_up(self, why: str) -> None:
        """End a process that does not answer, after which the drives are disabled from here."""
        if not self.failure:
            self._child.signal(signal.SIGKILL)
            with contextlib.suppress(Exception):  # nobody may hear it: the drives go off all the same
                self.say(f"{why}: it is ended, and the drives are turned off without it")

    def end(self) -> str:
        """End the process, drives off; returns a warning where a drive may still be on."""
        self._withdraw_end()
        warning = ""
        if self._reader is not None and not self.failure:
            try:
                warning = self.rest()
                self._ended.set()
            except PkmError:
                self._child.signal(signal.SIGKILL)
        if self._watchdog is not None:
            self._watchdog.end()
        dead = self._reader is not None and not self._ended.is_set()
        if dead and not self._over.wait(_LAST_RESORT) and self.real and not self.resting:
            warning = unconfirmed(self._off.names)
        self._ended.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            self._child.signal(number)
            if self._child.wait(2.0) is not None:
                break
        self.drives_may_be_on = warning or self.drives_may_be_on
        return self.drives_may_be_on

    # What it says

    @property
    def begun(self) -> bool:
        """Whether there has been a period."""
        return self._rows is not None and self._rows.count > 0

    @property
    def lifecycle(self) -> Lifecycle:
        """Of the machine, as the loop reported last."""
        if self.failure:
            return Lifecycle.FAULT
        row = None if self._rows is None else self._rows.newest
        return Lifecycle.UNCONFIGURED if row is None else LIVES[int(Head.of(row).lifecycle)]

    @property
    def texts(self) -> Texts:
        """The last texts of the loop."""
        row = None if self._rows is None else self._rows.newest
        return Texts() if row is None or self._rows is None else self._rows.texts(row)

    @property
    def problem(self) -> str:
        """Why nothing is known of the machine: the loop has ended, or is silent; empty where all is well."""
        return self.failure or (self._off.warning if self.real else "") or self._silence

    @property
    def _silence(self) -> str:
        limit = _STILL + 5.0 * self._period if self.real else _FROZEN  # a simulated machine stands still with its loop
        if self.failure or self._still < limit:
            return self.failure
        return f"the control loop has been silent for more than {limit:.1f} s"

    @property
    def _still(self) -> float:
        if self.resting or self._rows is None or self._rows.count == 0:
            return 0.0
        busy = self._marks.busy
        if busy:
            return max(0.0, busy - _LONGEST, self._off.seconds - _TELLING)
        return min(time.monotonic() - self._marks.alive, self._unheard)

    @property
    def situation(self) -> Situation:
        """The newest one; never waits for the loop."""
        row = None if self._rows is None else self._rows.newest
        if row is None or self._rows is None:
            raise LoopEndedError(self.failure or UNCONFIGURED)
        now = self._rows.situation(row)
        problem = self.problem
        if not (self.resting or problem):
            return now
        nothing = np.zeros_like(now.action.command)
        if problem:
            return replace(now, action=Action(Mode.STOPPED, nothing, problem, withhold_command=True), readable=False)
        action = Action(Mode.WAITING, nothing, UNCONFIGURED, speed=now.override, withhold_command=True)
        return replace(now, action=action, moving=False, readable=False)

    def figures(self) -> Figures:
        """Timing of the periods since the last call, without those that the ring has lost."""
        return NO_FIGURES if self._rows is None else self._rows.figures()

    def note_progress(self) -> None:
        """Update the motion that is followed from the newest row."""
        row = None if self._rows is None else self._rows.newest
        if row is None:
            return
        head = Head.of(row)
        for motion in tuple(self._motions.values()):
            if motion.outcome is None:
                motion.elapsed, motion.position_error = head.elapsed, head.position_error
                motion.rotation_error = head.rotation_error

    @property
    def check(self) -> CurveCheck:
        """What the machine can do, in its present working mode and with its payload."""
        return self._present()[0]

    @property
    def jog(self) -> Jog:
        """For queries."""
        return self._present()[1]

    def _present(self) -> tuple[CurveCheck, Jog]:
        if self._planning is None:
            raise LoopEndedError("there is no robot")
        row = None if self._rows is None else self._rows.newest
        mode = 0 if row is None else int(Head.of(row).working_mode)
        if mode not in self._planned:
            self._planned[mode] = self._planning(mode)
        self._planned[mode][0].payload = self.payload
        return self._planned[mode]

    def belt(self, name: str) -> BeltState:
        """The present state of a belt."""
        state: BeltState = self.ask(requests.belt_state, name)
        return state

    # What it is asked

    def ask(self, request: Callable[..., Any], *arguments: Any) -> Any:
        """Run a request in the loop between two periods, and wait until it is done."""
        if request is requests.begin:
            self._motions[arguments[0].number] = arguments[0]
        if request is requests.emergency_stop:
            self._marks.ask_stop()
        try:
            return self._send(Kind.ASK, _PATIENCE, request, arguments)
        except PkmError:
            if request is requests.begin:
                self._motions.pop(arguments[0].number, None)
            raise

    def tell(self, request: Callable[..., Any], *arguments: Any) -> None:
        """Run a request in the loop between two periods."""
        with self._sending, contextlib.suppress(OSError):
            self._put(Kind.ASK, 0, request, arguments)

    def _put(self, *message: Any) -> None:
        # the loop, which looks at the mark, does not look for it in vain
        self._marks.send()
        self._channel.put(message)

    def _send(self, kind: Kind, patience: float, *rest: Any) -> Any:
        # wait for the answer while the loop lives, and while it is idle at most `patience` [s]
        if self.failure:
            raise LoopEndedError(self.failure)
        event = threading.Event()
        answer: list[Any] = []
        off = kind is Kind.REST or rest[:1] == (requests.disable,)
        if off:
            self._marks.ask_off()
        if not self._sending.acquire(timeout=_HOPELESS):
            if off:
                self._marks.ask_stop(instead=True)
            raise LoopEndedError(self.problem or "the control loop does not accept requests")
        try:
            self._numbers += 1
            number = self._numbers
            self._off.note(number, rest[0] if kind is Kind.ASK else None)
            self._answers[number] = event, answer
            self._put(kind, number, *rest)
        except OSError as error:
            raise LoopEndedError(self.failure or f"the process of the control loop has ended: {error}") from error
        finally:
            self._sending.release()
        until = time.monotonic() + patience
        while not event.wait(_LOOK):
            busy = self._marks.busy
            if busy or self.failure:
                until = max(until, time.monotonic() + _LOOK)
            if self.real and (untold := self._off.late(number)):
                self._answers.pop(number, None)
                return untold
            hopeless = self._still > _HOPELESS + 5.0 * self._period or busy > _LONGEST
            if kind is not Kind.BUILD and (hopeless or time.monotonic() > until):
                self._answers.pop(number, None)
                raise LoopEndedError(self.problem or "the control loop does not answer")
        if not answer:
            raise LoopEndedError(self.failure)
        value, problem = answer
        if problem is not None:
            raise problem
        return value

    def _read(self) -> None:
        try:
            while (message := self._channel.wait()) is not None:
                try:
                    self._hear(*message)
                except Exception as error:  # of a callback
                    with contextlib.suppress(Exception):
                        self.say(f"{type(error).__name__}: {error}")
        except Exception as error:  # nobody would hear of the loop's end any more
            self._give_up(f"the control loop cannot be understood ({type(error).__name__}: {error})")
        finally:
            self._note_end()

    def _hear(self, kind: Kind, number: int, *rest: Any) -> None:
        if kind is Kind.ANSWER:
            self._off.answered(number)
            event, answer = self._answers.pop(number, (threading.Event(), []))
            answer += rest
            event.set()
        elif kind is Kind.ENDED:
            self.drives_may_be_on = rest[0]
        elif kind is Kind.OUTPUT:
            self.on_output(*rest)
        elif kind is Kind.PAYLOAD:
            self.payload = rest[1]
            self.on_payload(*rest)
        elif kind is Kind.MOTION:
            outcome, reason, numbers = rest[1:]
            if (motion := self._motions.pop(rest[0], None)) is not None:
                for name, value in zip(FIGURES, numbers, strict=True):
                    setattr(motion, name, value)
                motion.reason, motion.outcome = reason, outcome
        elif kind is Kind.SAY:
            self.say(rest[0])

    def _note_end(self) -> None:
        self._off.end()
        ended = "the process of the control loop has ended"
        self.failure = ended
        if not self._ended.is_set():
            died = self._child.wait(_HOPELESS) != 0
            self.failure = f"{ended} ({self._child.how_it_ended})" if died else ended
            if self.real and not self.resting:
                if died:
                    try:
                        self.drives_may_be_on = self._last_resort()
                    except Exception as error:
                        self.drives_may_be_on = drives_may_be_on(error)
                self.failure += f"; {self.drives_may_be_on or 'the drives were turned off'}"
        self._over.set()
        for motion in self._motions.values():
            if motion.outcome is None:
                motion.reason, motion.outcome = self.failure, Outcome.STATE_LOST
        for event, _ in tuple(self._answers.values()):
            event.set()

    @property
    def gone(self) -> bool:
        """Whether the process has ended by itself, and the drives have been dealt with."""
        return self._over.is_set() and bool(self.failure)
