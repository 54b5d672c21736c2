# SPDX-License-Identifier: Apache-2.0
"""A process beside a command that has drives: where the command is killed, or stands still, it turns them off."""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial

from pkm_hardware.machine import drives_may_be_on
from pkm_runtime.child_processes import ENDING, Child

_BEAT_EVERY = 0.25  # s
_LOOK_EVERY = 0.1  # s
_FROZEN = 3.0  # s without a beat
_BEAT, _WELL = b"b", b"w"


class Guardian:
    """To be made before this process has threads, and ended with drives off. It watches for standstill from `begin` on.

    `turn_off` disables the drives in the other process, once this one is gone; it returns a warning or nothing.
    """

    def __init__(self, turn_off: Callable[[], str]) -> None:
        self._end, theirs = socket.socketpair()
        self._watched = os.getpid()
        self._child = Child(partial(self._guard, theirs, turn_off))
        theirs.close()
        self._over = threading.Event()
        self._heart: threading.Thread | None = None

    def begin(self) -> None:
        """Signal from now on that this process lives."""
        self._heart = threading.Thread(target=self._beat, name="beat", daemon=True)
        self._heart.start()

    def end(self) -> None:
        """End the watch: the drives are off, or it was said that they are not."""
        self._over.set()
        if self._heart is not None:
            self._heart.join()
        self._end.sendall(_WELL)
        self._end.close()
        self._child.wait(math.inf)

    def _beat(self) -> None:
        while not self._over.wait(_BEAT_EVERY):
            self._end.send(_BEAT)

    def _guard(self, end: socket.socket, turn_off: Callable[[], str]) -> None:
        """In the child: wait for what becomes of the parent."""
        os.setsid()
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        for first, last in ((3, end.fileno()), (end.fileno() + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(first, last)  # a line that stayed open here could not be taken away
        end.settimeout(_LOOK_EVERY)
        if how := self._what_became(end):
            try:
                warning = turn_off()
            except Exception as error:
                warning = drives_may_be_on(error)
            print(f"the command {how}: {warning or 'the drives were turned off'}", file=sys.stderr, flush=True)

    def _what_became(self, end: socket.socket) -> str:
        """How the parent has left its drives; empty where they are off."""
        begun, silent = False, 0.0
        while True:
            try:
                data = end.recv(64)
            except TimeoutError:
                silent += _LOOK_EVERY  # as long as this process has lived: the whole computer may have stood still
                if begun and silent > _FROZEN:
                    os.kill(self._watched, signal.SIGKILL)
                    return f"has stood still for {_FROZEN:g} s and was ended"
                continue
            if not data or _WELL in data:
                return "" if data else "was killed"
            begun, silent = True, 0.0
