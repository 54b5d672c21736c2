# SPDX-License-Identifier: Apache-2.0
"""Numbers out of many serialised messages of one stream at once, and into them.

To read a message, or to make and publish one with poses and twists, costs Python some 60 us, too much at a thousand
messages a second; by byte layout it takes 5 us. Messages of one stream share their layout as long as names and frames
stay the same: the stamp behind four bytes of encoding (CDR), the numbers at the end. The first message is read in full,
and its layout is used only if it reproduces that message; messages of another layout are read in full too. Bytes that
pad have any value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message, serialize_message

from pkm_description.ros.messages import RequestError, to_joints
from pkm_runtime.errors import PkmError

_STAMP = slice(4, 12)  # s and ns, four bytes each
_STAMP_STRUCT = struct.Struct("<iI")
_LITTLE_ENDIAN = 1  # second byte
_MARK = 1.2345678987654321e123  # its multiples stand nowhere else in a message
_TRIES = 5  # messages in whose bytes the numbers are looked for; a stream in another order has them nowhere


def read_message(data: bytes, message_type: Any) -> Any:
    """Deserialised message; `RequestError` unless it is one of that type."""
    try:
        return deserialize_message(data, message_type)
    except Exception as error:  # of the middleware's own kinds
        raise RequestError(f"{len(data)} bytes that are not a {message_type.__name__}") from error


def places(message: bytes, n: int, groups: int = 1, gap: int = 0) -> list[slice]:
    """Byte ranges of the `n` last numbers of a message, in equal `groups` with `gap` bytes between; or none."""
    size, left = divmod(8 * n, groups)
    begins = [len(message) - (k + 1) * size - k * gap for k in reversed(range(groups))]
    if left or not size or begins[0] < _STAMP.stop or message[1] != _LITTLE_ENDIAN:
        return []
    return [slice(begin, begin + size) for begin in begins]


class RawRows:
    """Reads the messages of one stream, of a type with a header first.

    `read` gives the wanted numbers (n,) of a message, the last in it, in its order. They are in `groups` of equal size
    with `gap` bytes between: lengths of sequences, with their padding.
    """

    def __init__(self, message_type: Any, read: Callable[[Any], NDArray[np.float64]], groups: int = 1, gap: int = 0):
        self._type, self._read = message_type, read
        self._groups, self._gap = groups, gap
        self._like = b""  # a message whose layout is known
        self._at: list[slice] = []  # its groups of numbers
        self._head = slice(0)  # what is between stamp and numbers
        self._same: list[slice] = []  # what of it must be the same in others: all but bytes that pad
        self._others = 0  # messages of this length that said something else
        self._numbers = struct.Struct("")
        self._tries = 0

    def readable(self, data: bytes) -> bool:
        """Whether `rows` and `row` can read a serialised message; else they raise `PkmError`."""
        if self.knows(data):
            return True
        try:
            self._in_full([data])
        except PkmError:
            return False
        return True

    def rows(self, data: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Stamps (k,) [ns] and numbers (k, n) of serialised messages."""
        if data and not self._at:
            self._learn(data[0])
        if not self._at or any(not self._alike(one) for one in data):
            return self._in_full(data)
        table = np.frombuffer(b"".join(data), dtype=np.uint8).reshape(len(data), len(self._like))
        seconds, nanoseconds = np.ascontiguousarray(table[:, _STAMP]).view("<u4").T.astype(np.int64)
        parts = [np.ascontiguousarray(table[:, at]).view("<f8") for at in self._at]
        return seconds * 1_000_000_000 + nanoseconds, np.concatenate(parts, axis=1)

    def row(self, data: bytes) -> tuple[Time, NDArray[np.float64]]:
        """Stamp and numbers (n,) of one message, in 5 us of the 31 for the whole message; or `RequestError`."""
        if not self._at and self._tries < _TRIES:
            self._learn(data)
        if self.knows(data):
            numbers = np.array(self._numbers.unpack_from(data, self._at[0].start))
            if np.isfinite(numbers).all():  # others are left to `read`, which may refuse them
                seconds, nanoseconds = _STAMP_STRUCT.unpack_from(data, _STAMP.start)
                return Time(sec=seconds, nanosec=nanoseconds), numbers
        message = read_message(data, self._type)
        return message.header.stamp, np.asarray(self._read(message), dtype=np.float64)

    def knows(self, data: bytes) -> bool:
        """Whether a serialised message has the layout of those before."""
        return bool(self._at) and self._alike(data)

    def _alike(self, one: bytes) -> bool:
        if len(one) != len(self._like) or one[:4] != self._like[:4]:
            return False
        return all(one[at] == self._like[at] for at in self._same) or self._differs_in_padding(one)

    def _differs_in_padding(self, one: bytes) -> bool:
        """Whether a message of the same length says the same in its head; bytes that differ are not compared again."""
        like, head = self._like, self._head
        if self._others >= _TRIES:
            return False
        try:
            same = read_message(like[: head.start] + one[head] + like[head.stop :], self._type) == read_message(
                like, self._type
            )
        except RequestError:
            same = False
        if not same:
            self._others += 1
            return False
        kept = {k for at in self._same for k in range(at.start, at.stop) if one[k] == like[k]}
        begins, ends = sorted(k for k in kept if k - 1 not in kept), sorted(k + 1 for k in kept if k + 1 not in kept)
        self._same = [slice(begin, end) for begin, end in zip(begins, ends, strict=True)]
        return True

    def _learn(self, first: bytes) -> None:
        """Learn the byte layout from the first message; unknown where its numbers are not found."""
        self._tries += 1
        stamps, numbers = self._in_full([first])
        at = places(first, numbers.shape[1], self._groups, self._gap)
        if not at:
            return
        self._like, self._head, self._at = first, slice(_STAMP.stop, at[0].start), at
        self._same = [self._head]
        group = f"{numbers.shape[1] // self._groups}d"
        self._numbers = struct.Struct("<" + f"{self._gap}x".join([group] * self._groups))
        found = self.rows([first])
        if found[0][0] != stamps[0] or not np.array_equal(found[1], numbers, equal_nan=True):
            self._at = []

    def _in_full(self, data: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        messages = [read_message(one, self._type) for one in data]
        stamps = [m.header.stamp.sec * 1_000_000_000 + m.header.stamp.nanosec for m in messages]
        return np.array(stamps, dtype=np.int64), np.array([self._read(m) for m in messages], dtype=np.float64)


class RowPublisher:
    """Publishes messages that differ in stamp and numbers alone.

    Places are found in a message with unique numbers; without them every message is made and serialised in full. `make`
    gives a message with a header first from a stamp and numbers (n,), kept in this order, in `groups` of equal size
    with anything between.
    """

    def __init__(
        self, publisher: Publisher, make: Callable[[Any, NDArray[np.float64]], Any], n: int, groups: int = 1
    ) -> None:
        self._publisher, self._make = publisher, make
        marks = np.split(_MARK * np.arange(1.0, n + 1.0).astype("<f8"), groups)
        self._like = bytes(serialize_message(make(Time(), np.concatenate(marks))))
        self._begins = [self._like.find(part.tobytes(), _STAMP.stop) for part in marks]
        self._size = n // groups
        self.quick = False  # whether the layout is known
        stamp, numbers = Time(sec=3, nanosec=5), np.arange(1.0, n + 1.0)
        if min(self._begins) > 0:
            made = make(stamp, numbers)
            self.quick = read_message(self._packed(stamp, numbers), type(made)) == made

    def publish(self, stamp: Any, numbers: NDArray[np.float64]) -> None:
        """Publish numbers (n,) with a stamp (`builtin_interfaces/Time`)."""
        self._publisher.publish(self._packed(stamp, numbers) if self.quick else self._make(stamp, numbers))

    def _packed(self, stamp: Any, numbers: NDArray[np.float64]) -> bytes:
        message = bytearray(self._like)
        _STAMP_STRUCT.pack_into(message, _STAMP.start, stamp.sec, stamp.nanosec)
        data, size = np.ascontiguousarray(numbers, dtype="<f8").tobytes(), 8 * self._size
        for k, begin in enumerate(self._begins):
            message[begin : begin + size] = data[k * size : (k + 1) * size]
        return bytes(message)


def joint_rows(publisher: Publisher, names: Sequence[str], *fields: str) -> RowPublisher:
    """Publishes messages of joints: see `to_joints`."""
    return RowPublisher(publisher, partial(to_joints, names, fields), len(fields) * len(names), len(fields))
