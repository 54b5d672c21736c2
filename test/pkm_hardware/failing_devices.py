# SPDX-License-Identifier: Apache-2.0
"""The simulated devices, which fail here as real ones do, and keep what they were told."""

from __future__ import annotations

import contextlib
import os
import random
import select
import threading
import time
from collections.abc import Sequence
from typing import TypeVar

from pkm_hardware import devices
from pkm_hardware.devices import SimulatedDevice
from pkm_hardware.drivers.serial_line import with_checksum

LOOK_EVERY = 0.002  # s
POSITION, TORQUE = 132, 64  # addresses in a Dynamixel's control table
Device = TypeVar("Device", bound="FailingDevice")


class FailingDevice(SimulatedDevice):
    """On within `with`, as long as nothing is wrong with it.

    `silent`: it neither receives nor sends. `frozen`: it does not even listen, so that the line fills. `mute`: it
    obeys, and its answers are lost. `noise`: fraction of bytes that are garbled, each way, the same ones in each run.
    `delay` [s]: of its answers. `garbage`: sent before each answer. `unplug`: its port is gone; the device itself stays
    under power, with its watchdog.
    """

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        self.silent = self.frozen = self.mute = False
        self.noise = self.delay = 0.0
        self.garbage = b""
        self._chance = random.Random(1)
        self._stop, self._pull, self._pulled = threading.Event(), threading.Event(), threading.Event()
        self._late: list[tuple[float, bytes]] = []

    def __enter__(self: Device) -> Device:
        self.switch_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(2.0)

    def unplug(self) -> None:
        """Take the port away."""
        self._pull.set()
        self._pulled.wait(2.0)

    def _run(self) -> None:
        while not self._stop.is_set() and not self._pull.is_set():
            self._converse()
        for file in (self._slave, self._master):
            with contextlib.suppress(OSError):
                os.close(file)
        self._pulled.set()
        while not self._stop.wait(LOOK_EVERY):
            self.pass_time()

    def _converse(self) -> None:
        if self.frozen:
            time.sleep(LOOK_EVERY)
            self.pass_time()
            return
        ready, _, _ = select.select([self._master], [], [], LOOK_EVERY)
        answer = b""
        if ready:
            data = os.read(self._master, 4096)
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


class SimulatedServoBoard(FailingDevice, devices.SimulatedServoBoard):
    """`history`: (time [s], pulses) of lines with some; `bites`: how often its watchdog has."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__(channels)
        self.history: list[tuple[float, tuple[int, ...]]] = []
        self.bites = 0
        self._to_say = b""

    def say(self, text: str) -> None:
        """Send a text unasked, such as an error; the checksum is added."""
        self._to_say += with_checksum(text)

    def pass_time(self) -> bytes:
        said = super().pass_time()
        self.bites += bool(said)
        also, self._to_say = self._to_say, b""
        return also + said

    def _obey(self, word: str, rest: list[str]) -> bytes:
        answer = super()._obey(word, rest)
        if word == "P" and any(self.pulses):
            self.history.append((self._heard, tuple(self.pulses)))
        return answer


class SimulatedODrive(FailingDevice, devices.SimulatedODrive):
    """`jumps` [turns]: by which the next reading of an axis is wrong, by its number."""

    def __init__(self) -> None:
        super().__init__()
        self.jumps: dict[int, float] = {}

    def _obey(self, words: list[str]) -> str:
        answer = super()._obey(words)
        if words[0] == "f" and (jump := self.jumps.pop(int(words[1]), 0.0)):
            place, rate = answer.split()
            return f"{float(place) + jump:f} {rate}"
        return answer


class SimulatedDynamixels(FailingDevice, devices.SimulatedDynamixels):
    """`gone`: drives that neither receive nor answer. `jumps`: counts by which the next reading of a drive is wrong, by
    its id.
    """

    def __init__(self, ids: Sequence[int], start: int = 2048) -> None:
        super().__init__(ids, start)
        self.gone: set[int] = set()
        self.jumps: dict[int, int] = {}

    def position(self, one: int) -> int:
        """Position of a drive [counts]."""
        return self.value(one, POSITION, 4)

    def torque(self, one: int) -> bool:
        """Whether a drive's torque is on."""
        return bool(self.tables[one][TORQUE])

    def _hears(self, one: int) -> bool:
        return one not in self.gone and super()._hears(one)

    def _seen(self, one: int, address: int, count: int) -> bytes:
        row, at = bytearray(super()._seen(one, address, count)), POSITION - address
        if 0 <= at <= count - 4 and (jump := self.jumps.pop(one, 0)):
            row[at : at + 4] = (self.position(one) + jump).to_bytes(4, "little", signed=True)
        return bytes(row)
