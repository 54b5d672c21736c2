# SPDX-License-Identifier: Apache-2.0
"""Simulated devices on pseudo terminals, which answer as the real ones do, or fail as they do."""

from __future__ import annotations

import math
import os
import select
import threading
import time
import tty
from abc import ABC, abstractmethod
from collections.abc import Sequence

from pkm_hardware.drivers.serial_line import (
    CLOSED_LOOP,
    IDLE,
    INDEX_SEARCH,
    PROTOCOL,
    exclusive_or,
    with_checksum,
    without_checksum,
)

_LOOK_EVERY = 0.002  # s
_SMOOTH = 0.03  # s, over which a simulated drive tells its speed
_AT_ONCE = 4096

# Of the ODrive
_FASTEST = 20.0  # turns/s
_SEARCHING = 2.0  # turns/s, in the search for the index, upwards
_PUSH = 5.0  # A, of a motor that runs against a stop
_WATCHDOG_EXPIRED = 1 << 24  # as an axis reports it

# Of Dynamixels: instructions, addresses in the control table, values there
_HEADER = b"\xff\xff\xfd\x00"
_READ, _WRITE, _SYNC_READ, _SYNC_WRITE, _STATUS = 0x02, 0x03, 0x82, 0x83, 0x55
_MODE, _CURRENT_LIMIT, _VELOCITY_LIMIT, _MAX, _MIN = 11, 38, 44, 48, 52
_TORQUE, _ANSWERS, _ERROR, _WATCHDOG, _GOAL, _VELOCITY, _POSITION = 64, 68, 70, 98, 116, 128, 132
_BITTEN = 0xFF
_RANGE, _ACCESS, _LIMIT = 4, 7, 6  # errors of a status packet
_BY_POSITION, _EXTENDED, _BY_CURRENT = 3, 4, 5  # operating modes that take goal positions
_WATCHDOG_UNIT = 0.02  # s
_VELOCITY_UNIT = 0.229 / 60.0 * 4096  # counts/s
_RACE = 32767  # of that: what a drive tells at most
_LONGEST = 256  # bytes of a packet


class SimulatedDevice(ABC):
    """Answers in a thread of its own, from when it is switched on to the end of the process."""

    def __init__(self) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._thread = threading.Thread(target=self._run, name="device", daemon=True)

    @abstractmethod
    def receive(self, data: bytes) -> bytes:
        """The answer to bytes from the line, which are not always whole lines."""

    def pass_time(self) -> bytes:
        """Let time pass; the bytes that the device sends unasked."""
        return b""

    def switch_on(self) -> str:
        """Answer from now on; the port."""
        self._thread.start()
        return self.port

    def _run(self) -> None:
        while True:
            ready, _, _ = select.select([self._master], [], [], _LOOK_EVERY)
            answer = self.receive(os.read(self._master, _AT_ONCE)) if ready else b""
            if answer := answer + self.pass_time():
                os.write(self._master, answer)


def smoothed(speed: float, moved: float, dt: float) -> float:
    """A speed as a drive tells it, once it has moved on for dt [s]; before, it was `speed`."""
    kept = math.exp(-dt / _SMOOTH)
    return kept * speed + (1.0 - kept) * moved / dt if dt > 0.0 else speed


class SimulatedServoBoard(SimulatedDevice):
    """Servos at once at their `pulses` [us], 0: off; `brake_open`."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.pulses = [0] * channels
        self.brake_open = False
        self.watchdog = 0.5  # s
        self.holds = False
        self._heard = time.monotonic()
        self._buffer = b""

    def receive(self, data: bytes) -> bytes:
        """Answer whole lines."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return b"".join(self._answer(line) for line in lines if line)

    def pass_time(self) -> bytes:
        """Switch the servos off where the computer is silent, and say so."""
        if not any(self.pulses) or time.monotonic() - self._heard <= self.watchdog:
            return b""
        self._heard = time.monotonic()
        if not self.holds:
            self.pulses = [0] * len(self.pulses)
            self.brake_open = False
        return with_checksum("E watchdog: the computer was silent")

    def _answer(self, line: bytes) -> bytes:
        text = without_checksum(line)
        if text is None:
            return with_checksum("E checksum")
        word, *rest = text.split() or [""]
        try:
            return self._obey(word, rest)
        except (ValueError, IndexError):  # another line, by a checksum that happens to fit
            return with_checksum("E word")

    def _obey(self, word: str, rest: list[str]) -> bytes:
        if word == "H":
            return with_checksum(f"H pkm {PROTOCOL} {len(self.pulses)}")
        if word == "W":
            self.watchdog, self.holds = int(rest[0]) / 1e3, rest[1] == "1"
        elif word == "B":
            self.brake_open = rest[0] == "1"
        elif word == "R":
            self.pulses = [0] * len(self.pulses)
        elif word == "P":
            self._heard = time.monotonic()
            for channel, pulse in enumerate(rest[1:]):
                self.pulses[channel] = int(pulse)
            return with_checksum(f"A {rest[0]}")
        else:
            return with_checksum("E word")
        return with_checksum(f"A {word}")


class SimulatedAxis:
    """A motor that goes to its target, at most to its stops; its encoder counts from the position at power-on.

    `index` [turns, of the world]: the index of its encoder, without which the ODrive has no closed loop; None: an
    encoder that needs none. `values`: its settings, by the firmware's names.
    """

    def __init__(self) -> None:
        self.place = 0.0  # turns, of the world
        self.power_on = 0.0  # turns: what the encoder calls zero
        self.target = 0.0  # turns, of the encoder
        self.speed = 0.0  # turns/s
        self.state = IDLE
        self.errors = 0
        self.stops = (-100.0, 100.0)  # turns, of the world
        self.switch_below, self.switch_above = -100.0, 1e9  # turns: closed there
        self.index: float | None = None
        self.index_found = False
        self.current = 0.0  # A
        self.values = {
            "controller.config.control_mode": 3.0,
            "controller.config.input_mode": 1.0,
            "controller.config.vel_limit": 1000.0,
            "config.motor.current_soft_max": 50.0,
            "config.enable_watchdog": 0.0,
            "config.watchdog_timeout": 0.0,
        }
        self.fed = time.monotonic()

    def step(self, dt: float) -> None:
        """Move towards the target for dt [s]."""
        before = self.place
        self._move(dt)
        self.speed = smoothed(self.speed, self.place - before, dt)

    def _move(self, dt: float) -> None:
        self.current = 0.0
        hungry = time.monotonic() - self.fed > self.values["config.watchdog_timeout"]
        if self.values["config.enable_watchdog"] and hungry:
            self.errors |= _WATCHDOG_EXPIRED
            self.state = IDLE
        if self.state == INDEX_SEARCH and self.index is not None:
            before, self.place = self.place, min(self.place + _SEARCHING * dt, self.stops[1])
            if before <= self.index <= self.place:
                self.power_on = self.index
                self.index_found, self.state = True, IDLE
        by_position = self.values["controller.config.control_mode"] == 3 and self.values["controller.config.input_mode"]
        if self.state == CLOSED_LOOP and by_position:
            way = self.target + self.power_on - self.place
            fastest = min(_FASTEST, self.values["controller.config.vel_limit"])
            self.place += max(-fastest * dt, min(fastest * dt, way))
            wanted = self.place
            self.place = max(self.stops[0], min(self.stops[1], self.place))
            self.current = _PUSH if wanted != self.place else 0.1

    def request(self, state: int) -> None:
        """Enter a state, by its number, where that is possible."""
        blind = self.index is not None and not self.index_found
        self.state = IDLE if self.errors or (blind and state == CLOSED_LOOP) else state


class SimulatedODrive(SimulatedDevice):
    """Answers with checksums where the question had one, and as real ones do, not while it sends another answer."""

    def __init__(self) -> None:
        super().__init__()
        self.axes = [SimulatedAxis(), SimulatedAxis()]
        self._buffer = b""
        self._last = time.monotonic()

    def pass_time(self) -> bytes:
        """Let the motors move."""
        now = time.monotonic()
        for axis in self.axes:
            axis.step(now - self._last)
        self._last = now
        return b""

    def receive(self, data: bytes) -> bytes:
        """Answer whole lines."""
        self.pass_time()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        answers = b""
        for line in lines:
            body, star, digits = line.rpartition(b"*")
            if not star or not digits.isdigit() or int(digits) != exclusive_or(body):
                continue  # as the protocol has it: a wrong line is ignored
            answer = self._answer(body.decode("latin-1").split())
            if answer and not answers:
                answers = f"{answer}*{exclusive_or(answer.encode())}\r\n".encode()
        return answers

    def _answer(self, words: list[str]) -> str:
        try:
            return self._obey(words)
        except (ValueError, IndexError):  # another line, by a checksum that happens to fit
            return "unknown command"

    def _obey(self, words: list[str]) -> str:
        if words[0] == "p":
            axis = self.axes[int(words[1])]
            axis.target, axis.fed = float(words[2]), time.monotonic()
            axis.values["controller.config.control_mode"] = 3.0
        elif words[0] == "f":
            axis = self.axes[int(words[1])]
            return f"{axis.place - axis.power_on:f} {axis.speed:f}"
        elif words[0] == "sc":
            for axis in self.axes:
                axis.errors = 0
        elif words[0] in ("r", "w"):
            axis, name = self.axes[int(words[1][4])], words[1].partition(".")[2]
            if words[0] == "w" and name == "requested_state":
                axis.request(int(words[2]))
            elif words[0] == "w" and name in axis.values:
                axis.values[name] = float(words[2])
            elif name in axis.values:
                return f"{axis.values[name]:g}"
            elif name == "current_state":
                return str(axis.state)
            elif name in ("active_errors", "error"):  # firmware 0.6, 0.5
                return str(axis.errors)
            elif name == "min_endstop.endstop_state":
                return str(int(not axis.switch_below <= axis.place <= axis.switch_above))
            elif name == "encoder.index_found":
                return str(int(axis.index_found))
            elif name == "motor.current_control.Iq_measured":
                return f"{axis.current:f}"
            else:
                return "invalid property"
        return ""


def checksum(data: bytes) -> int:
    """CRC-16 (polynomial 0x8005, from zero) of all bytes of a packet before the checksum."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x8005 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


class SimulatedDynamixels(SimulatedDevice):
    """Drives that reach their goal at once, as long as their torque is on and they take positions.

    `tables`: the control table of each, by id. As the drives do, they refuse goals beyond their limits and settings
    while the torque is on; a watchdog that triggers refuses goals from then on, and the torque stays. `start` [counts]
    is the position at power-on.
    """

    def __init__(self, ids: Sequence[int], start: int = 2048) -> None:
        super().__init__()
        self.tables = {one: bytearray(256) for one in ids}
        for one, table in self.tables.items():
            self.stand(one, start)
            table[_MODE], table[_ANSWERS] = _BY_POSITION, 2
            table[_CURRENT_LIMIT : _CURRENT_LIMIT + 2] = (1193).to_bytes(2, "little")
            table[_VELOCITY_LIMIT : _VELOCITY_LIMIT + 4] = (1023).to_bytes(4, "little")
            table[_MAX : _MAX + 4] = (4095).to_bytes(4, "little")
        self._buffer = b""
        self._heard = self._looked = time.monotonic()
        self._moves: dict[int, tuple[int, float]] = {}  # counts, counts/s, as they were when it was looked at last

    def value(self, one: int, address: int, count: int) -> int:
        """A signed value of `count` bytes in a drive's control table."""
        return int.from_bytes(self.tables[one][address : address + count], "little", signed=True)

    def put(self, one: int, address: int, count: int, value: int) -> None:
        """Set a signed value of `count` bytes in a drive's control table, as another tool would before."""
        self.tables[one][address : address + count] = value.to_bytes(count, "little", signed=True)

    def stand(self, one: int, position: int) -> None:
        """Place a drive [counts]."""
        self.put(one, _POSITION, 4, position)
        self.put(one, _GOAL, 4, position)

    def pass_time(self) -> bytes:
        """Check the watchdogs, and let the drives tell their speeds."""
        now = time.monotonic()
        silent, dt, self._looked = now - self._heard, now - self._looked, now
        for one, table in self.tables.items():
            position = self.value(one, _POSITION, 4)
            before, speed = self._moves.get(one, (position, 0.0))
            speed = smoothed(speed, position - before, dt)
            self._moves[one] = position, speed
            self.put(one, _VELOCITY, 4, max(-_RACE, min(_RACE, round(speed / _VELOCITY_UNIT))))
            if table[_TORQUE] and 0 < table[_WATCHDOG] < 128 and silent > table[_WATCHDOG] * _WATCHDOG_UNIT:
                table[_WATCHDOG] = _BITTEN
        return b""

    def receive(self, data: bytes) -> bytes:
        """Answer whole packets."""
        self._buffer += data
        answers = b""
        while (begin := self._buffer.find(_HEADER)) >= 0:
            packet = self._buffer[begin:]
            size = 7 + int.from_bytes(packet[5:7], "little")
            if len(packet) < 7 or len(packet) < size <= _LONGEST:
                break
            whole, self._buffer = packet[:size], packet[size:]
            if size > _LONGEST or size < 10 or checksum(whole[:-2]) != int.from_bytes(whole[-2:], "little"):
                self._buffer = packet[4:]  # look for the next one in what its length, garbled, took for its own
            else:
                self._heard = time.monotonic()
                answers += self._answer(whole[4], whole[7], whole[8:-2])
        return answers

    def _answer(self, one: int, instruction: int, rest: bytes) -> bytes:
        if instruction == _SYNC_READ:
            address, count = int.from_bytes(rest[:2], "little"), int.from_bytes(rest[2:4], "little")
            known = [each for each in rest[4:] if self._hears(each)]
            return b"".join(self._status(each, self._seen(each, address, count)) for each in known)
        if instruction == _SYNC_WRITE:
            address, count = int.from_bytes(rest[:2], "little"), int.from_bytes(rest[2:4], "little")
            for k in range(4, len(rest), 1 + count):
                self._set(rest[k], address, rest[k + 1 : k + 1 + count])
            return b""
        if not self._hears(one):
            return b""
        address = int.from_bytes(rest[:2], "little")
        if instruction == _READ:
            return self._status(one, self._seen(one, address, int.from_bytes(rest[2:4], "little")))
        if instruction == _WRITE:
            error = self._set(one, address, rest[2:])
            return self._status(one, b"", error) if self.tables[one][_ANSWERS] == 2 else b""
        return b""

    def _hears(self, one: int) -> bool:
        return one in self.tables

    def _seen(self, one: int, address: int, count: int) -> bytes:
        return bytes(self.tables[one][address : address + count])

    def _set(self, one: int, address: int, values: bytes) -> int:
        if not self._hears(one):
            return 0
        table = self.tables[one]
        if address < _TORQUE and table[_TORQUE]:
            return _ACCESS
        if address == _GOAL:
            goal = int.from_bytes(values, "little", signed=True)
            if table[_WATCHDOG] == _BITTEN:
                return _RANGE
            if table[_MODE] == _BY_POSITION and not self.value(one, _MIN, 4) <= goal <= self.value(one, _MAX, 4):
                return _LIMIT
        if address == _TORQUE and table[_ERROR] and any(values):
            return _ACCESS
        table[address : address + len(values)] = values
        if table[_TORQUE] and table[_MODE] in (_BY_POSITION, _EXTENDED, _BY_CURRENT):
            table[_POSITION : _POSITION + 4] = table[_GOAL : _GOAL + 4]
        return 0

    def _status(self, one: int, values: bytes, error: int = 0) -> bytes:
        alert = 0x80 if self.tables[one][_ERROR] else 0
        row = bytes([_STATUS, alert | error, *values])
        packet = _HEADER + bytes([one]) + (len(row) + 2).to_bytes(2, "little") + row
        return packet + checksum(packet).to_bytes(2, "little")
