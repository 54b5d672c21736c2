# SPDX-License-Identifier: Apache-2.0
"""Dynamixel drives of the X series in a position mode, protocol 2, by ROBOTIS' own `dynamixel-sdk`.

Addresses are those of the X series' control table (ROBOTIS e-Manual); other series have others.
"""

from __future__ import annotations

import contextlib
import math
import select
import termios
import time
from collections.abc import Iterator, Sequence

import numpy as np
from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, PortHandler
from dynamixel_sdk.protocol2_packet_handler import Protocol2PacketHandler

from pkm_description.mechanism import Array, Mechanism
from pkm_hardware.devices import SimulatedDynamixels
from pkm_hardware.drivers.driver import TELLING, DeviceError, Driver, Reading
from pkm_hardware.drivers.serial_line import FullError, write_all
from pkm_hardware.machine_file import FASTER, DeviceLimits, Drives, MachineFile, device_limits, homing_of, scale_of

DRIVE_MODE, OPERATING_MODE, CURRENT_LIMIT, VELOCITY_LIMIT = 10, 11, 38, 44
MAX_POSITION, MIN_POSITION, SETTINGS_END = 48, 52, 56
TORQUE_ENABLE, STATUS_RETURN, HARDWARE_ERROR, BUS_WATCHDOG, STATE_END = 64, 68, 70, 98, 99
GOAL_CURRENT, PROFILE_ACCELERATION, PROFILE_VELOCITY, GOAL_POSITION, PRESENT = 102, 108, 112, 116, 126
PRESENT_BYTES = 10  # current (2), velocity (4), position (4)
COUNTS = 4096  # of a turn
BY_POSITION, EXTENDED, BY_CURRENT = 3, 4, 5  # operating modes that take goal positions; the first has limits for them
_MODES = {0: "current", 1: "velocity", 3: "position", 4: "extended position", 5: "current-based position", 16: "PWM"}
_BY_TIME = 0b100  # of the drive mode: profiles are times
_ANSWERS_ALL = 2  # of the status return level: every instruction is answered
_BITTEN = 0xFF  # of the watchdog
_RPM = 0.229  # unit of velocities
_VELOCITY_UNIT = _RPM / 60.0 * COUNTS  # counts/s
_FASTEST_PROFILE = 32767
_WATCHDOG_UNIT = 0.02  # s
_STANDS = 16  # counts, 1.4 degrees: a goal nearer than that is where a drive stands, give and noise included
_QUESTIONS = 4  # of different lengths
_TRIES = 8  # for an answer; each is waited for 34 ms
_TORQUE_PACKET = 13  # bytes
_ID, _LENGTH, _ERROR = 4, 5, 8  # places in an answer: of its id, of its length (2 bytes), and of what comes before data
_BESIDE = 4  # bytes that an answer's length counts beside its data
_FLOOD = 0.1  # s of a line that is filled with packets, of which some arrive where much is garbled
_ERRORS = {0: "input voltage", 2: "overheating", 3: "encoder", 4: "electrical shock", 5: "overload"}


class _Port(PortHandler):
    """The SDK's port. pyserial's own time-out of writing ends a write that this computer was late with."""

    def writePort(self, packet: Sequence[int]) -> int:
        write_all(self.ser.fileno(), bytes(packet), self.port_name)
        return len(packet)

    def readPort(self, length: int) -> bytes:
        """At most so many bytes, waited for as long as the packet may take. The SDK asks for them without a pause: a
        loop of real-time priority would keep from the processor what brings them.
        """
        if length > 0:
            left = self.packet_timeout - self.getTimeSinceStart()  # ms
            select.select([self.ser.fileno()], [], [], max(0.0, 1e-3 * left))
        return bytes(super().readPort(length))

    def getCurrentTime(self) -> float:
        """Time [ms] of a clock that nobody sets."""
        return 1e3 * time.monotonic()


class _Packets(Protocol2PacketHandler):
    """The SDK's packets. It takes any answer of a drive for the one that it waits for, whatever was asked before."""

    late = 0

    def readRx(self, port: PortHandler, dxl_id: int, length: int) -> tuple[list[int], int, int]:
        """The data (length,) of a drive's answer of this length, the result, and the drive's error; others are late."""
        while True:
            packet, result = self.rxPacket(port, False)
            if result != COMM_SUCCESS:
                return [], result, 0
            size = packet[_LENGTH] + (packet[_LENGTH + 1] << 8) - _BESIDE
            if packet[_ID] == dxl_id and size == length:
                return packet[_ERROR + 1 : _ERROR + 1 + length], result, packet[_ERROR]
            self.late += 1


class DynamixelDriver(Driver):
    """Sends goal positions [counts]; reads positions, velocities [counts/s] and currents [units of the drive] at once.

    `baud` [bit/s]; `ids` of the drives, one per actuator; `silence` of a drive that is a fault [s]; `watchdog`: silence
    of the computer after which drives stop by themselves [s], and their torque stays.
    """

    def __init__(
        self, port: str, baud: int, ids: Sequence[int], silence: float, watchdog: float, limits: DeviceLimits
    ) -> None:
        super().__init__()
        self._name = port
        self._baud = baud
        self._ids = tuple(ids)
        self._silence = silence
        self._watchdog = max(1, min(127, round(watchdog / _WATCHDOG_UNIT)))
        self._limits = limits
        self._on = False
        self._changed = ""
        self._port = _Port(port)  # waits 34 ms for an answer: USB adapters keep bytes back for 16
        self._packets = _Packets()
        self._reader = GroupSyncRead(self._port, self._packets, PRESENT, PRESENT_BYTES)
        for one in self._ids:
            self._reader.addParam(one)
        self._unheard: dict[int, float] = {}  # s, by drive: when it was first asked without an answer
        self._missed = 0
        self._turn = 0
        self._last: Reading | None = None
        self._armed = False  # the drives have had a watchdog, which a failure of their power resets

    def simulate(self, positions: Array) -> None:
        """Drives that reach their goals at once; they have no stops, so that none is found by running against one."""
        bus = SimulatedDynamixels(self._ids)
        for one, position in zip(self._ids, positions, strict=True):
            bus.stand(one, round(float(position)))
        self._name = self._port.port_name = bus.switch_on()

    def open(self, home: Array) -> None:
        """Open the port, disable the drives and ask each for its position."""
        try:
            opened = self._port.setBaudRate(self._baud)
        except (OSError, termios.error) as error:
            raise DeviceError(f"{self._name} cannot be opened: {error}; is it plugged in?") from error
        if not opened:
            raise DeviceError(f"{self._name}: the SDK knows no {self._baud} baud")
        try:
            self._port.ser.exclusive = True
        except OSError as error:
            self.close()
            raise DeviceError(f"{self._name} cannot be opened exclusively: does another program use it?") from error
        before = self._last
        self._missed = self._packets.late = 0
        self._changed = self.notice = ""
        self._unheard.clear()
        self._tell_all(STATUS_RETURN, _ANSWERS_ALL)
        if unknown := self._let_go():
            raise DeviceError(f"no answer of {_named(unknown)} on {self._name}: check power, id and baud rate")
        cut = [self._armed and self._need(one, BUS_WATCHDOG, BUS_WATCHDOG + 1)[0] == 0 for one in self._ids]
        self._settle()
        while (now := self._read()) is None:
            pass
        if before is not None:
            self._check_turns(cut, now.positions - before.positions)
        self._last = now

    def _check_turns(self, cut: Sequence[bool], moved: Array) -> None:
        """Refuse drives whose power was `cut` and that `moved` by more than half a turn, (n_actuated,) [counts]."""
        for one, off, by in zip(self._ids, cut, moved, strict=True):
            if off and abs(by) > COUNTS / 2:
                raise DeviceError(
                    f"drive {one} on {self._name} reads {by / COUNTS:+.2f} turns from where it was: without power it "
                    "has forgotten whole turns; bring its joint within the drive's own turn, and start the program anew"
                )

    def close(self) -> None:
        """Close the port."""
        if self._port.is_open:
            with contextlib.suppress(OSError, termios.error):
                self._port.closePort()
            self._port.is_open = False

    @property
    def closed(self) -> bool:
        """Whether the port is closed."""
        return not self._port.is_open

    @property
    def missing(self) -> str:
        """The drive that was asked first without an answer; the SDK does not listen to those behind it."""
        one = min(self._unheard, key=self._unheard.__getitem__, default=None)
        return "" if one is None else f"no answer from drive {one} on {self._name}"

    def enable(self, positions: Array) -> None:
        """Torque on, at the positions; the drives' own watchdogs are armed."""
        self._settle()
        for one, position in zip(self._ids, positions, strict=True):
            self._write(one, BUS_WATCHDOG, 1, 0)  # clears one that has bitten, and refuses goals
            self._write(one, GOAL_POSITION, 4, round(float(position)))
            self._write(one, BUS_WATCHDOG, 1, self._watchdog)
            limits_row = self._need(one, BUS_WATCHDOG, GOAL_POSITION + 4)
            if abs(_signed(limits_row, GOAL_POSITION - BUS_WATCHDOG) - position) > _STANDS:
                raise DeviceError(
                    f"drive {one} on {self._name} does not accept its own position as a goal; it would move"
                )
        self._on = self._armed = True
        for one in self._ids:
            self._write(one, TORQUE_ENABLE, 1, 1)
        self._unheard.clear()

    def disable(self) -> None:
        """Torque off: all drives at once, repeatedly, until each confirms it."""
        self._on = False
        unknown, why = list(self._ids), "its port is closed"
        try:
            if self._port.is_open:
                unknown, why = self._let_go(), "they do not say so"
        except DeviceError as error:
            why = str(error)
        if unknown:
            raise DeviceError(f"{self._name}: the torque may be on of {_named(unknown)}: {why}")

    def _let_go(self) -> list[int]:
        """Disable the torque of all drives; the ids of those that have not confirmed it in time."""
        unknown = list(self._ids)
        until = time.monotonic() + TELLING
        times = 0
        while True:
            with contextlib.suppress(FullError):
                self._tell_all(TORQUE_ENABLE, 0)
                for one in unknown * times:
                    with self._line():
                        self._packets.write1ByteTxOnly(self._port, one, TORQUE_ENABLE, 0)
            unknown = [one for one in unknown if not self._is_off(one)]
            if not unknown or time.monotonic() > until:
                return unknown
            times = max(2, min(100, int(_FLOOD * self._baud / 10 / (_TORQUE_PACKET * len(unknown)))))

    def _tell_all(self, address: int, value: int) -> None:
        """Write a byte to all drives at once, more than once, since none of them answers."""
        writer = GroupSyncWrite(self._port, self._packets, address, 1)
        for one in self._ids:
            writer.addParam(one, [value])
        for _ in range(3):
            with self._line():
                writer.txPacket()

    def _is_off(self, one: int) -> bool:
        with contextlib.suppress(FullError):
            state = self._bytes(one, TORQUE_ENABLE, STATE_END)
            return state is not None and state[0] == 0
        return False

    def _settle(self) -> None:
        changes = []
        for k, one in enumerate(self._ids):
            lowest, highest = np.ceil(self._limits.lowest[k]), np.floor(self._limits.highest[k])
            settings = self._need(one, DRIVE_MODE, SETTINGS_END)
            current = float(self._limits.current[k])
            allowed = [BY_POSITION] if lowest >= 0 and highest < COUNTS else []
            allowed = [BY_CURRENT] if math.isfinite(current) else [*allowed, EXTENDED, BY_CURRENT]
            mode = before = settings[OPERATING_MODE - DRIVE_MODE]
            if mode not in allowed:
                mode = allowed[0]
                self._write(one, OPERATING_MODE, 1, mode)
                changes.append(f"drive {one} was in mode {_MODES.get(before, before)}, now {_MODES[mode]}")
            if math.isfinite(current):
                at = CURRENT_LIMIT - DRIVE_MODE
                self._set_current(one, current, int.from_bytes(settings[at : at + 2], "little"))
            if settings[0] & _BY_TIME:
                self._write(one, DRIVE_MODE, 1, settings[0] & ~_BY_TIME)
                changes.append(f"drive {one} had profiles by time, now by velocity")
            least, most = (_signed(settings, at - DRIVE_MODE) for at in (MIN_POSITION, MAX_POSITION))
            if mode == BY_POSITION and (lowest < least or highest > most):
                raise DeviceError(
                    f"drive {one} on {self._name} goes from {least} to {most} counts by its own limits, its actuator "
                    f"from {lowest:g} to {highest:g}: give it less (lower, upper) in the machine's file, or the drive "
                    "more with Dynamixel Wizard"
                )
            self._set_profile(one, float(self._limits.speed[k]), _signed(settings, VELOCITY_LIMIT - DRIVE_MODE))
        if changes:
            self._changed = "; ".join(changes)
        self.notice = self._changed

    def _set_current(self, one: int, current: float, limit: int) -> None:
        # to the file's, within the drive's own [drive units]; a power-on forgets it
        if limit < math.floor(current):
            raise DeviceError(
                f"drive {one} on {self._name} takes at most {limit} units of current by its own limit, the machine's "
                f"file says {current:g}: write less there, or give the drive more with Dynamixel Wizard"
            )
        self._write(one, GOAL_CURRENT, 2, math.floor(current))

    def _set_profile(self, one: int, speed: float, limit: int) -> None:
        # to its actuator's [counts/s]; `limit`: its own [drive units]; a power-on forgets it
        profile = 0  # none
        if math.isfinite(speed):
            if limit < math.floor(speed / _VELOCITY_UNIT):
                raise DeviceError(
                    f"drive {one} on {self._name} goes at most {limit * _RPM:.4g} rev/min by its own velocity limit, "
                    f"its actuator {speed / _VELOCITY_UNIT * _RPM:.4g}: give it less (velocity) in the machine's file, "
                    "or the drive more with Dynamixel Wizard"
                )
            profile = min(math.ceil(FASTER * speed / _VELOCITY_UNIT), limit, _FASTEST_PROFILE)
        self._write(one, PROFILE_ACCELERATION, 4, 0)
        self._write(one, PROFILE_VELOCITY, 4, profile)

    def exchange(self, positions: Array | None) -> Reading:
        """Send goal positions [counts], read all drives, and ask one of them whether all is well."""
        if positions is not None:
            self._send(positions)
        reading = self._read()
        one = self._ids[self._turn % len(self._ids)]
        state = self._bytes(one, TORQUE_ENABLE, STATE_END)
        if state is not None:
            self._turn += 1
            self._judge(one, state)
        late = f"{self._packets.late} answers of the Dynamixels came late" if self._packets.late else ""
        lost = f"{self._missed} readings of the Dynamixels were lost" if self._missed else ""
        self.notice = "; ".join(filter(None, (self._changed, lost, late)))
        self._last = reading or self._last
        if self._last is None:
            raise DeviceError(f"{self._name} has not been opened")
        return self._last

    def _judge(self, one: int, state: bytes) -> None:
        if error := state[HARDWARE_ERROR - TORQUE_ENABLE]:
            words = [word for bit, word in _ERRORS.items() if error >> bit & 1] or [f"status {error}"]
            raise DeviceError(f"drive {one} on {self._name} reports: {', '.join(words)}; switch it off and on")
        if self._on and not state[0]:
            raise DeviceError(f"drive {one} on {self._name} has disabled its torque by itself: has it lost its power?")
        if self._on and state[BUS_WATCHDOG - TORQUE_ENABLE] == _BITTEN:
            silence = self._watchdog * _WATCHDOG_UNIT
            raise DeviceError(f"drive {one} on {self._name} has stopped: the computer was silent for {silence:g} s")

    def _send(self, positions: Array) -> None:
        writer = GroupSyncWrite(self._port, self._packets, GOAL_POSITION, 4)
        for one, position in zip(self._ids, positions, strict=True):
            writer.addParam(one, list(round(float(position)).to_bytes(4, "little", signed=True)))
        with self._line():
            writer.txPacket()

    def _read(self) -> Reading | None:
        """The reading of all drives; None where one did not answer, for less than `silence`."""
        now = time.monotonic()
        # after a loss the next question is for more bytes, those before: its answer differs from one that comes late
        more = 2 * (self._missed % _QUESTIONS)
        self._reader.start_address, self._reader.data_length = PRESENT - more, PRESENT_BYTES + more
        with self._line():
            result = self._reader.txRxPacket()
        # the SDK asks all at once and stops listening at the first that is missing, whose data it empties
        rows: list[bytes] = []
        for one in self._ids:
            row = bytes(self._reader.data_dict[one])[more:]
            if len(row) != PRESENT_BYTES:
                break
            rows.append(row)
            self._unheard.pop(one, None)
        if result != COMM_SUCCESS or len(rows) < len(self._ids):
            self._missed += 1
            for one in self._ids[len(rows) :]:
                self._unheard.setdefault(one, now)
            one = min(self._unheard, key=self._unheard.__getitem__, default=self._ids[0])
            if now - self._unheard.get(one, now) > self._silence:  # a stall of this computer is no silence of theirs
                raise DeviceError(f"{self.missing} for {self._silence:g} s ({self._why(result)})")
            return None
        numbers = [
            [int.from_bytes(row[a:b], "little", signed=True) for a, b in ((0, 2), (2, 6), (6, 10))] for row in rows
        ]
        current, velocity, position = np.array(numbers, dtype=np.float64).T
        return Reading(position, now, velocity * _VELOCITY_UNIT, current)

    def _bytes(self, one: int, begin: int, end: int) -> bytes | None:
        with self._line():
            if self._packets.readTx(self._port, one, begin, end - begin) != COMM_SUCCESS:
                return None
            row, result, _ = self._packets.readRx(self._port, one, end - begin)
        return bytes(row) if result == COMM_SUCCESS else None

    def _need(self, one: int, begin: int, end: int) -> bytes:
        # as `_bytes`, of a drive that has to answer
        for _ in range(_TRIES):
            self._require_wanted()
            row = self._bytes(one, begin, end)
            if row is not None:
                return row
        raise DeviceError(f"no answer from drive {one} on {self._name}: check power, id and baud rate")

    def _write(self, one: int, address: int, size: int, value: int) -> None:
        data = list(value.to_bytes(size, "little", signed=value < 0))
        for _ in range(_TRIES):
            self._require_wanted()
            with self._line():
                result, error = self._packets.writeTxRx(self._port, one, address, size, data)
            if result == COMM_SUCCESS:
                if error & 0x7F:
                    raise DeviceError(f"drive {one} on {self._name} refuses {value} at address {address}")
                return
        raise DeviceError(
            f"no answer from drive {one} on {self._name} ({self._why(result)}): check power, id and baud rate"
        )

    def _why(self, result: int) -> str:
        return str(self._packets.getTxRxResult(result)).partition("] ")[2] or "not what was asked"

    @contextlib.contextmanager
    def _line(self) -> Iterator[None]:
        """Turn what the port raises into a `DeviceError`, and leave it usable."""
        try:
            yield
        except (OSError, termios.error, TypeError, AttributeError) as error:  # pyserial's, of a port that is gone
            self.close()
            raise DeviceError(f"{self._name} is gone ({error.args[-1]}): was it unplugged?") from error
        finally:
            self._port.is_using = False


def _named(ids: Sequence[int]) -> str:
    return ", ".join(f"drive {one}" for one in ids)


def _signed(row: bytes, at: int) -> int:
    return int.from_bytes(row[at : at + 4], "little", signed=True)


def drives(file: MachineFile, mechanism: Mechanism, home: Array) -> Drives:
    """Driver, scale and homing of Dynamixels by a machine's file; `home` (n_actuated,) [rad or m]."""
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
    scale, homing = scale_of(sections, mechanism, units, zero), homing_of(sections, mechanism)
    limits = device_limits(file, mechanism, scale, homing)
    for section in sections:
        section.finish()
    return Drives(DynamixelDriver(port, baud, ids, silence, watchdog, limits), scale, home, homing)
