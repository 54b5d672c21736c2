# SPDX-License-Identifier: Apache-2.0
"""A serial port that never blocks for long, and the checksum of lines that drivers and boards agree on.

A line of the servo board is a text, an asterisk, and the exclusive or of the text's bytes as two hexadecimal digits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import termios
import time
from functools import reduce
from operator import xor

from pkm_hardware.drivers.driver import DeviceError
from pkm_runtime.errors import printable

_LONGEST = 512  # bytes of a line; what goes on without an end is no line
_WRITE_PATIENCE = 0.05  # s, for the system to take bytes
_AT_ONCE = 4096

PROTOCOL = 1  # of the servo board
IDLE, INDEX_SEARCH, CLOSED_LOOP = 1, 6, 8  # states of an axis of an ODrive


class FullError(DeviceError):
    """The system has no room for more bytes, for now."""


class SerialLine:
    """One port such as /dev/ttyUSB0: 8 data bits, no parity, one stop bit, no flow control; `baud` [bit/s]."""

    def __init__(self, port: str, baud: int) -> None:
        self.port = port
        self.baud = baud
        self._file = -1
        self._buffer = b""

    @property
    def is_open(self) -> bool:
        """Whether the port is open."""
        return self._file >= 0

    def open(self) -> None:
        """Open the port for this process alone, and drop pending bytes; a DeviceError says what to look at."""
        speed = getattr(termios, f"B{self.baud}", None)
        if speed is None:
            raise DeviceError(f"{self.port}: this system knows no {self.baud} baud")
        try:
            self._file = os.open(self.port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            settings = termios.tcgetattr(self._file)
            characters = settings[6]
            characters[termios.VMIN], characters[termios.VTIME] = 0, 0
            control = termios.CS8 | termios.CREAD | termios.CLOCAL
            termios.tcsetattr(self._file, termios.TCSANOW, [0, 0, control, 0, speed, speed, characters])
            termios.tcflush(self._file, termios.TCIOFLUSH)
        except (OSError, termios.error) as error:
            self.close()
            hints = {
                "No such file or directory": "is it plugged in? `ls /dev/tty*` shows what there is",
                "Permission denied": "join the group of the port (dialout on Debian) and log in again",
                "Resource temporarily unavailable": "does another program use it?",
            }
            reason = str(error.args[-1])
            hint = hints.get(reason, "is it a port?")
            raise DeviceError(f"{self.port} cannot be opened: {reason}; {hint}") from error
        self._buffer = b""

    def close(self) -> None:
        """Close the port."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = -1

    def write(self, data: bytes) -> None:
        """Send all bytes; DeviceError where the port is gone, or takes nothing more."""
        if self._file < 0:
            raise DeviceError(f"{self.port} is not open")
        try:
            write_all(self._file, data, self.port)
        except OSError as error:
            raise self._gone(error) from error

    def lines(self, wait: float = 0.0) -> list[bytes]:
        """Whole lines received within `wait` [s], without ends, text or not. DeviceError where the port is gone."""
        if self._file < 0:
            raise DeviceError(f"{self.port} is not open")
        try:
            select.select([self._file], [], [], wait)
            while True:
                got = os.read(self._file, _AT_ONCE)
                self._buffer += got
                if len(got) < _AT_ONCE:
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            raise self._gone(error) from error
        *whole, rest = self._buffer.split(b"\n")
        self._buffer = rest
        if len(rest) > _LONGEST:
            whole.append(rest)
            self._buffer = b""
        return [line.rstrip(b"\r") for line in whole]

    def _gone(self, error: OSError) -> DeviceError:
        self.close()
        return DeviceError(f"{self.port} is gone ({error.strerror}): was it unplugged?")


def write_all(file: int, data: bytes, port: str) -> None:
    """Write all bytes to the open file of a port, which does not block; FullError where it takes none for a while."""
    until = time.monotonic() + _WRITE_PATIENCE
    while data:
        last = time.monotonic() > until  # asked before it is tried: while this computer stood still, the line did not
        try:
            data = data[os.write(file, data) :]
        except BlockingIOError:
            if last:
                raise FullError(f"{port} takes no more: is the rate too high for the baud rate?") from None
            select.select([], [file], [], _WRITE_PATIENCE)


def with_checksum(text: str) -> bytes:
    """The line of a text, with checksum and end."""
    return f"{text}*{exclusive_or(text.encode('ascii')):02X}\n".encode("ascii")


def without_checksum(line: bytes) -> str | None:
    """The text of a line without its end; None where the checksum is wrong."""
    body, star, digits = line.rpartition(b"*")
    try:
        if not star or len(digits) != 2 or int(digits, 16) != exclusive_or(body):
            return None
        return printable(body.decode("ascii"))
    except ValueError:
        return None


def exclusive_or(data: bytes) -> int:
    """Of all bytes."""
    return reduce(xor, data, 0)
