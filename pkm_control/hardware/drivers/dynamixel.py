# SPDX-License-Identifier: Apache-2.0
"""Dynamixel drives of the X series in a position mode, protocol 2, by ROBOTIS' own `dynamixel-sdk`.

Addresses are those of the X series' control table (ROBOTIS e-Manual); other series have others.
"""

from __future__ import annotations

import contextlib
import math
import termios
import time
from collections.abc import Iterator, Sequence

import numpy as np
from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, PacketHandler, PortHandler
from numpy.typing import NDArray

from pkm_control.hardware.drivers.driver import DeviceError, Driver, Reading
from pkm_control.hardware.drives import Drives
from pkm_control.hardware.machine_file import MachineFile, homing_of, scale_of
from pkm_description.mechanism import Mechanism

Array = NDArray[np.float64]

TORQUE_ENABLE, HARDWARE_ERROR, BUS_WATCHDOG, GOAL_POSITION, PRESENT = 64, 70, 98, 116, 126
PRESENT_BYTES = 10  # current (2), velocity (4), position (4)
COUNTS = 4096  # of a turn
_VELOCITY_UNIT = 0.229 / 60.0 * COUNTS  # counts/s
_WATCHDOG_UNIT = 0.02  # s
_ERRORS = {0: "input voltage", 2: "overheating", 3: "encoder", 4: "electrical shock", 5: "overload"}


class DynamixelDriver(Driver):
    """Goal positions out, positions, velocities and currents in [counts, counts/s, units of the drive], all at once.

    Args:
        port: path of the serial port.
        baud: bits per second.
        ids: of the drives, one per actuator.
        silence: of a drive that is a fault [s].
        watchdog: silence of the computer after which drives stop by themselves [s].
    """

    def __init__(self, port: str, baud: int, ids: Sequence[int], silence: float, watchdog: float) -> None:
        self._name = port
        self._baud = baud
        self._ids = tuple(ids)
        self._silence = silence
        self._watchdog = max(1, min(127, round(watchdog / _WATCHDOG_UNIT)))
        self._port = PortHandler(port)  # waits 34 ms for an answer: USB adapters keep bytes back for 16
        self._packets = PacketHandler(2.0)
        self._reader = GroupSyncRead(self._port, self._packets, PRESENT, PRESENT_BYTES)
        for one in self._ids:
            self._reader.addParam(one)
        self._heard = dict.fromkeys(self._ids, 0.0)  # s: when each drive answered last
        self._missed = 0
        self._turn = 0
        self._last: Reading | None = None

    def open(self, home: Array) -> None:
        """Open the port; drives off, and each asked where it is."""
        try:
            opened = self._port.setBaudRate(self._baud)
        except (OSError, termios.error) as error:
            raise DeviceError(f"{self._name} cannot be opened: {error}; is it plugged in?") from error
        if not opened:
            raise DeviceError(f"{self._name}: the SDK knows no {self._baud} baud")
        self._last, self._missed, self.notice = None, 0, ""
        self._heard = dict.fromkeys(self._ids, time.monotonic())
        for one in self._ids:
            self._write_byte(one, TORQUE_ENABLE, 0)
            self._write_byte(one, BUS_WATCHDOG, 0)  # clears one that has bitten
        while self._last is None:
            self._last = self._read()

    def close(self) -> None:
        """Drives off, port free."""
        if self._port.is_open:
            with contextlib.suppress(DeviceError):
                self.disable()
            with contextlib.suppress(OSError, termios.error):
                self._port.closePort()
            self._port.is_open = False

    def enable(self, positions: Array) -> None:
        """Torque on, at the positions; the drives' own watchdog begins to look."""
        self._send(positions)
        for one in self._ids:
            self._write_byte(one, TORQUE_ENABLE, 1)
            self._write_byte(one, BUS_WATCHDOG, self._watchdog)
        self._heard = dict.fromkeys(self._ids, time.monotonic())

    def disable(self) -> None:
        """Torque off, each drive told twice where it does not answer; every drive is told."""
        problems: list[str] = []
        for one in self._ids:
            try:
                self._write_byte(one, BUS_WATCHDOG, 0)
                self._write_byte(one, TORQUE_ENABLE, 0)
            except DeviceError as error:
                problems.append(str(error))
        if problems:
            raise DeviceError("; ".join(problems))

    def exchange(self, positions: Array | None) -> Reading:
        """Send goal positions [counts], read all drives, and ask one of them whether all is well."""
        with self._line():
            if positions is not None:
                self._send(positions)
            reading = self._read()
            one = self._ids[self._turn % len(self._ids)]
            error, result, _ = self._packets.read1ByteTxRx(self._port, one, HARDWARE_ERROR)
        if result == COMM_SUCCESS:
            self._turn += 1
            if error:
                words = [word for bit, word in _ERRORS.items() if error >> bit & 1] or [f"status {error}"]
                raise DeviceError(f"drive {one} on {self._name} reports: {', '.join(words)}; switch it off and on")
        self._last = reading or self._last
        assert self._last is not None
        return self._last

    def _send(self, positions: Array) -> None:
        writer = GroupSyncWrite(self._port, self._packets, GOAL_POSITION, 4)
        for one, position in zip(self._ids, positions, strict=True):
            writer.addParam(one, list(round(float(position)).to_bytes(4, "little", signed=True)))
        with self._line():
            writer.txPacket()

    def _read(self) -> Reading | None:
        """Return what all drives say; None where one did not, for less than `silence`."""
        with self._line():
            result = self._reader.txRxPacket()
        now = time.monotonic()
        # the SDK asks all at once and stops listening at the first that is missing, whose data it empties
        for one in self._ids:
            if not self._reader.data_dict[one]:
                break
            self._heard[one] = now
        if result != COMM_SUCCESS:
            self._missed += 1
            self.notice = f"{self._missed} readings of the Dynamixels were lost"
            lost = min(self._ids, key=self._heard.__getitem__)
            if now - self._heard[lost] > self._silence:
                why = str(self._packets.getTxRxResult(result)).partition("] ")[2]
                raise DeviceError(f"no answer of drive {lost} on {self._name} for {self._silence:g} s ({why})")
            return None
        rows = [bytes(self._reader.data_dict[one]) for one in self._ids]
        numbers = [
            [int.from_bytes(row[a:b], "little", signed=True) for a, b in ((0, 2), (2, 6), (6, 10))] for row in rows
        ]
        current, velocity, position = np.array(numbers, dtype=np.float64).T
        return Reading(position, velocity * _VELOCITY_UNIT, current)

    def _write_byte(self, one: int, address: int, value: int) -> None:
        for _ in range(2):
            with self._line():
                result, error = self._packets.write1ByteTxRx(self._port, one, address, value)
            if result == COMM_SUCCESS:
                if error & 0x7F:
                    raise DeviceError(f"drive {one} on {self._name} refuses {value} at address {address}")
                return
        why = str(self._packets.getTxRxResult(result)).partition("] ")[2]
        raise DeviceError(f"no answer of drive {one} on {self._name} ({why}): check power, id and baud rate")

    @contextlib.contextmanager
    def _line(self) -> Iterator[None]:
        """Turn what the port raises into a `DeviceError`, and leave it usable."""
        try:
            yield
        except (OSError, termios.error, TypeError, AttributeError) as error:  # pyserial's, of a port that is gone
            raise DeviceError(f"{self._name} is gone ({error.args[-1]}): was it unplugged?") from error
        finally:
            self._port.is_using = False


def drives(file: MachineFile, mechanism: Mechanism, home: Array) -> Drives:
    """Dynamixels as a machine's file has them.

    Args:
        file: of the machine.
        mechanism: the robot.
        home: positions of the actuators at home (n_actuated,) [rad or m].

    Returns:
        Driver, scale and homing.

    Raises:
        MachineFileError: a key is missing or wrong.
    """
    top, sections = file.section, file.of(mechanism)
    port = top.text("port")
    baud = top.whole("baud", 57600, (9600, 4_000_000))
    silence = top.number("silence", 0.1, (0.01, 60.0))
    watchdog = top.number("watchdog", 0.5, (_WATCHDOG_UNIT, 127 * _WATCHDOG_UNIT))
    top.finish()
    ids: list[int] = []
    for section in sections:
        one = section.whole("id", bounds=(0, 252))
        if one in ids:
            raise section.wrong("id", f"{one} is another actuator's too", "give each drive its own")
        ids.append(one)
    units = [section.number("gear", 1.0, (1e-6, 1e6)) * COUNTS / (2.0 * math.pi) for section in sections]
    zero = [section.number("count_zero", COUNTS / 2) for section in sections]
    scale, homing = scale_of(sections, units, zero), homing_of(sections)
    for section in sections:
        section.finish()
    return Drives(DynamixelDriver(port, baud, ids, silence, watchdog), scale, home, homing)
