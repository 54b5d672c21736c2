# SPDX-License-Identifier: Apache-2.0
"""What drivers and the boards that they speak to agree on: the checksum of a line, and the numbers of states.

A line of the servo board is a text, an asterisk, and the exclusive or of the text's bytes as two hexadecimal digits.
"""

from __future__ import annotations

from functools import reduce
from operator import xor

PROTOCOL = 1  # of the servo board
IDLE, INDEX_SEARCH, CLOSED_LOOP = 1, 6, 8  # states of an axis of an ODrive


def with_checksum(text: str) -> bytes:
    """The line of a text, with checksum and end."""
    return f"{text}*{exclusive_or(text.encode('ascii')):02X}\n".encode("ascii")


def without_checksum(line: bytes) -> str | None:
    """The text of a line without its end; None where the checksum is wrong."""
    body, star, digits = line.rpartition(b"*")
    try:
        if not star or len(digits) != 2 or int(digits, 16) != exclusive_or(body):
            return None
        return body.decode("ascii")
    except ValueError:
        return None


def exclusive_or(data: bytes) -> int:
    """Of all bytes."""
    return reduce(xor, data, 0)
