# SPDX-License-Identifier: Apache-2.0
"""Dynamixels of the X series at the other end of a line: protocol 2, written anew from its description."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pkm_control.hardware.devices.pseudo_terminal import SimulatedDevice

_HEADER = b"\xff\xff\xfd\x00"
_READ, _WRITE, _SYNC_READ, _SYNC_WRITE, _STATUS = 0x02, 0x03, 0x82, 0x83, 0x55
_TORQUE, _ERROR, _WATCHDOG, _GOAL, _POSITION = 64, 70, 98, 116, 132


def checksum(data: bytes) -> int:
    """Return the CRC-16 of a packet (polynomial 0x8005, from zero).

    Args:
        data: all before the checksum.

    Returns:
        Of two bytes.
    """
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x8005 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


class SimulatedDynamixels(SimulatedDevice):
    """Drives that are where they are told to be at once, as long as their torque is on.

    `tables`: the control table of each, by id.

    Args:
        ids: of the drives.
        start: where they are at power-on [counts].
    """

    def __init__(self, ids: Sequence[int], start: int = 2048) -> None:
        super().__init__()
        self.tables = {one: bytearray(256) for one in ids}
        for table in self.tables.values():
            table[_POSITION : _POSITION + 4] = table[_GOAL : _GOAL + 4] = start.to_bytes(4, "little", signed=True)
        self._buffer = b""
        self._heard = time.monotonic()

    def position(self, one: int) -> int:
        """Return where a drive is [counts].

        Args:
            one: its id.

        Returns:
            Its position.
        """
        return int.from_bytes(self.tables[one][_POSITION : _POSITION + 4], "little", signed=True)

    def torque(self, one: int) -> bool:
        """Return whether a drive's torque is on.

        Args:
            one: its id.

        Returns:
            Whether it is.
        """
        return bool(self.tables[one][_TORQUE])

    def receive(self, data: bytes) -> bytes:
        """Answer whole packets."""
        self._buffer += data
        answers = b""
        while (begin := self._buffer.find(_HEADER)) >= 0:
            packet = self._buffer[begin:]
            if len(packet) < 7 or len(packet) < 7 + int.from_bytes(packet[5:7], "little"):
                break
            size = 7 + int.from_bytes(packet[5:7], "little")
            whole, self._buffer = packet[:size], packet[size:]
            if checksum(whole[:-2]) == int.from_bytes(whole[-2:], "little"):
                answers += self._answer(whole[4], whole[7], whole[8:-2])
        return answers

    def _answer(self, one: int, instruction: int, rest: bytes) -> bytes:
        if instruction == _SYNC_READ:
            address, count = int.from_bytes(rest[:2], "little"), int.from_bytes(rest[2:4], "little")
            known = [each for each in rest[4:] if each in self.tables]
            return b"".join(self._status(each, self.tables[each][address : address + count]) for each in known)
        if instruction == _SYNC_WRITE:
            address, count = int.from_bytes(rest[:2], "little"), int.from_bytes(rest[2:4], "little")
            for k in range(4, len(rest), 1 + count):
                self._set(rest[k], address, rest[k + 1 : k + 1 + count])
            return b""
        if one not in self.tables:
            return b""
        address = int.from_bytes(rest[:2], "little")
        if instruction == _READ:
            return self._status(one, self.tables[one][address : address + int.from_bytes(rest[2:4], "little")])
        if instruction == _WRITE:
            self._set(one, address, rest[2:])
            return self._status(one, b"")
        return b""

    def _set(self, one: int, address: int, values: bytes) -> None:
        if one not in self.tables:
            return
        table = self.tables[one]
        table[address : address + len(values)] = values
        if table[_TORQUE]:
            table[_POSITION : _POSITION + 4] = table[_GOAL : _GOAL + 4]

    def _status(self, one: int, values: bytes | bytearray) -> bytes:
        alert = 0x80 if self.tables[one][_ERROR] else 0
        packet = _HEADER + bytes([one]) + (len(values) + 4).to_bytes(2, "little") + bytes([_STATUS, alert, *values])
        return packet + checksum(packet).to_bytes(2, "little")
