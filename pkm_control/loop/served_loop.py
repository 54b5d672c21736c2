# SPDX-License-Identifier: Apache-2.0
"""The half of a control loop that runs in the loop's own process: no middleware, and no other thread."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pkm_control.loop import requests
from pkm_control.loop.between_processes import Channel, Kind, Marks, Rows, Texts
from pkm_control.loop.control_loop import ControlLoop, warm_up
from pkm_control.loop.followed_motion import FIGURES, Motion
from pkm_control.loop.guard import cause_of
from pkm_control.loop.running_loop import LoopEndedError, Request, situation_of
from pkm_control.operator_interface import Mode
from pkm_hardware.machine import Lifecycle
from pkm_runtime.child_processes import ENDING, name_process
from pkm_runtime.errors import PkmError
from pkm_runtime.fixed_rate import FixedRateLoop
from pkm_runtime.scheduling import LoopScheduling, settle

_SILENCE = 1.0, 3.0  # s, of that process: after which the loop ends what moves, and turns the drives off
HELD_WITHIN = 1.0  # s that the answer to `enable` waits for a controller that holds the platform
NOT_HELD = "the drives are off again, since the controller does not hold the platform: {}"
_IDLE = 0.005  # s before the next period: as long the loop listens in between, where periods are long
_UNASKED = 10  # periods between two looks at the socket
_LEFT = "the process that commands the control loop has ended: {}"


@dataclass(frozen=True)
class _Answer:
    """The answer to a request by number; until a time [s] it waits for a controller that holds the platform."""

    number: int
    answer: Any
    error: Exception | None
    until: float


class ServedLoop:
    """The half in the process of the loop."""

    def __init__(self, channel: Channel, memory: mmap.mmap) -> None:
        self._channel = channel
        self._memory = memory
        self._loop: ControlLoop | None = None
        self._rows: Rows | None = None
        self._running = False
        self._marks = Marks(memory)
        self._offs = self._stops = 0  # requests of the marks that have been done
        self._motion: Motion | None = None
        self._priority = 0
        self._heard = 0  # messages
        self._since = 0  # periods, since the socket was looked at
        self._answers: list[_Answer] = []  # that are sent when their row is written
        self._warned = ""  # the warning that the other process was given
        self._alone = False  # the other process does not live, as far as is known
        self.ending = False

    def serve(self) -> None:
        """Serve until the other half is gone."""
        try:
            while not self.ending and (message := self._channel.wait()) is not None:
                self._handle(message)
                while self._running and not self.ending:
                    self._run()
        finally:
            if self._loop is not None:
                left = self._running and self._loop.machine.real and self._channel.peer_closed
                warning = self._loop.shut_down()
                if left:
                    print(_LEFT.format(warning or "the drives are off"), file=sys.stderr, flush=True)
                elif warning != self._warned and self._channel.peer_closed:  # nothing else reports it
                    print(warning, file=sys.stderr, flush=True)
                self._channel.send((Kind.ENDED, 0, warning))

    @property
    def _unwanted(self) -> bool:
        marks = self._marks
        return marks.offs != self._offs or marks.stops != self._stops or self.ending or self._channel.peer_closed

    def _stop_where_asked(self) -> None:
        if (stops := self._marks.stops) != self._stops and self._loop is not None:
            with self._marks.doing():
                try:
                    requests.emergency_stop(self._loop)
                finally:
                    self._stops = stops

    def _handle(self, message: tuple[Any, ...]) -> None:
        self._heard += 1
        with self._marks.doing():
            self._do(message)

    def _do(self, message: tuple[Any, ...]) -> None:
        kind, number, *rest = message
        answer: Any = None
        error: Exception | None = None
        request = rest[0] if kind is Kind.ASK else None
        if kind is Kind.REST or request is requests.disable:
            self._offs += 1
        try:
            if kind is Kind.BUILD:
                answer = self._build(*rest)
            elif kind is Kind.RUN:
                answer = self._begin()
            elif kind is Kind.REST:
                answer = self._rest()
            elif self._loop is None:
                self._stops = self._marks.stops
                raise LoopEndedError("there is no robot")
            elif request is requests.emergency_stop:
                self._stop_where_asked()
                answer = self._loop.machine.drives_may_be_on
            else:
                asked = Request(rest[0], rest[1])
                asked.run(self._loop)
                answer, error = asked.answer, asked.error
        except Exception as caught:
            error = caught
        if error is not None and not isinstance(error, PkmError):
            traceback.print_exception(error)
        if number and self._running and kind is Kind.ASK:
            enabled = request is requests.enable and not answer and error is None
            self._answers.append(_Answer(number, answer, error, time.monotonic() + HELD_WITHIN if enabled else 0.0))
        elif number:
            self._answer(number, answer, error)

    def _answer(self, number: int, answer: Any, error: Exception | None) -> None:
        try:
            self._channel.send((Kind.ANSWER, number, answer, error))
        except Exception as problem:  # of pickling
            self._channel.send((Kind.ANSWER, number, None, PkmError(f"{error or problem}")))

    def _build(
        self, build: Callable[..., ControlLoop], arguments: tuple[Any, ...], priority: int
    ) -> tuple[bool, float]:
        self._loop = None
        trial = build(*arguments)
        warm_up(trial.follower, trial.kinematics)
        trial.machine.warm_up()
        loop = build(*arguments)
        k = loop.kinematics
        sizes = (len(names) for names in (k.actuated_names, k.joint_names, k.redundant_names))
        self._rows, self._priority = Rows(self._memory, *sizes), priority
        self._rows.clear()
        loop.machine.unwanted, loop.machine.telling = lambda: self._unwanted, self._marks.turning_off
        loop.on_output = lambda event: self._channel.send((Kind.OUTPUT, 0, loop.follower.time, event))
        loop.on_payload = lambda payload: self._channel.send((Kind.PAYLOAD, 0, loop.follower.time, payload))
        self._loop = loop
        settle()
        return loop.machine.real, 1.0 / loop.rate

    def _begin(self) -> str:
        assert self._loop is not None
        problem = self._loop.configure()
        self._running = not problem or self._loop.machine.real
        if not self._running:
            self._loop.machine.cleanup()
        return problem

    def _rest(self) -> str:
        self._running = False
        self._warned = self._loop.shut_down() if self._loop is not None else ""
        return self._warned

    def _run(self) -> None:
        loop, rows = self._loop, self._rows
        assert loop is not None
        assert rows is not None
        fixed = FixedRateLoop(loop.rate)
        scheduling = LoopScheduling(self._priority, lambda text: self._channel.send((Kind.SAY, 0, text)), alone=True)
        scheduling.request()
        fixed.restart()
        self._marks.beat()
        try:
            while self._running and not self.ending:
                while self._running and (left := fixed.left) > 2.0 * _IDLE and self._channel.ready(left - _IDLE):
                    self._listen()  # at once, where periods are long: a stop waits for nothing
                    self._write(loop, rows, fixed, None)
                periods = fixed.wait()
                self._glance()
                if not self._running:
                    break
                self._watch(loop, self._marks.silence)
                loop.period(periods)
                self._write(loop, rows, fixed, time.monotonic() - fixed.last_wake)
        finally:
            scheduling.release()
            self._send_answers()

    def _glance(self) -> None:
        """Execute pending requests. The socket is read (a system call) where something came, and now and then."""
        self._since += 1
        if self._marks.sent != self._heard or self._since > _UNASKED:
            self._listen()
        else:
            self._stop_where_asked()

    def _listen(self) -> None:
        self._since = 0
        self._stop_where_asked()
        for message in self._channel.poll():
            self._handle(message)
        if self._channel.closed:
            self.ending = True

    def _write(self, loop: ControlLoop, rows: Rows, fixed: FixedRateLoop, work: float | None) -> None:
        """Write a row and publish changes; answers come after the row that shows their effect.
        `work` is the work of the last period [s]; None: requests were executed between two periods.
        """
        if loop.last is None:
            return
        now = situation_of(loop, fixed.last_wake)
        texts = Texts(now.action.reason, loop.machine.fault, loop.machine.notice)
        run = loop.follower.run
        motion = None if run is None else run.motion
        rows.write(now, motion, loop.machine.lifecycle, texts, fixed.missed, work or 0.0)
        self._marks.live()
        held = work is not None and now.mode is not Mode.STOPPED and not (now.mode is Mode.WAITING and now.readable)
        self._send_answers(held or loop.machine.lifecycle is not Lifecycle.ACTIVE)
        self._tell(motion)

    def _send_answers(self, known: bool = True) -> None:
        """Send pending answers; those to `enable` when it is `known` whether the controller holds the platform."""
        answers, self._answers = self._answers, []
        for one in answers:
            if known and one.until and self._loop is not None:
                self._answer(one.number, self._loop.machine.why_off, one.error)
            elif known or not one.until:
                self._answer(one.number, one.answer, one.error)
            elif time.monotonic() >= one.until:
                self._answer(one.number, self._not_held(), None)
            else:
                self._answers.append(one)

    def _not_held(self) -> str:
        assert self._loop is not None
        why = cause_of(self._loop.last.action.reason) if self._loop.last is not None else ""
        warning = self._loop.disable()
        return warning or NOT_HELD.format(why)

    def _watch(self, loop: ControlLoop, silence: float) -> None:
        if silence < _SILENCE[0]:
            self._alone = False
            return
        reason = f"the process that commands the loop has not lived for {silence:.1f} s"
        if not self._alone:
            self._alone = True
            loop.follower.stop(reason)
        if silence > _SILENCE[1] and loop.machine.lifecycle is Lifecycle.ACTIVE:
            loop.emergency_stop(f"{reason}: nobody could stop it")

    def _tell(self, motion: Motion | None) -> None:
        if self._motion is not None and self._motion.outcome is not None:
            over = self._motion
            numbers = [getattr(over, name) for name in FIGURES]
            self._channel.send((Kind.MOTION, 0, over.number, over.outcome, over.reason, numbers))
        self._motion = motion
        self._channel.flush()


def serve_alone(parents: socket.socket, end: socket.socket, memory: mmap.mmap) -> None:
    """In the child: be the process of a loop, without its parent's end of the line."""
    parents.close()
    os.setsid()  # what ends the other half with all its group leaves this one the time to turn the drives off
    name_process("pkm loop")
    served = ServedLoop(Channel(end), memory)

    def stop(*_: Any) -> None:
        served.ending = True

    for number in ENDING:
        signal.signal(number, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    served.serve()
