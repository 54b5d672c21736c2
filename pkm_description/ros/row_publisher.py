# SPDX-License-Identifier: Apache-2.0
"""Numbers into the messages of one stream, the counterpart of `raw_rows.py`.

To make and publish one message with poses and twists takes Python some 60 us, of which a loop of a thousand periods a
second has a thousand; to put a stamp and numbers into a message that is serialised already takes 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message

from pkm_description.ros.raw_rows import places

_STAMP = struct.Struct("<iI")  # s and ns
_STAMP_AT = 4  # bytes, behind those that say how the message is encoded (CDR)


class RowPublisher:
    """Publishes messages that differ in their stamp and their numbers alone.

    Where the layout is not the expected one, every message is made and serialised in full.

    Args:
        publisher: of the topic.
        make: a message with a header first, of a stamp and numbers (n,), which stand in this order at its end.
        n: how many numbers.
        groups: number of groups of equal size that they make.
        gap: bytes between groups: lengths of sequences, with their padding.
    """

    def __init__(
        self,
        publisher: Publisher,
        make: Callable[[Any, NDArray[np.float64]], Any],
        n: int,
        groups: int = 1,
        gap: int = 0,
    ) -> None:
        self._publisher, self._make = publisher, make
        zeros = np.zeros(n)
        self._like = bytes(serialize_message(make(Time(), zeros)))
        self._at = places(self._like, n, groups, gap)
        self._size = n // groups
        self.quick = False  # whether the layout is known
        stamp, numbers = Time(sec=3, nanosec=5), np.arange(1.0, n + 1.0)
        self.quick = bool(self._at) and self._packed(stamp, numbers) == bytes(serialize_message(make(stamp, numbers)))

    def publish(self, stamp: Any, numbers: NDArray[np.float64]) -> None:
        """Publish numbers (n,) with a stamp (`builtin_interfaces/Time`)."""
        self._publisher.publish(self._packed(stamp, numbers) if self.quick else self._make(stamp, numbers))

    def _packed(self, stamp: Any, numbers: NDArray[np.float64]) -> bytes:
        message = bytearray(self._like)
        _STAMP.pack_into(message, _STAMP_AT, stamp.sec, stamp.nanosec)
        size = self._size
        for k, at in enumerate(self._at):
            message[at] = np.ascontiguousarray(numbers[k * size : (k + 1) * size], dtype="<f8").tobytes()
        return bytes(message)
