# SPDX-License-Identifier: Apache-2.0
"""What the process of a loop and its parent share: messages over a socket, marks and rows of numbers in memory."""

from __future__ import annotations

import contextlib
import json
import mmap
import pickle
import select
import socket
import struct
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.loop.followed_motion import Action, Motion
from pkm_control.loop.running_loop import Situation
from pkm_control.operator_interface import Mode
from pkm_description.mechanism import Array
from pkm_hardware.machine import Lifecycle, MachineState
from pkm_runtime.errors import shortened

LENGTH = struct.Struct("<q")
_AT_ONCE = 1 << 16  # bytes that one period takes from the socket: a long motion comes in several


class Kind(Enum):
    """Kinds of messages between the two processes."""

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


def _packed(message: Any) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


class Channel:
    """Pickled messages over a socket; only `wait`, `ready` and `put` wait."""

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
    def peer_closed(self) -> bool:
        """Whether the other half is gone, though its last messages may wait to be read."""
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
        """The messages that have come, as many as one period may take."""
        if not self._incoming.poll(0):  # nearly always; to try would raise and catch an error
            return []
        self._receive(socket.MSG_DONTWAIT)
        found = []
        while (one := self._next()) is not None:
            found.append(one[0])
        return found

    def ready(self, longest: float) -> bool:
        """Wait up to `longest` [s] for something to come; whether it has."""
        return bool(select.select([self._end], [], [], longest)[0])

    def send(self, message: Any) -> None:
        """Send without waiting; what does not fit into the socket now goes with the next call."""
        self._goes += _packed(message)
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
        self._end.sendall(_packed(message))

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
        if len(came) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(came)
        if len(came) < LENGTH.size + length:
            return None
        message = pickle.loads(came[LENGTH.size : LENGTH.size + length])  # of our own other half
        del came[: LENGTH.size + length]
        return (message,)


LIVES = tuple(Lifecycle)
_BEAT, _ALIVE, _BUSY = 1, 2, 3  # places of times in memory
_OFFS, _STOPS, _SENT = 4, 5, 6  # places of counts
_TELLING = 7  # place of a time
_MARKS = 64  # bytes
_SLOTS, _SLOT = 64, 1 << 14  # of texts; bytes of each
_ROWS = _MARKS + _SLOTS * _SLOT  # where rows begin


def _count_at(place: int) -> property:
    def count(marks: Marks) -> int:
        return marks._counts[place]

    return property(count)


class Marks:
    """What the two processes know of each other at once: numbers in shared memory; times are monotonic [s].

    `alive`: last activity of the loop; `busy`: since when it has been executing a request; `offs` and `stops`: how
    often drives off, and an emergency stop, were requested; `sent`: messages that the loop was sent, or is being sent.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        marks = memoryview(memory)[:_MARKS]
        self._times, self._counts = marks.cast("d"), marks.cast("q")
        self._asking = threading.Lock()

    def beat(self) -> None:
        """In the requesting process: signal that it lives."""
        self._times[_BEAT] = time.monotonic()

    @property
    def silence(self) -> float:
        """Time since the last `beat` [s]."""
        return time.monotonic() - self._times[_BEAT]

    def live(self) -> None:
        """In the loop's process: signal activity."""
        self._times[_ALIVE] = time.monotonic()

    @property
    def alive(self) -> float:
        """Time of the last activity [s]."""
        return self._times[_ALIVE]

    @contextlib.contextmanager
    def doing(self) -> Iterator[None]:
        """In the loop's process: enclose what takes a while, such as a request or disabling drives."""
        before = self._times[_BUSY]
        self._times[_BUSY] = before or time.monotonic()
        try:
            yield
        finally:
            self.live()
            self._times[_BUSY] = before

    @contextlib.contextmanager
    def turning_off(self) -> Iterator[None]:
        """In the loop's process: as `doing`, of disabling drives."""
        self._times[_TELLING] = time.monotonic()
        try:
            with self.doing():
                yield
        finally:
            self._times[_TELLING] = 0.0

    @property
    def telling(self) -> float:
        """How long drives have been being disabled until now [s]; 0 outside."""
        since = self._times[_TELLING]
        return time.monotonic() - since if since else 0.0

    @property
    def busy(self) -> float:
        """How long that has taken until now [s]; 0 outside."""
        since = self._times[_BUSY]
        return time.monotonic() - since if since else 0.0

    def ask_off(self) -> None:
        """Request drives off; a message follows."""
        self._add(_OFFS)

    def ask_stop(self, instead: bool = False) -> None:
        """Request an emergency stop, also `instead` of drives off whose message cannot be sent."""
        self._add(_STOPS)
        if instead:
            self._add(_OFFS, -1)

    def send(self) -> None:
        """Note that a message is about to be sent."""
        self._add(_SENT)

    def _add(self, place: int, one: int = 1) -> None:
        with self._asking:
            self._counts[place] += one

    offs, stops, sent = _count_at(_OFFS), _count_at(_STOPS), _count_at(_SENT)


_SLOT_HEAD = struct.Struct("<2q")  # number of the texts, and how many bytes they have


class Texts(NamedTuple):
    """What a loop says in words."""

    reason: str = ""
    fault: str = ""
    notice: str = ""

    def packed(self, room: int) -> bytes:
        """As bytes, shortened to fit into `room`."""
        data = json.dumps(self).encode()
        if len(data) > room:  # 6 bytes for one letter at most
            data = json.dumps([shortened(word, room // 32) for word in self]).encode()
        return data


_SITUATION = "time now wake moving paused changing override working_mode readable silent_for saturated"
_numbers_of = attrgetter(*_SITUATION.split())


class Head(
    namedtuple(
        "Head",
        "time now wake moving paused changing override working_mode readable silent_for saturated read mode lifecycle "
        "speed withhold_command has_hold has_reference has_measured has_wrench missed work elapsed position_error "
        "rotation_error texts",
    )
):
    """Numbers of a row before its vectors; times in s, `missed` in deadlines, `texts` the number of the texts."""

    @classmethod
    def of(cls, row: Array) -> Head:
        """That of a row."""
        return cls(*row[:_HEAD].tolist())


_HEAD = len(Head._fields)
_WAKE, _MISSED, _WORK = (Head._fields.index(name) for name in ("wake", "missed", "work"))


class Rows:
    """Periods of a loop as rows of numbers in memory shared by two processes: one writes, the other reads, and checks
    afterwards whether the ring came round meanwhile. `n` actuators, `joints` in all, `redundant` of them.
    """

    def __init__(self, memory: mmap.mmap, n: int, joints: int, redundant: int = 0) -> None:
        sizes = dict.fromkeys(("positions", "velocities", "efforts", "command"), n)
        sizes |= {"hold": 7 + redundant, "reference": 19 + 3 * redundant, "measured": 13, "joints": joints, "wrench": 6}
        self._redundant, self._split = redundant, [7 + redundant, 13 + 2 * redundant]
        self._nowhere, self._untouched = np.zeros(7), np.zeros(6)  # in place of what is not known
        self._unwanted = Reference(self._nowhere, self._untouched, self._untouched)
        self._unseen = self._nowhere, self._untouched, np.zeros(joints)
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
        self._seen, self._wake = 0, 0.0  # rows that `figures` has given out; when the last period in them began [s]

    def clear(self) -> None:
        """Begin anew; all pages of the memory are resident afterwards."""
        self._count[0] = 0
        self._table[:] = 0.0
        self._memory[_MARKS:_ROWS] = bytes(_ROWS - _MARKS)
        self._say(Texts())

    def _say(self, texts: Texts) -> None:
        self._texts, self._texts_number = texts, self._texts_number + 1
        at = _MARKS + self._texts_number % _SLOTS * _SLOT
        _SLOT_HEAD.pack_into(self._memory, at, 0, 0)
        data = texts.packed(_SLOT - _SLOT_HEAD.size)
        self._memory[at + _SLOT_HEAD.size : at + _SLOT_HEAD.size + len(data)] = data
        _SLOT_HEAD.pack_into(self._memory, at, self._texts_number, len(data))

    def texts(self, row: Array) -> Texts:
        """The texts of a row, or where others have replaced them those that were read last."""
        number = int(Head.of(row).texts)
        if number == self._read[0]:
            return self._read[1]
        at = _MARKS + number % _SLOTS * _SLOT
        found, length = _SLOT_HEAD.unpack_from(self._memory, at)
        data = self._memory[at + _SLOT_HEAD.size : at + _SLOT_HEAD.size + length]
        if found == number and _SLOT_HEAD.unpack_from(self._memory, at) == (found, length):
            self._read = number, Texts(*json.loads(data))
        return self._read[1]

    @property
    def count(self) -> int:
        """Number of rows written."""
        return int(self._count[0])

    def write(
        self, now: Situation, motion: Motion | None, lifecycle: Lifecycle, texts: Texts, missed: int, work: float
    ) -> None:
        """Add a period; in the loop's process."""
        if texts != self._texts:
            self._say(texts)
        count = self.count
        row = self._table[count % self.most]
        action, state = now.action, now.state
        self._head.pack_into(  # in the order of `Head`
            self._memory,
            _ROWS + 8 * len(row) * (count % self.most),
            *_numbers_of(now),
            *(state.time, int(action.mode), LIVES.index(lifecycle), action.speed),
            action.withhold_command,
            now.hold is not None,
            action.reference is not None,
            action.measured is not None,
            state.wrench is not None,
            missed,
            work,
            *((0.0,) * 3 if motion is None else (motion.elapsed, motion.position_error, motion.rotation_error)),
            self._texts_number,
        )
        wanted, found = action.reference or self._unwanted, action.measured
        numbers = (
            state.positions,
            state.velocities,
            state.efforts,
            action.command,
            self._whole(self._nowhere if now.hold is None else now.hold, 7),
            self._whole(wanted.pose, 7),
            self._whole(wanted.twist, 6),
            self._whole(wanted.acceleration, 6),
            *(self._unseen if found is None else (found.pose, found.twist, found.joints)),
            self._untouched if state.wrench is None else state.wrench,
        )
        np.concatenate(numbers, out=row[_HEAD:])
        self._count[0] = count + 1

    def _whole(self, values: Array, own: int) -> Array:
        """Values (own,) or (own + r,); NaN for redundant joints of which they say nothing."""
        return values if len(values) > own else np.append(values, np.full(self._redundant, np.nan))

    def row(self, number: int) -> Array | None:
        """A copy of a row; None where it has not been written, or is overwritten."""
        if not max(0, self.count - self.most + 1) <= number < self.count:
            return None
        copy = self._table[number % self.most].copy()
        return copy if number > self.count - self.most else None

    @property
    def newest(self) -> Array | None:
        """A copy of the newest row; None before there is one."""
        while count := self.count:
            row = self.row(count - 1)
            if row is not None:
                return row
        return None

    def situation(self, row: Array) -> Situation:
        """The situation of a row."""
        head, texts, part = Head.of(row), self.texts(row), {name: row[at] for name, at in self._at.items()}
        reference = measured = None
        if head.has_reference:
            reference = Reference(*(_said(values) for values in np.split(part["reference"], self._split)))
        positions, velocities = part["positions"], part["velocities"]
        if head.has_measured:
            found, unknown = part["measured"], np.full((len(positions), 6), np.nan)
            measured = Measured(positions, velocities, found[:7], found[7:], part["joints"], unknown)
        mode, life, withheld = Mode(int(head.mode)), LIVES[int(head.lifecycle)], bool(head.withhold_command)
        wrench = part["wrench"] if head.has_wrench else None
        return Situation(
            head.time,
            head.now,
            head.wake,
            Action(mode, part["command"], texts.reason, reference, measured, head.speed, withheld),
            MachineState(head.read, positions, velocities, part["efforts"], life, texts.fault, wrench),
            _said(part["hold"]) if head.has_hold else None,
            override=head.override,
            working_mode=int(head.working_mode),
            silent_for=head.silent_for,
            **{name: bool(getattr(head, name)) for name in ("moving", "paused", "changing", "readable", "saturated")},
        )

    def figures(self) -> Figures:
        """Timing of the periods since the last call, without those that the ring has lost."""
        count = self.count
        rows = self._table[np.arange(max(self._seen, count - self.most // 2), count) % self.most]
        found = Figures(rows[:, _WAKE], rows[:, _MISSED], rows[:, _WORK])
        anew = np.diff(found.wakes, prepend=self._wake) != 0.0  # what is asked between periods has a row, too
        self._wake = found.wakes[-1] if count > self._seen else self._wake
        self._seen = count
        return Figures(*(part[anew] for part in found))


def _said(values: Array) -> Array:
    """Values without those of redundant joints, where these are NaN: nothing was said of them."""
    return values[: -int(np.isnan(values).sum())] if np.isnan(values[-1]) else values


class Figures(NamedTuple):
    """Timing of periods: their beginnings [s, monotonic], deadlines missed until then, and their work [s], all (n,)."""

    wakes: Array
    missed: Array
    work: Array


NO_FIGURES = Figures(np.zeros(0), np.zeros(0), np.zeros(0))
