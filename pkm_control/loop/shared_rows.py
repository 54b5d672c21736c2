# SPDX-License-Identifier: Apache-2.0
"""Memory that two processes share about a control loop: its periods as rows of numbers, and marks."""

from __future__ import annotations

import contextlib
import json
import mmap
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_control.loop.followed_motion import Motion
from pkm_control.loop.running_loop import Situation
from pkm_hardware.machine import Lifecycle
from pkm_runtime.errors import shortened

Array = NDArray[np.float64]

LIVES = tuple(Lifecycle)
_HEAD = 26  # numbers of a row before its vectors
_BEAT, _ALIVE, _BUSY = 1, 2, 3  # places of times in memory
_OFFS, _STOPS = 4, 5  # places of counts
_MARKS = 64  # bytes
_SLOTS, _SLOT = 64, 1 << 14  # of texts; bytes of each
_ROWS = _MARKS + _SLOTS * _SLOT  # where rows begin


class Marks:
    """What the two processes know of each other at once: numbers in shared memory.

    Times are monotonic [s]. `alive`: last activity of the loop; `busy`: since when it has been executing a request, 0
    where it is not; `offs` and `stops`: how often drives off, and an emergency stop, were requested.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        self._times = np.frombuffer(memory, np.float64, _MARKS // 8)
        self._counts = np.frombuffer(memory, np.int64, _MARKS // 8)
        self._asking = threading.Lock()

    def beat(self) -> None:
        """In the requesting process: signal that it lives."""
        self._times[_BEAT] = time.monotonic()

    @property
    def silence(self) -> float:
        """Time since the last `beat` [s]."""
        return time.monotonic() - float(self._times[_BEAT])

    def live(self) -> None:
        """In the loop's process: signal activity."""
        self._times[_ALIVE] = time.monotonic()

    @property
    def alive(self) -> float:
        """Time of the last activity [s]."""
        return float(self._times[_ALIVE])

    @contextlib.contextmanager
    def doing(self) -> Iterator[None]:
        """In the loop's process: enclose what takes a while, such as a request or disabling drives."""
        before = float(self._times[_BUSY])
        self._times[_BUSY] = before or time.monotonic()
        try:
            yield
        finally:
            self.live()
            self._times[_BUSY] = before

    @property
    def busy(self) -> float:
        """How long that has taken until now [s]; 0 outside."""
        since = float(self._times[_BUSY])
        return time.monotonic() - since if since else 0.0

    def ask_off(self) -> None:
        """Request drives off; a message follows."""
        with self._asking:
            self._counts[_OFFS] += 1

    def ask_stop(self) -> None:
        """Request an emergency stop."""
        with self._asking:
            self._counts[_STOPS] += 1

    @property
    def offs(self) -> int:
        """How often drives off was requested."""
        return int(self._counts[_OFFS])

    @property
    def stops(self) -> int:
        """How often an emergency stop was requested."""
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
        """As bytes, shortened to fit into `room`."""
        words = [self.reason, self.fault, self.notice, self.force_lost]
        data = json.dumps(words).encode()
        if len(data) > room:  # 6 bytes for one letter at most
            data = json.dumps([shortened(word, room // 32) for word in words]).encode()
        return data


class Rows:
    """Periods of a loop as rows of numbers in memory shared by two processes: one writes, the other reads.

    A row is overwritten when the ring comes round; a reader checks afterwards whether it was meanwhile. `n` actuators,
    `joints` in all.
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
        """Begin anew; all pages of the memory are resident afterwards."""
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
        """The texts of a row; None where others have replaced them."""
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
        """Number of rows written."""
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
            LIVES.index(lifecycle),
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
        """A copy of a row; None where it has not been written, or is overwritten."""
        if not max(0, self.count - self.most + 1) <= number < self.count:
            return None
        copy = self._table[number % self.most].copy()
        return copy if number > self.count - self.most else None

    def part(self, row: Array, name: str) -> Array:
        """A vector of a row."""
        return row[self._at[name]]


@dataclass(frozen=True)
class Figures:
    """Timing of one period: its beginning [s, monotonic], deadlines missed until then, its work [s]."""

    wake: float
    missed: int
    work: float
