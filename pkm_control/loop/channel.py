# SPDX-License-Identifier: Apache-2.0
"""Messages over a socket between the process of a control loop and its parent."""

from __future__ import annotations

import pickle
import select
import socket
import struct
from enum import Enum
from typing import Any

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
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._goes += LENGTH.pack(len(data)) + data
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
        self._end.sendall(LENGTH.pack(len(data)) + data)

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
