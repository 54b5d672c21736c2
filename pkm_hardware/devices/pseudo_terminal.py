# SPDX-License-Identifier: Apache-2.0
"""A device at the other end of a pseudo terminal: its `port` looks like a serial port."""

from __future__ import annotations

import contextlib
import os
import random
import select
import threading
import time
import tty
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

_LOOK_EVERY = 0.002  # s
_AT_ONCE = 4096

_Device = TypeVar("_Device", bound="SimulatedDevice")


class SimulatedDevice(ABC):
    """Answers in a thread of its own, within `with`, and fails as devices do.

    `silent`: it neither receives nor sends. `frozen`: it does not even listen, so that the line fills. `mute`: it
    obeys, and its answers are lost. `noise`: fraction of bytes that are garbled, each way, the same ones in each run.
    `delay` [s]: of its answers. `garbage`: sent before each answer. `unplug`: its port is gone; the device itself stays
    under power, with its watchdog.
    """

    def __init__(self) -> None:
        self.silent = False
        self.frozen = False
        self.mute = False
        self.noise = 0.0
        self.delay = 0.0
        self.garbage = b""
        self._chance = random.Random(1)
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._stop = threading.Event()
        self._pull, self._pulled = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="device", daemon=True)
        self._late: list[tuple[float, bytes]] = []

    @abstractmethod
    def receive(self, data: bytes) -> bytes:
        """The answer to bytes from the line, which are not always whole lines."""

    def pass_time(self) -> bytes:
        """Let time pass; the bytes that the device sends unasked."""
        return b""

    def unplug(self) -> None:
        """Take the port away."""
        self._pull.set()
        self._pulled.wait(2.0)

    def switch_on(self) -> str:
        """Answer from now on, until the process ends; the port."""
        self._thread.start()
        return self.port

    def __enter__(self: _Device) -> _Device:
        """Switch the device on."""
        self.switch_on()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take it away, if it is still there."""
        self._stop.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        while not self._stop.is_set() and not self._pull.is_set():
            self._converse()
        for file in (self._slave, self._master):
            with contextlib.suppress(OSError):
                os.close(file)
        self._pulled.set()
        while not self._stop.wait(_LOOK_EVERY):
            self.pass_time()

    def _converse(self) -> None:
        if self.frozen:
            time.sleep(_LOOK_EVERY)
            self.pass_time()
            return
        ready, _, _ = select.select([self._master], [], [], _LOOK_EVERY)
        answer = b""
        if ready:
            data = os.read(self._master, _AT_ONCE)
            if not self.silent:
                answer = self.receive(self._garbled(data))
        answer += self.pass_time()
        now = time.monotonic()
        if answer and not self.silent and not self.mute:
            self._late.append((now + self.delay, self.garbage + self._garbled(answer)))
        while self._late and self._late[0][0] <= now:
            os.write(self._master, self._late.pop(0)[1])

    def _garbled(self, data: bytes) -> bytes:
        if not self.noise:
            return data
        return bytes(
            byte ^ self._chance.randrange(1, 256) if self._chance.random() < self.noise else byte for byte in data
        )
