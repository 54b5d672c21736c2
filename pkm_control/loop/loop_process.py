# SPDX-License-Identifier: Apache-2.0
"""A control loop in a process of its own, where nothing else runs: no middleware, and no other thread.

A loop with a real-time priority must not wait for what an ordinary thread holds, and in Python that is the interpreter
itself. So the loop is alone in its process. It is asked through a socket that it never waits for, and tells each
period as a row of numbers in memory that both processes see; texts follow by the socket when they change.

The loop's process outlives the one that began it by the moment that it takes to turn the drives off.
"""

from __future__ import annotations

import contextlib
import ctypes
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
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.conveyor.conveyor import BeltState
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
from pkm_description.errors import PkmError
from pkm_description.mechanism import Inertial

Array = NDArray[np.float64]

UNCONFIGURED = "the machine has not been configured"
_LENGTH = struct.Struct("<q")
_AT_ONCE = 1 << 16  # bytes that one period takes from the socket: a long motion comes in several
_ROOM = 1 << 22  # bytes, for rows: some seconds of them
_BEAT_EVERY = 0.05  # s: how often the process that asks says that it lives
_SILENCE = 1.0, 3.0  # s, of that process: after which the loop ends what moves, and turns the drives off
_STILL = 0.5  # s without a period, after which the loop has fallen silent
_IDLE = 0.005  # s before the next period: as long the loop listens in between, where periods are long
_HEAD = 25  # numbers of a row before its vectors
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
    TEXTS = 8
    SAY = 9


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
        self._beat = np.frombuffer(memory, np.float64, 1, 8)  # s, monotonic: when the other process last lived
        self.most = (len(memory) - 64) // (8 * begin)
        self._table = np.frombuffer(memory, np.float64, self.most * begin, 64).reshape(self.most, begin)

    def clear(self) -> None:
        """Begin anew; all pages of the memory are there afterwards."""
        self._count[0] = 0
        self._table[:] = 0.0
        self.beat()

    def beat(self) -> None:
        """Say that the process lives that asks; in that process."""
        self._beat[0] = time.monotonic()

    @property
    def silence(self) -> float:
        """How long it has not said so [s]."""
        return time.monotonic() - float(self._beat[0])

    @property
    def count(self) -> int:
        """How many rows have been written."""
        return int(self._count[0])

    def write(self, now: Situation, motion: Motion | None, lifecycle: Lifecycle, missed: int, work: float) -> None:
        """Add a period; in the loop's process."""
        count = self.count
        row, at = self._table[count % self.most], self._at
        action, state = now.action, now.state
        self._head.pack_into(
            self._memory,
            64 + 8 * len(row) * (count % self.most),
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
class Texts:
    """What a loop says in words; told when one of them changes."""

    reason: str = ""
    fault: str = ""
    notice: str = ""
    force_lost: str = ""


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


class _Served:
    """The half in the process of the loop."""

    def __init__(self, channel: Channel, memory: mmap.mmap) -> None:
        self._channel = channel
        self._memory = memory
        self._loop: ControlLoop | None = None
        self._rows: Rows | None = None
        self._running = False
        self._texts = Texts()
        self._motion: Motion | None = None
        self._priority = 0
        self._answers: list[tuple[int, Any, Exception | None]] = []  # that are sent when their row is written
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
                self._loop.shut_down()

    def _handle(self, message: tuple[Any, ...]) -> None:
        kind, number, *rest = message
        answer: Any = None
        error: Exception | None = None
        try:
            if kind is Kind.BUILD:
                answer = self._build(*rest)
            elif kind is Kind.RUN:
                answer = self._begin()
            elif kind is Kind.REST:
                answer = self._rest()
            elif self._loop is None:
                raise LoopEndedError("there is no robot")
            else:
                asked = Request(rest[0], rest[1])
                asked.run(self._loop)
                answer, error = asked.answer, asked.error
        except Exception as caught:
            error = caught
        if error is not None and not isinstance(error, PkmError):
            traceback.print_exception(error)
        if number and self._running and kind is Kind.ASK:
            self._answers.append((number, answer, error))
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
        loop.on_output = lambda event: self._channel.send((Kind.OUTPUT, 0, loop.follower.time, event))
        loop.on_payload = lambda payload: self._channel.send((Kind.PAYLOAD, 0, loop.follower.time, payload))
        self._loop, self._texts = loop, Texts()
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
        return self._loop.shut_down() if self._loop is not None else ""

    def _run(self) -> None:
        """Periods, until there are to be none."""
        loop, rows = self._loop, self._rows
        assert loop is not None
        assert rows is not None
        fixed = FixedRateLoop(loop.rate)
        scheduling = LoopScheduling(self._priority, lambda text: self._channel.send((Kind.SAY, 0, text)), alone=True)
        scheduling.request()
        fixed.restart()
        rows.beat()
        try:
            while self._running and not self.ending:
                while self._running and (left := fixed.left) > 2.0 * _IDLE and self._channel.ready(left - _IDLE):
                    self._listen()  # at once, where periods are long: a stop waits for nothing
                    self._write(loop, rows, fixed, 0.0)
                periods = fixed.wait()
                self._listen()
                if not self._running:
                    break
                self._watch(loop, rows.silence)
                loop.period(periods)
                self._write(loop, rows, fixed, time.monotonic() - fixed.last_wake)
        finally:
            scheduling.release()
            self._send_answers()

    def _listen(self) -> None:
        """Do what has been asked."""
        for message in self._channel.poll():
            self._handle(message)
        if self._channel.closed:
            self.ending = True

    def _write(self, loop: ControlLoop, rows: Rows, fixed: FixedRateLoop, work: float) -> None:
        """Write a row, and tell what has changed; answers come after the row that shows what they tell."""
        if loop.last is None:
            return
        now = situation_of(loop, fixed.last_wake)
        rows.write(now, loop.follower.motion, loop.machine.lifecycle, fixed.missed, work)
        self._send_answers()
        self._tell(loop, now)

    def _send_answers(self) -> None:
        answers, self._answers = self._answers, []
        for answer in answers:
            self._answer(*answer)

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

    def _tell(self, loop: ControlLoop, now: Situation) -> None:
        """Send what has changed."""
        motion = loop.follower.motion
        if self._motion is not None and self._motion.outcome is not None:
            over = self._motion
            numbers = over.elapsed, over.position_error, over.rotation_error, over.samples, over.squares, over.largest
            self._channel.send((Kind.MOTION, 0, over.number, over.outcome, over.reason, numbers))
        self._motion = motion
        texts = Texts(now.action.reason, loop.machine.fault, loop.machine.notice, loop.follower.force.lost)
        if texts != self._texts:
            self._texts = texts
            self._channel.send((Kind.TEXTS, 0, texts))
        else:
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

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, stop)
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
        self.texts = Texts()
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

    # Life

    def build(
        self,
        build: Callable[..., ControlLoop],
        arguments: tuple[Any, ...],
        planning: Callable[[int], tuple[CurveCheck, Jog]],
        priority: int,
    ) -> None:
        """Have the other process build a loop, which takes as long as it takes.

        Args:
            build: a function of a module, that makes it.
            arguments: of it.
            planning: see above.
            priority: SCHED_FIFO priority of the loop while it runs, where permitted; 0: ordinary.

        Raises:
            PkmError: it cannot be built.
        """
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, name="loop's words", daemon=True)
            self._reader.start()
        self._rows, self._planned, self._planning = None, {}, planning
        self.real, self._period = self._send(Kind.BUILD, None, build, arguments, priority)
        kinematics = planning(0)[0].kinematics
        rows = Rows(self._memory, len(kinematics.actuated_names), len(kinematics.joint_names))
        rows.beat()
        self._rows = rows
        if self._beating is None:
            self._beating = threading.Thread(target=self._beat, name="beat", daemon=True)
            self._beating.start()
        if self._watchdog is None and priority:
            self._watchdog = Watchdog(self.pid, self.say)
            self._watchdog.start()

    def run(self) -> str:
        """Make contact with the machine, drives off, and begin; return why not, empty where it is done."""
        problem = str(self._send(Kind.RUN, None) or "")
        self.resting = bool(problem) and not self.real
        return problem

    def rest(self) -> str:
        """Turn the drives off, and end periods; return a warning where a drive could not be told."""
        self.resting = True
        return str(self._send(Kind.REST, _PATIENCE) or "")

    def _beat(self) -> None:
        """In a thread: say that this process lives."""
        while not self._ended.wait(_BEAT_EVERY):
            if (rows := self._rows) is not None:
                rows.beat()

    def end(self) -> str:
        """End the process, drives off; return a warning where a drive could not be told."""
        self._ended.set()
        warning = ""
        if self._reader is not None and not self.failure:
            with contextlib.suppress(PkmError):
                warning = self.rest()
        if self._watchdog is not None:
            self._watchdog.end()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._wait_for_end()
        return warning

    def _wait_for_end(self) -> None:
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + 2.0
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            while time.monotonic() < until:
                try:
                    if os.waitpid(self.pid, os.WNOHANG)[0]:
                        return
                except ChildProcessError:
                    return
                time.sleep(0.005)

    # What it says

    @property
    def begun(self) -> bool:
        """Whether there has been a period."""
        return self._rows is not None and self._rows.count > 0

    @property
    def lifecycle(self) -> Lifecycle:
        """Of the machine."""
        row = self._newest()
        return Lifecycle.UNCONFIGURED if row is None else _LIVES[int(row[5])]

    @property
    def situation(self) -> Situation:
        """The newest one; never waits for the loop."""
        row, rows = self._newest(), self._rows
        if row is None or rows is None:
            raise LoopEndedError(self.failure or UNCONFIGURED)
        now = self._situation(row, rows)
        still = time.monotonic() - now.wake
        if not (self.resting or self.failure):
            if still < _STILL + 5.0 * self._period:
                return now
            reason = f"the control loop has said nothing for {still:.1f} s"
            nothing = np.zeros_like(now.action.command)
            return replace(now, action=Action(Mode.STOPPED, nothing, reason, gives_up=True), readable=False)
        nothing = np.zeros_like(now.action.command)
        action = Action(Mode.WAITING, nothing, self.failure or UNCONFIGURED, speed=now.override, gives_up=True)
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
        mode = Mode(int(row[4]))
        action = Action(mode, part("command"), self.texts.reason, reference, measured, row[6], bool(row[15]))
        lifecycle = _LIVES[int(row[5])]
        wrench = part("wrench") if row[19] else None
        state = MachineState(
            row[3], part("positions"), part("velocities"), part("efforts"), lifecycle, self.texts.fault, wrench
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

    def _send(self, kind: Kind, patience: float | None, *rest: Any) -> Any:
        """Send a request and wait for its answer."""
        if self.failure:
            raise LoopEndedError(self.failure)
        event = threading.Event()
        answer: list[Any] = []
        with self._sending:
            self._numbers += 1
            number = self._numbers
            self._answers[number] = event, answer
            try:
                self._channel.put((kind, number, *rest))
            except OSError as error:
                raise LoopEndedError(self.failure or f"the process of the control loop is gone: {error}") from error
        if not event.wait(patience):
            self._answers.pop(number, None)
            raise LoopEndedError(f"the control loop does not answer within {patience:g} s")
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
                elif kind is Kind.TEXTS:
                    self.texts = rest[0]
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
        self.failure = f"the process of the control loop has ended{self._how()}; the drives' own watchdogs are left"
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

    def _how(self) -> str:
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return f" ({os.waitstatus_to_exitcode(status)})"
        return ""

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
