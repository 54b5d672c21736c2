# SPDX-License-Identifier: Apache-2.0
"""A control loop in a process of its own, where nothing else runs: no middleware, and no other thread.

A loop with a real-time priority must not wait for what an ordinary thread holds, and in Python that is the interpreter
itself. So the loop is alone in its process. It is asked through a socket that it never waits for, and tells each
period as a row of numbers, with its texts, in memory that both processes see. That the drives are to be off is a mark
in that memory, too: the loop sees it in the middle of enabling them.

The loop's process outlives the one that began it by the moment that it takes to turn the drives off. Where it dies
itself and cannot, the process that asks does.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pkm_control import ending_signals
from pkm_control.controllers.controller import Measured, Reference
from pkm_control.conveyor.conveyor import BeltState
from pkm_control.hardware.machine import untold
from pkm_control.hardware.machine_state import Lifecycle, MachineState
from pkm_control.loop import requests
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.fixed_rate import FixedRateLoop
from pkm_control.loop.jog import Jog
from pkm_control.loop.loop_thread import Request, situation_of
from pkm_control.loop.modes import Mode, Outcome
from pkm_control.loop.motion import Action, Motion
from pkm_control.loop.rehearsal import rehearse
from pkm_control.loop.running_loop import LoopEndedError, RunningLoop, Situation
from pkm_control.loop.scheduling import LoopScheduling, Watchdog, settle
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.path_events import OutputEvent
from pkm_description.errors import PkmError, shortened
from pkm_description.mechanism import Inertial

Array = NDArray[np.float64]

UNCONFIGURED = "the machine has not been configured"
_LENGTH = struct.Struct("<q")
_AT_ONCE = 1 << 16  # bytes that one period takes from the socket: a long motion comes in several
_ROOM = 1 << 22  # bytes, for rows: some seconds of them
_BEAT_EVERY = 0.05  # s: how often the process that asks says that it lives
_SILENCE = 1.0, 3.0  # s, of that process: after which the loop ends what moves, and turns the drives off
_STILL = 0.5  # s without a period, after which the loop has fallen silent
_HOPELESS = 1.0  # s without a period, after which nobody waits for its answer
_LONGEST = 20.0  # s that one request may take; a board that is contacted takes some of them
_LOOK = 0.02  # s, between two looks whether an answer can still come
_ENABLED = 1.0  # s that the answer to `enable` waits for a controller that holds the platform
_LAST_RESORT = 15.0  # s, for turning off the drives of a loop that has died
_IDLE = 0.005  # s before the next period: as long the loop listens in between, where periods are long
_HEAD = 26  # numbers of a row before its vectors
_PATIENCE = 5.0  # s, for an answer of a loop that runs
_PR_SET_NAME = 15  # of prctl(2)


class Kind(Enum):
    """What a message between the two processes is."""

    BUILD = 0
    RUN = 1  # make contact with the machine, and begin
    REST = 2  # turn the drives off, and end
    ASK = 3
    ANSWER = 4
    OUTPUT = 5
    PAYLOAD = 6
    MOTION = 7
    SAY = 8
    ENDED = 9  # the last word: the warning that drives may be on, or none


_BEAT, _ALIVE, _BUSY = 1, 2, 3  # places of times in memory
_OFFS, _STOPS = 4, 5  # places of counts
_MARKS = 64  # bytes
_SLOTS, _SLOT = 64, 1 << 14  # of texts; bytes of each
_ROWS = _MARKS + _SLOTS * _SLOT  # where rows begin


class Marks:
    """What the two processes know of each other at once: numbers in memory that both see.

    Times are monotonic [s]. `alive`: when the loop last did something; `busy`: since when it has been doing what it was
    asked for, 0 where nothing is; `offs` and `stops`: how often the drives were asked to be off, and an emergency stop.

    Args:
        memory: that both see.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        self._times = np.frombuffer(memory, np.float64, _MARKS // 8)
        self._counts = np.frombuffer(memory, np.int64, _MARKS // 8)
        self._asking = threading.Lock()

    def beat(self) -> None:
        """Say that the process lives that asks; in that process."""
        self._times[_BEAT] = time.monotonic()

    @property
    def silence(self) -> float:
        """How long it has not said so [s]."""
        return time.monotonic() - float(self._times[_BEAT])

    def live(self) -> None:
        """Say that the loop does something; in its process."""
        self._times[_ALIVE] = time.monotonic()

    @property
    def alive(self) -> float:
        """When it last said so [s]."""
        return float(self._times[_ALIVE])

    @contextlib.contextmanager
    def doing(self) -> Iterator[None]:
        """Do what takes a while: what was asked for, or telling drives to let go; in the loop's process."""
        before = float(self._times[_BUSY])
        self._times[_BUSY] = before or time.monotonic()
        try:
            yield
        finally:
            self.live()
            self._times[_BUSY] = before

    @property
    def busy(self) -> float:
        """How long it has been doing that [s]; 0 where it does not."""
        since = float(self._times[_BUSY])
        return time.monotonic() - since if since else 0.0

    def ask_off(self) -> None:
        """The drives are to be off; a request follows."""
        with self._asking:
            self._counts[_OFFS] += 1

    def ask_stop(self) -> None:
        """An emergency stop."""
        with self._asking:
            self._counts[_STOPS] += 1

    @property
    def offs(self) -> int:
        """How often the drives were asked to be off."""
        return int(self._counts[_OFFS])

    @property
    def stops(self) -> int:
        """How often an emergency stop was asked for."""
        return int(self._counts[_STOPS])


_SLOT_HEAD = struct.Struct("<2q")  # number of the texts, and how many bytes they have


@dataclass(frozen=True)
class Texts:
    """What a loop says in words."""

    reason: str = ""
    fault: str = ""
    notice: str = ""
    force_lost: str = ""

    def packed(self, room: int) -> bytes:
        """As bytes, shortened where they do not fit into so many."""
        words = [self.reason, self.fault, self.notice, self.force_lost]
        data = json.dumps(words).encode()
        if len(data) > room:  # 6 bytes for one letter at most
            data = json.dumps([shortened(word, room // 32) for word in words]).encode()
        return data


class Rows:
    """Periods of a loop as rows of numbers in memory that two processes see: one writes, the other reads.

    A row is overwritten when the ring comes round; whoever reads looks afterwards whether it was meanwhile.

    Args:
        memory: that both see.
        n: actuators.
        joints: all joints.
    """

    def __init__(self, memory: mmap.mmap, n: int, joints: int) -> None:
        sizes = {
            "hold": 7,
            "reference": 19,
            "measured": 13,
            "wrench": 6,
            "positions": n,
            "velocities": n,
            "efforts": n,
            "command": n,
            "saturated": n,
            "joints": joints,
        }
        self._memory, self._head = memory, struct.Struct(f"<{_HEAD}d")
        self._at, begin = {}, _HEAD
        for name, size in sizes.items():
            self._at[name] = slice(begin, begin + size)
            begin += size
        self._count = np.frombuffer(memory, np.int64, 1)
        self.most = (len(memory) - _ROWS) // (8 * begin)
        self._table = np.frombuffer(memory, np.float64, self.most * begin, _ROWS).reshape(self.most, begin)
        self._texts, self._texts_number = Texts(), 0
        self._read: tuple[int, Texts] = -1, Texts()  # read last

    def clear(self) -> None:
        """Begin anew; all pages of the memory are there afterwards."""
        self._count[0] = 0
        self._table[:] = 0.0
        self._memory[_MARKS:_ROWS] = bytes(_ROWS - _MARKS)
        self._say(Texts())

    def _say(self, texts: Texts) -> None:
        """Write other texts, for the rows to come."""
        self._texts, self._texts_number = texts, self._texts_number + 1
        at = _MARKS + self._texts_number % _SLOTS * _SLOT
        _SLOT_HEAD.pack_into(self._memory, at, 0, 0)
        data = texts.packed(_SLOT - _SLOT_HEAD.size)
        self._memory[at + _SLOT_HEAD.size : at + _SLOT_HEAD.size + len(data)] = data
        _SLOT_HEAD.pack_into(self._memory, at, self._texts_number, len(data))

    def texts(self, row: Array) -> Texts | None:
        """What a row says in words; None where other texts have taken the place of these."""
        number = int(row[25])
        if number == self._read[0]:
            return self._read[1]
        at = _MARKS + number % _SLOTS * _SLOT
        found, length = _SLOT_HEAD.unpack_from(self._memory, at)
        data = self._memory[at + _SLOT_HEAD.size : at + _SLOT_HEAD.size + length]
        if found != number or _SLOT_HEAD.unpack_from(self._memory, at) != (found, length):
            return None
        self._read = number, Texts(*json.loads(data))
        return self._read[1]

    @property
    def count(self) -> int:
        """How many rows have been written."""
        return int(self._count[0])

    def write(
        self, now: Situation, motion: Motion | None, lifecycle: Lifecycle, texts: Texts, missed: int, work: float
    ) -> None:
        """Add a period; in the loop's process."""
        if texts != self._texts:
            self._say(texts)
        count = self.count
        row, at = self._table[count % self.most], self._at
        action, state = now.action, now.state
        self._head.pack_into(
            self._memory,
            _ROWS + 8 * len(row) * (count % self.most),
            now.time,
            now.now,
            now.wake,
            state.time,
            int(action.mode),
            _LIVES.index(lifecycle),
            action.speed,
            now.override,
            now.moving,
            now.paused,
            now.changing,
            now.working_mode,
            now.silent_for,
            now.readable,
            now.saturated,
            action.gives_up,
            now.hold is not None,
            action.reference is not None,
            action.measured is not None,
            state.wrench is not None,
            missed,
            work,
            0.0 if motion is None else motion.elapsed,
            0.0 if motion is None else motion.position_error,
            0.0 if motion is None else motion.rotation_error,
            self._texts_number,
        )
        row[at["positions"]], row[at["velocities"]], row[at["efforts"]] = (
            state.positions,
            state.velocities,
            state.efforts,
        )
        row[at["command"]] = action.command
        if now.hold is not None:
            row[at["hold"]] = now.hold
        if action.reference is not None:
            wanted = action.reference
            begin = at["reference"].start
            row[begin : begin + 7], row[begin + 7 : begin + 13] = wanted.pose, wanted.twist
            row[begin + 13 : begin + 19] = wanted.acceleration
        if action.measured is not None:
            found = action.measured
            begin = at["measured"].start
            row[begin : begin + 7], row[begin + 7 : begin + 13], row[at["joints"]] = (
                found.pose,
                found.twist,
                found.joints,
            )
        if state.wrench is not None:
            row[at["wrench"]] = state.wrench
        self._count[0] = count + 1

    def row(self, number: int) -> Array | None:
        """A copy of a row; None where it has not been written, or is written over."""
        if not max(0, self.count - self.most + 1) <= number < self.count:
            return None
        copy = self._table[number % self.most].copy()
        return copy if number > self.count - self.most else None

    def part(self, row: Array, name: str) -> Array:
        """A vector of a row."""
        return row[self._at[name]]


_LIVES = tuple(Lifecycle)


@dataclass(frozen=True)
class Figures:
    """How one period kept its time: when it began [s, monotonic], deadlines missed until then, s of work in it."""

    wake: float
    missed: int
    work: float


class Channel:
    """Pickled messages over a socket that is never waited for, unless that is asked for."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._came = bytearray()
        self._goes = bytearray()
        self.closed = False
        self._hang_up = select.poll()
        self._hang_up.register(end, select.POLLRDHUP)
        self._incoming = select.poll()
        self._incoming.register(end, select.POLLIN)

    @property
    def hung_up(self) -> bool:
        """Whether the other half is gone, though what it said before may wait to be read."""
        return self.closed or bool(self._hang_up.poll(0))

    def wait(self) -> Any:
        """Wait for the next message; None at the end."""
        while not self.closed:
            found = self._next()
            if found is not None:
                return found[0]
            self._receive(0)
        return None

    def poll(self) -> list[Any]:
        """Take what has come, as much as one period may."""
        if not self._incoming.poll(0):  # nearly always: to look takes a third of what it takes to try
            return []
        self._receive(socket.MSG_DONTWAIT)
        found = []
        while (one := self._next()) is not None:
            found.append(one[0])
        return found

    def ready(self, longest: float) -> bool:
        """Wait for something to come, for so long at most [s]; return whether it has."""
        return bool(select.select([self._end], [], [], longest)[0])

    def send(self, message: Any) -> None:
        """Send without waiting; what does not fit into the socket now goes with the next call."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._goes += _LENGTH.pack(len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Send what is left."""
        try:
            while self._goes:
                del self._goes[: self._end.send(self._goes, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return
        except OSError:
            self.closed = True
            self._goes.clear()

    def put(self, message: Any) -> None:
        """Send, and wait until it is gone; not for the process of the loop."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._end.sendall(_LENGTH.pack(len(data)) + data)

    def _receive(self, flags: int) -> None:
        try:
            data = self._end.recv(_AT_ONCE, flags)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.closed = self.closed or not data
        self._came += data

    def _next(self) -> tuple[Any] | None:
        came = self._came
        if len(came) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(came)
        if len(came) < _LENGTH.size + length:
            return None
        message = pickle.loads(came[_LENGTH.size : _LENGTH.size + length])  # of our own other half
        del came[: _LENGTH.size + length]
        return (message,)


# The process of the loop


@dataclass(frozen=True)
class _Answer:
    """The answer to a request of a number; it waits for a controller that knows of the drives, until then [s]."""

    number: int
    answer: Any
    error: Exception | None
    until: float


class _Served:
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
        self._answers: list[_Answer] = []  # that are sent when their row is written
        self._warned = ""  # the warning that the other process was given
        self._alone = False  # the other process does not live, as far as is known
        self.ending = False

    def serve(self) -> None:
        """Until the other half is gone."""
        try:
            while not self.ending and (message := self._channel.wait()) is not None:
                self._handle(message)
                while self._running and not self.ending:
                    self._run()
        finally:
            if self._loop is not None:
                warning = self._loop.shut_down()
                if warning != self._warned and self._channel.hung_up:  # nobody else says it
                    print(warning, file=sys.stderr, flush=True)
                self._channel.send((Kind.ENDED, 0, warning))

    @property
    def _unwanted(self) -> bool:
        """Whether drives that are just being enabled are to be off."""
        marks = self._marks
        return marks.offs != self._offs or marks.stops != self._stops or self.ending or self._channel.hung_up

    def _stop_where_asked(self) -> None:
        """Do an emergency stop that the marks ask for; a request follows, for the answer."""
        if (stops := self._marks.stops) != self._stops and self._loop is not None:
            with self._marks.doing():
                try:
                    requests.emergency_stop(self._loop)
                finally:
                    self._stops = stops

    def _handle(self, message: tuple[Any, ...]) -> None:
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
                answer = self._loop.machine.untold
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
            self._answers.append(_Answer(number, answer, error, time.monotonic() + _ENABLED if enabled else 0.0))
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
        rehearsed = build(*arguments)
        rehearse(rehearsed.follower, rehearsed.kinematics)
        rehearsed.machine.rehearse()
        loop = build(*arguments)
        n, joints = len(loop.limits.names), len(loop.kinematics.joint_names)
        self._rows, self._priority = Rows(self._memory, n, joints), priority
        self._rows.clear()
        loop.machine.unwanted, loop.machine.telling = lambda: self._unwanted, self._marks.doing
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
        """Periods, until there are to be none."""
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
                self._listen()
                if not self._running:
                    break
                self._watch(loop, self._marks.silence)
                loop.period(periods)
                self._write(loop, rows, fixed, time.monotonic() - fixed.last_wake)
        finally:
            scheduling.release()
            self._send_answers()

    def _listen(self) -> None:
        """Do what has been asked."""
        self._stop_where_asked()
        for message in self._channel.poll():
            self._handle(message)
        if self._channel.closed:
            self.ending = True

    def _write(self, loop: ControlLoop, rows: Rows, fixed: FixedRateLoop, work: float | None) -> None:
        """Write a row, and tell what has changed; answers come after the row that shows what they tell.

        Args:
            loop: that had a period.
            rows: where it goes.
            fixed: the clock of the periods.
            work: s of the period that has just passed; None: what was asked for between two of them has been done.
        """
        if loop.last is None:
            return
        now = situation_of(loop, fixed.last_wake)
        texts = Texts(now.action.reason, loop.machine.fault, loop.machine.notice, loop.follower.force.lost)
        rows.write(now, loop.follower.motion, loop.machine.lifecycle, texts, fixed.missed, work or 0.0)
        self._marks.live()
        followed = work is not None and not (now.mode is Mode.WAITING and now.readable)
        self._send_answers(followed or loop.machine.lifecycle is not Lifecycle.ACTIVE)
        self._tell(loop)

    def _send_answers(self, followed: bool = True) -> None:
        """Send what was answered; that drives are on, when the controller knows it: `followed`."""
        answers, self._answers = self._answers, []
        for one in answers:
            if followed or time.monotonic() >= one.until:
                self._answer(one.number, one.answer, one.error)
            else:
                self._answers.append(one)

    def _watch(self, loop: ControlLoop, silence: float) -> None:
        """End what moves where nobody could stop it any more, and turn the drives off where that lasts."""
        if silence < _SILENCE[0]:
            self._alone = False
            return
        reason = f"the process that commands the loop has not lived for {silence:.1f} s"
        if not self._alone:
            self._alone = True
            loop.follower.stop(reason)
        if silence > _SILENCE[1] and loop.machine.lifecycle is Lifecycle.ACTIVE:
            loop.emergency_stop(f"{reason}: nobody could stop it")

    def _tell(self, loop: ControlLoop) -> None:
        """Send what has changed."""
        motion = loop.follower.motion
        if self._motion is not None and self._motion.outcome is not None:
            over = self._motion
            numbers = over.elapsed, over.position_error, over.rotation_error, over.samples, over.squares, over.largest
            self._channel.send((Kind.MOTION, 0, over.number, over.outcome, over.reason, numbers))
        self._motion = motion
        self._channel.flush()


def _serve_alone(end: socket.socket, memory: mmap.mmap) -> NoReturn:
    """In the child: be the process of a loop."""
    code = 1
    try:
        os.setsid()  # what ends the other half with all its group leaves this one the time to turn the drives off
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_PR_SET_NAME, b"pkm loop", 0, 0, 0)
        served = _Served(Channel(end), memory)

        def stop(*_: Any) -> None:
            served.ending = True

        for number in ending_signals.ENDING:
            signal.signal(number, stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        served.serve()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


# The other process


def _how(status: int | None) -> str:
    """How a process has ended, in words."""
    if status is None:
        return "nobody knows how"
    if status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"


class LoopProcess(RunningLoop):
    """The half in the process that asks: to be made while it has no other thread.

    `planning` makes what motions are checked with, from the number of a working mode: (check, jog). `on_output` and
    `on_payload` are told what happens on the way of motions, with the time of the reading; `say` takes lines for a log.
    All three are called in a thread of their own.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._memory = mmap.mmap(-1, _ROOM)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _serve_alone(theirs, self._memory)
        theirs.close()
        self._channel = Channel(ours)
        self._socket = ours
        self._sending = threading.Lock()
        self._numbers = 0
        self._answers: dict[int, tuple[threading.Event, list[Any]]] = {}
        self._motions: dict[int, Motion] = {}
        self._rows: Rows | None = None
        self._wake = 0.0  # s: of the last period that they tell of
        self._seen = 0  # rows that `figures` has given out
        self._planning: Callable[[int], tuple[CurveCheck, Jog]] | None = None
        self._planned: dict[int, tuple[CurveCheck, Jog]] = {}
        self._watchdog: Watchdog | None = None
        self._marks = Marks(self._memory)
        self._last_texts = Texts()
        self._last_resort: Callable[[], str] = lambda: ""
        self._reaping = threading.Lock()
        self._status: int | None = None  # as the process has ended, by `os.waitstatus_to_exitcode`
        self.untold = ""  # the warning that drives may be on, since it has ended
        self.payload: Inertial | None = None
        self.resting = True  # there are no periods, and the drives are off
        self._period = 0.0  # s
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

    # Life

    def build(
        self,
        build: Callable[..., ControlLoop],
        arguments: tuple[Any, ...],
        planning: Callable[[int], tuple[CurveCheck, Jog]],
        priority: int,
        last_resort: Callable[[], str] = lambda: "",
    ) -> None:
        """Have the other process build a loop, which takes as long as it takes.

        Args:
            build: a function of a module, that makes it.
            arguments: of it.
            planning: see above.
            priority: SCHED_FIFO priority of the loop while it runs, where permitted; 0: ordinary.
            last_resort: turns the drives off from this process, where that of the loop has died; answers with a warning
                where they could not be told.

        Raises:
            PkmError: it cannot be built.
        """
        self._last_resort = last_resort
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, name="loop's words", daemon=True)
            self._reader.start()
        self._rows, self._planned, self._planning = None, {}, planning
        self.real, self._period = self._send(Kind.BUILD, _PATIENCE, build, arguments, priority)
        kinematics = planning(0)[0].kinematics
        rows = Rows(self._memory, len(kinematics.actuated_names), len(kinematics.joint_names))
        self._marks.beat()
        self._rows = rows
        if self._beating is None:
            self._beating = threading.Thread(target=self._beat, name="beat", daemon=True)
            self._beating.start()
        if self._watchdog is None and priority:
            self._watchdog = Watchdog(self.pid, self.say)
            self._watchdog.start()

    def run(self) -> str:
        """Make contact with the machine, drives off, and begin; return why not, empty where it is done."""
        problem = str(self._send(Kind.RUN, _PATIENCE) or "")
        self.resting = bool(problem) and not self.real
        return problem

    def rest(self) -> str:
        """Turn the drives off, and end periods; return a warning where a drive could not be told."""
        self._marks.ask_off()
        warning = str(self._send(Kind.REST, _PATIENCE) or "")
        self.resting = True
        return warning

    def emergency_stop(self) -> str:
        """Turn the drives off at once, even while they are being enabled, until a reset.

        Where the loop is silent, its process is ended, and the drives are turned off from here.

        Returns:
            Why they may be on; empty where they are off.
        """
        self._marks.ask_stop()
        try:
            return str(self._send(Kind.ASK, _PATIENCE, requests.emergency_stop, ()) or "")
        except LoopEndedError as error:
            if not self.real or self.resting:
                return str(error)
            if not self.failure:
                self.say(f"{error}: it is ended, and the drives are turned off without it")
                self._kill()
            self._over.wait(_LAST_RESORT)
            return self.failure or str(error)

    def tell_emergency_stop(self) -> None:
        """The same, and wait for nothing."""
        self._marks.ask_stop()
        self.tell(requests.emergency_stop)

    def _beat(self) -> None:
        """In a thread: say that this process lives."""
        while not self._ended.wait(_BEAT_EVERY):
            self._marks.beat()

    def end(self) -> str:
        """End the process, drives off; return a warning where a drive could not be told."""
        warning = ""
        if self._reader is not None and not self.failure:
            try:
                warning = self.rest()
                self._ended.set()
            except PkmError:
                self._kill()
        if self._watchdog is not None:
            self._watchdog.end()
        if self._reader is not None and not self._ended.is_set():
            self._over.wait(_LAST_RESORT)
        self._ended.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            if self._reap(2.0) is not None:
                break
        self.untold = warning or self.untold
        return self.untold

    def _kill(self) -> None:
        """End a process that does not answer."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _reap(self, patience: float) -> int | None:
        """How the process has ended; None where it has not, so long [s]."""
        until = time.monotonic() + patience
        while True:
            with self._reaping, contextlib.suppress(ChildProcessError):
                if self._status is None and (found := os.waitpid(self.pid, os.WNOHANG))[0]:
                    self._status = os.waitstatus_to_exitcode(found[1])
            if self._status is not None or time.monotonic() > until:
                return self._status
            time.sleep(0.005)

    # What it says

    @property
    def begun(self) -> bool:
        """Whether there has been a period."""
        return self._rows is not None and self._rows.count > 0

    @property
    def lifecycle(self) -> Lifecycle:
        """Of the machine, as the loop said last."""
        if self.failure:
            return Lifecycle.FAULT
        row = self._newest()
        return Lifecycle.UNCONFIGURED if row is None else _LIVES[int(row[5])]

    @property
    def texts(self) -> Texts:
        """What the loop said last."""
        row = self._newest()
        return Texts() if row is None or self._rows is None else self._texts_of(row, self._rows)

    @property
    def problem(self) -> str:
        """Why nothing is known of the machine: the loop has ended, or is silent; empty where all is well."""
        limit = _STILL + 5.0 * self._period
        if self.failure or self._still < limit:
            return self.failure
        return f"the control loop has said nothing for more than {limit:.1f} s"

    @property
    def _still(self) -> float:
        """How long the loop has not done anything [s]; what it was asked for may take a while."""
        if self.resting or self._rows is None or self._rows.count == 0:
            return 0.0
        busy = self._marks.busy
        if busy:
            return max(0.0, busy - _LONGEST)
        return time.monotonic() - self._marks.alive

    def _texts_of(self, row: Array, rows: Rows) -> Texts:
        found = rows.texts(row)
        if found is not None:
            self._last_texts = found
        return self._last_texts

    @property
    def situation(self) -> Situation:
        """The newest one; never waits for the loop."""
        row, rows = self._newest(), self._rows
        if row is None or rows is None:
            raise LoopEndedError(self.failure or UNCONFIGURED)
        now = self._situation(row, rows)
        problem = self.problem
        if not (self.resting or problem):
            return now
        nothing = np.zeros_like(now.action.command)
        if problem and not self.failure:
            return replace(now, action=Action(Mode.STOPPED, nothing, problem, gives_up=True), readable=False)
        action = Action(Mode.WAITING, nothing, problem or UNCONFIGURED, speed=now.override, gives_up=True)
        return replace(now, action=action, moving=False, readable=False)

    def _newest(self) -> Array | None:
        rows = self._rows
        while rows is not None and (count := rows.count):
            row = rows.row(count - 1)
            if row is not None:
                return row
        return None

    def figures(self) -> list[Figures]:
        """How the periods since the last call kept their time; those that the ring has lost are left out."""
        rows, found = self._rows, []
        if rows is None:
            return []
        count = rows.count
        if count < self._seen:
            self._seen = 0
        for number in range(max(self._seen, count - rows.most // 2), count):
            row = rows.row(number)
            if row is not None and row[2] != self._wake:  # what is asked between periods has a row, too
                self._wake = row[2]
                found.append(Figures(float(row[2]), int(row[20]), float(row[21])))
        self._seen = count
        return found

    def _situation(self, row: Array, rows: Rows) -> Situation:
        def part(name: str) -> Array:
            return rows.part(row, name)

        reference = measured = None
        if row[17]:
            wanted = part("reference")
            reference = Reference(wanted[:7], wanted[7:13], wanted[13:])
        if row[18]:
            found, n = part("measured"), len(part("positions"))
            unknown = np.full((n, 6), np.nan)
            measured = Measured(part("positions"), part("velocities"), found[:7], found[7:], part("joints"), unknown)
        mode, texts = Mode(int(row[4])), self._texts_of(row, rows)
        action = Action(mode, part("command"), texts.reason, reference, measured, row[6], bool(row[15]))
        lifecycle = _LIVES[int(row[5])]
        wrench = part("wrench") if row[19] else None
        state = MachineState(
            row[3], part("positions"), part("velocities"), part("efforts"), lifecycle, texts.fault, wrench
        )
        return Situation(
            time=float(row[0]),
            now=float(row[1]),
            wake=float(row[2]),
            action=action,
            state=state,
            hold=part("hold") if row[16] else None,
            moving=bool(row[8]),
            paused=bool(row[9]),
            changing=bool(row[10]),
            override=float(row[7]),
            working_mode=int(row[11]),
            silent_for=float(row[12]),
            readable=bool(row[13]),
            saturated=bool(row[14]),
        )

    def note_progress(self) -> None:
        """Bring the motion that is followed to what the newest row says of it."""
        row = self._newest()
        if row is None:
            return
        for motion in tuple(self._motions.values()):
            if motion.outcome is None:
                motion.elapsed, motion.position_error, motion.rotation_error = row[22], row[23], row[24]

    @property
    def check(self) -> CurveCheck:
        """What the machine can do, in its present working mode, with what it carries."""
        return self._present()[0]

    @property
    def jog(self) -> Jog:
        """For its questions."""
        return self._present()[1]

    def _present(self) -> tuple[CurveCheck, Jog]:
        if self._planning is None:
            raise LoopEndedError("there is no robot")
        row = self._newest()
        mode = 0 if row is None else int(row[11])
        if mode not in self._planned:
            self._planned[mode] = self._planning(mode)
        self._planned[mode][0].payload = self.payload
        return self._planned[mode]

    def belt(self, name: str) -> BeltState:
        """Where a belt is now."""
        state: BeltState = self.ask(requests.belt_state, name)
        return state

    # What it is asked

    def ask(self, request: Callable[..., Any], *arguments: Any) -> Any:
        """Have the loop do something between two periods, and wait until it is done."""
        if request is requests.begin:
            self._motions[arguments[0].number] = arguments[0]
        if request is requests.disable:
            self._marks.ask_off()
        elif request is requests.emergency_stop:
            self._marks.ask_stop()
        try:
            return self._send(Kind.ASK, _PATIENCE, request, arguments)
        except PkmError:
            if request is requests.begin:
                self._motions.pop(arguments[0].number, None)
            raise

    def tell(self, request: Callable[..., Any], *arguments: Any) -> None:
        """Have the loop do something between two periods."""
        with self._sending, contextlib.suppress(OSError):
            self._channel.put((Kind.ASK, 0, request, arguments))

    def _send(self, kind: Kind, patience: float, *rest: Any) -> Any:
        """Send a request and wait for its answer, as long as the loop lives, and so long while it does nothing [s]."""
        if self.failure:
            raise LoopEndedError(self.failure)
        event = threading.Event()
        answer: list[Any] = []
        if not self._sending.acquire(timeout=_HOPELESS):
            raise LoopEndedError(self.problem or "the control loop does not take what it is asked")
        try:
            self._numbers += 1
            number = self._numbers
            self._answers[number] = event, answer
            self._channel.put((kind, number, *rest))
        except OSError as error:
            raise LoopEndedError(self.failure or f"the process of the control loop is gone: {error}") from error
        finally:
            self._sending.release()
        until = time.monotonic() + patience
        while not event.wait(_LOOK):
            busy = self._marks.busy
            if busy or self.failure:
                until = max(until, time.monotonic() + _LOOK)
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
        """In a thread: take what the loop says."""
        while (message := self._wait()) is not None:
            kind, number, *rest = message
            try:
                if kind is Kind.ANSWER:
                    event, answer = self._answers.pop(number, (threading.Event(), []))
                    answer += rest
                    event.set()
                elif kind is Kind.ENDED:
                    self.untold = rest[0]
                elif kind is Kind.OUTPUT:
                    self.on_output(*rest)
                elif kind is Kind.PAYLOAD:
                    self.payload = rest[1]
                    self.on_payload(*rest)
                elif kind is Kind.MOTION:
                    self._end_motion(*rest)
                elif kind is Kind.SAY:
                    self.say(rest[0])
            except Exception as error:  # of a callback
                self.say(f"{type(error).__name__}: {error}")
        self._note_end()

    def _note_end(self) -> None:
        """Whoever waits hears that the process has ended; drives that it may have left on are turned off from here."""
        ended = "the process of the control loop has ended"
        self.failure = ended
        if not self._ended.is_set():
            status = self._reap(_HOPELESS)
            died = status != 0
            self.failure = f"{ended} ({_how(status)})" if died else ended
            if self.real and not self.resting:
                if died:
                    self.untold = self._turn_off()
                self.failure += f"; {self.untold or 'the drives were turned off'}"
        self._over.set()
        for motion in self._motions.values():
            if motion.outcome is None:
                motion.reason, motion.outcome = self.failure, Outcome.STATE_LOST
        for event, _ in tuple(self._answers.values()):
            event.set()

    def _wait(self) -> Any:
        """The next message; the socket belongs to this thread for reading."""
        try:
            head = self._exactly(_LENGTH.size)
            return pickle.loads(self._exactly(_LENGTH.unpack(head)[0]))  # of our own other half
        except (OSError, EOFError):
            return None

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _turn_off(self) -> str:
        try:
            return self._last_resort()
        except Exception as error:
            return untold(error)

    @property
    def gone(self) -> bool:
        """Whether the process has ended by itself, and all has been done about the drives."""
        return self._over.is_set() and bool(self.failure)

    def _end_motion(self, number: int, outcome: Outcome, reason: str, numbers: tuple[Any, ...]) -> None:
        motion = self._motions.pop(number, None)
        if motion is None:
            return
        (
            motion.elapsed,
            motion.position_error,
            motion.rotation_error,
            motion.samples,
            motion.squares,
            motion.largest,
        ) = numbers
        motion.reason, motion.outcome = reason, outcome
