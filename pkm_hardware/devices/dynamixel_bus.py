# SPDX-License-Identifier: Apache-2.0
"""Simulated Dynamixels of the X series on a line: protocol 2, written independently from its description."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pkm_hardware.devices.pseudo_terminal import SimulatedDevice

_HEADER = b"\xff\xff\xfd\x00"
_READ, _WRITE, _SYNC_READ, _SYNC_WRITE, _STATUS = 0x02, 0x03, 0x82, 0x83, 0x55
_MODE, _CURRENT_LIMIT, _VELOCITY_LIMIT, _MAX, _MIN = 11, 38, 44, 48, 52
_TORQUE, _ANSWERS, _ERROR, _WATCHDOG, _GOAL, _POSITION = 64, 68, 70, 98, 116, 132
_BITTEN = 0xFF
_RANGE, _ACCESS, _LIMIT = 4, 7, 6  # errors of a status packet
_BY_POSITION, _EXTENDED, _BY_CURRENT = 3, 4, 5  # operating modes that take goal positions
_WATCHDOG_UNIT = 0.02  # s
_LONGEST = 256  # bytes of a packet


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

    `tables`: the control table of each, by id. `gone`: drives that neither receive nor answer. `jumps`: counts by which
    the next reading of a drive is wrong, by id. As the drives do, they refuse goals beyond their limits and settings
    while the torque is on; a watchdog that triggers refuses goals from then on, and the torque stays. `start` [counts]
    is the position at power-on.
    """

    def __init__(self, ids: Sequence[int], start: int = 2048) -> None:
        super().__init__()
        self.tables = {one: bytearray(256) for one in ids}
        self.gone: set[int] = set()
        self.jumps: dict[int, int] = {}
        for one, table in self.tables.items():
            self.stand(one, start)
            table[_MODE], table[_ANSWERS] = _BY_POSITION, 2
            table[_CURRENT_LIMIT : _CURRENT_LIMIT + 2] = (1193).to_bytes(2, "little")
            table[_VELOCITY_LIMIT : _VELOCITY_LIMIT + 4] = (1023).to_bytes(4, "little")
            table[_MAX : _MAX + 4] = (4095).to_bytes(4, "little")
        self._buffer = b""
        self._heard = time.monotonic()

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
        """Check the watchdogs."""
        silent = time.monotonic() - self._heard
        for table in self.tables.values():
            if table[_TORQUE] and 0 < table[_WATCHDOG] < 128 and silent > table[_WATCHDOG] * _WATCHDOG_UNIT:
                table[_WATCHDOG] = _BITTEN
        return b""

    def position(self, one: int) -> int:
        """Position of a drive [counts]."""
        return self.value(one, _POSITION, 4)

    def torque(self, one: int) -> bool:
        """Whether a drive's torque is on."""
        return bool(self.tables[one][_TORQUE])

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
        return one in self.tables and one not in self.gone

    def _seen(self, one: int, address: int, count: int) -> bytes:
        """The bytes read from a drive; a reading that jumps does so once."""
        row = bytearray(self.tables[one][address : address + count])
        at = _POSITION - address
        if 0 <= at <= count - 4 and (jump := self.jumps.pop(one, 0)):
            row[at : at + 4] = (self.position(one) + jump).to_bytes(4, "little", signed=True)
        return bytes(row)

    def _set(self, one: int, address: int, values: bytes) -> int:
        """Write into a control table; the error of the status packet, 0 where there is none."""
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
