# SPDX-License-Identifier: Apache-2.0
"""ODrives by their ASCII protocol, over USB or a serial line: nothing to install, and much the same on every firmware.

Lines carry the protocol's own checksum, so that a garbled one does nothing. Answers have no number, so there is never
more than one question open on a line: an answer that is late belongs to the question that was asked, or to none.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Mechanism
from pkm_hardware.devices import SimulatedODrive
from pkm_hardware.drivers.driver import TELLING, DeviceError, Driver, Reading
from pkm_hardware.drivers.serial_line import CLOSED_LOOP, IDLE, INDEX_SEARCH, SerialLine, exclusive_or
from pkm_hardware.machine_file import FASTER, DeviceLimits, Drives, MachineFile, device_limits, homing_of, scale_of
from pkm_runtime.errors import printable

_TIMEOUT = "axis{}.config.watchdog_timeout"
_TURNED = 0.5  # turns
_AWAY = 1e-4  # turns: a target further from where an axis stands asks it to move
_PATIENCE = 0.004  # s, for an answer within a period; a later one is taken in the next
_ARMING = 1.0  # s, to be in closed loop
_GREETING = 1.0  # s
_BY_POSITION = "3"  # control mode
_PASSED_ON, _FILTERED = "1", "3"  # input modes that follow positions which come one after the other
_SAME = 1.0 + 1e-4  # of a limit that was written before, and rounded
_REFERENCE, _FAR = 0.3, 1e9  # turns: of a simulated motor, to its switch or index, and to its stops
_ANSWER = 0.05  # s, for a board to say that its axes are idle


_ACTIVE_ERRORS = "active_errors"
_ERRORS = {
    0: "INITIALIZING",
    1: "SYSTEM_LEVEL",
    2: "TIMING_ERROR",
    3: "MISSING_ESTIMATE",
    4: "BAD_CONFIG",
    5: "DRV_FAULT",
    6: "MISSING_INPUT",
    8: "DC_BUS_OVER_VOLTAGE",
    9: "DC_BUS_UNDER_VOLTAGE",
    10: "DC_BUS_OVER_CURRENT",
    11: "DC_BUS_OVER_REGEN_CURRENT",
    12: "CURRENT_LIMIT_VIOLATION",
    13: "MOTOR_OVER_TEMP",
    14: "INVERTER_OVER_TEMP",
    15: "VELOCITY_LIMIT_VIOLATION",
    16: "POSITION_LIMIT_VIOLATION",
    24: "WATCHDOG_TIMER_EXPIRED: the computer was silent",
    25: "ESTOP_REQUESTED",
    26: "SPINOUT_DETECTED",
    27: "BRAKE_RESISTOR_DISARMED",
    28: "THERMISTOR_DISCONNECTED",
    30: "CALIBRATION_ERROR",
}
# The bits of `active_errors` on firmware 0.6, by the names of ODrive's own header for Arduino (`ODriveEnums.h`)


def error_names(value: str | None) -> str:
    """What a value of `active_errors` means, in brackets; empty where it names no bit."""
    bits = int(value) if value is not None and value.isdigit() else 0
    names = [name for bit, name in _ERRORS.items() if bits >> bit & 1]
    return f" ({', '.join(names)})" if names else ""


def with_checksum(text: str) -> bytes:
    """The line of a command, with its checksum and end."""
    return f"{text} *{exclusive_or(f'{text} '.encode())}\n".encode()


def without_checksum(line: bytes) -> str | None:
    """The text of an answer line without its end; None where its checksum is missing or wrong."""
    body, star, digits = line.rpartition(b"*")
    if not star or not digits.isdigit() or int(digits) != exclusive_or(body):
        return None
    return printable(body.decode("ascii", "replace").strip())


@dataclass
class Board:
    """A line to one ODrive, and its axes as (actuator, number of the axis)."""

    line: SerialLine
    axes: list[tuple[int, int]]
    since: float | None = None  # when the oldest question was asked that has no good answer, s
    question: str = ""  # that is open; empty: none
    waiting: list[str] = field(default_factory=list)  # questions to ask when none is open
    garbled: int = 0
    turn: int = 0  # which axis and question is the next, of those that take turns
    awaited: int = 0  # answers to questions of which several are open
    asked: float = 0.0  # when the question was asked that was answered last, s
    late: dict[str, tuple[str, float]] = field(default_factory=dict)  # answers nobody waited for, and when asked, s
    _asked: float = 0.0  # when the last question was asked, s

    def ask(self, question: str, patience: float) -> str | None:
        """The answer within `patience` [s]; None where it has not come yet. One to an older question is kept."""
        until = time.monotonic() + patience
        if question not in (self.question, *self.waiting):
            self.waiting.append(question)
        self._put_next()
        while (left := until - time.monotonic()) > 0.0:
            for line in self.line.lines(left):
                asked, text = self.question, without_checksum(line)
                if text is None and line:  # the answer, garbled: ask anew
                    self.garbled += 1
                    self.question = ""
                    return None
                if text is not None and asked:
                    self.since, self.question = None, ""
                    if asked == question:
                        self.asked = self._asked
                        return text
                    self.late[asked] = text, self._asked
            self._put_next()
        return None

    def _put_next(self) -> None:
        # what has waited longest: of late answers all would be to one question
        if self.waiting and not self.question:
            self.question, self._asked = self.waiting.pop(0), time.monotonic()
            self.line.write(with_checksum(self.question))
            self.since = self._asked if self.since is None else self.since

    def ask_or_late(self, question: str, patience: float) -> tuple[str, float] | None:
        """The answer, or one to the same question that came while another was asked, and when it was asked for [s]."""
        answer, late = self.ask(question, patience), self.late.pop(question, None)
        return late if answer is None else (answer, self.asked)

    @property
    def named(self) -> str:
        """Its axes in words."""
        return ", ".join(f"{self.line.port}: axis{axis}" for _, axis in self.axes)

    def tell_idle(self, times: int) -> None:
        """Tell every axis so many times to be idle, whatever was asked before; lines that come garbled do nothing."""
        self.awaited += bool(self.question)
        self.since, self.question = None, ""
        self.waiting.clear()
        self.late.clear()
        words = [f"w axis{axis}.requested_state {IDLE}" for _, axis in self.axes]
        self.line.write(b"\n" + b"".join(map(with_checksum, words * times)))  # ends a line left in the middle

    def says_idle(self) -> bool:
        """Whether every axis says that it is idle."""
        # while a board sends an answer, it drops the next question; answers may be late: older ones precede a position
        if self._answer(f"f {self.axes[0][1]}", _is_place) is None:
            return False
        questions = [f"r axis{axis}.current_state" for _, axis in self.axes]
        return all(self._answer(one, lambda text: not _is_place(text)) == str(IDLE) for one in questions)

    def _answer(self, question: str, fits: Callable[[str], bool]) -> str | None:
        self.line.write(with_checksum(question))
        self.awaited += 1
        until = time.monotonic() + _ANSWER
        while (left := until - time.monotonic()) > 0.0:
            for text in self._hear(left):
                if fits(text):
                    return text
        return None

    def drain(self) -> None:
        """Wait for the answers to what `says_idle` asked before, so that none of them is taken for a later one."""
        until = time.monotonic() + _ANSWER
        while self.awaited > 0 and (left := until - time.monotonic()) > 0.0:
            self._hear(left)
        self.awaited = 0

    def _hear(self, patience: float) -> list[str]:
        lines = [line for line in self.line.lines(patience) if line]
        self.awaited -= len(lines)
        return [without_checksum(line) or "" for line in lines]


@dataclass(frozen=True)
class Properties:
    """Names of an ODrive's further properties, one for each actuator; empty: not read.

    `switch`: 1 where the reference switch is closed. `index`: 1 once the encoder's index has been found, where the
    ODrive sets its position to zero. `load`: what shows a stop, such as the current.
    """

    switch: tuple[str, ...]
    index: tuple[str, ...]
    load: tuple[str, ...]


@dataclass(eq=False)
class ODriveDriver(Driver):
    """Sends positions [turns]; reads positions and velocities.

    An axis whose index has not been found since power-on cannot be in closed loop, for want of the rotor's angle. It
    stays idle when the others are enabled; the first target away from its present position makes the ODrive search the
    index, in its own manner, and then it is held where it came to rest.

    `silence` of a board that is a fault [s]; `error`: property of an axis that is 0 while all is well; `watchdog`:
    silence of the computer after which axes disable themselves [s]; `current`: property that limits an axis' current;
    `homed`: actuators that look for their place whenever they are connected.
    """

    boards: Sequence[Board]
    silence: float
    error: str
    properties: Properties
    limits: DeviceLimits
    watchdog: float
    current: str
    homed: NDArray[np.bool_]

    def __post_init__(self) -> None:
        super().__init__()
        n = len(self.properties.switch)
        self._changed = ""
        self._gone: dict[str, str] = {}  # the error of each board that could not be reached
        self._times = np.zeros(n)  # s: when each was asked for its position that answered
        self._held = np.zeros(n, dtype=bool)  # in closed loop
        self._armed = np.zeros(n, dtype=bool)  # has had the time of its watchdog, which a failure of its power resets
        self._positions = np.full(n, np.nan)
        self._velocities = np.zeros(n)
        self._switches = np.zeros(n, dtype=bool)
        self._loads = np.zeros(n)
        self._blind = np.array([bool(name) for name in self.properties.index])  # without its index
        self._searching = np.zeros(n, dtype=bool)

    def simulate(self, positions: Array) -> None:
        """Motors without stops at these positions; a switch or an index is `_REFERENCE` further."""
        for board in self.boards:
            device = SimulatedODrive()
            for actuator, number in board.axes:
                axis = device.axes[number]
                axis.values[self.current] = axis.values["config.motor.current_soft_max"]
                axis.place = float(positions[actuator])
                axis.stops = (-_FAR, _FAR)
                axis.switch_below, axis.switch_above = axis.place - _REFERENCE, axis.place + _REFERENCE
                if self.properties.index[actuator]:
                    axis.index = axis.place + _REFERENCE
            board.line.port = device.switch_on()

    def open(self, home: Array) -> None:
        """Open the lines, set every axis idle, clear old errors, correct the settings, and read the positions."""
        before, self._positions, self._changed = self._positions, np.full(len(home), np.nan), ""
        try:
            self._open()
            self._check_places(before)
        except DeviceError:
            self._positions = before  # for the next attempt
            raise

    def _open(self) -> None:
        self._blind[:] = [bool(name) for name in self.properties.index]
        for board in self.boards:
            board.line.open()
            board.garbled = 0
        if silent := self._let_go(_GREETING):
            raise DeviceError(f"no ODrive answers on {silent[0].line.port}: has it power, and is the baud rate right?")
        for board in self.boards:
            board.line.write(with_checksum("sc"))
        self._settle()
        began = time.monotonic()
        while not np.isfinite(self._positions).all():
            self._look()
            if time.monotonic() > began + _GREETING:
                raise DeviceError(_without_place(self.boards, self._positions, self._times, began))

    def _check_places(self, before: Array) -> None:
        """Refuse axes that lost their power, and read as if they had moved by more than half a turn."""
        moved = self._positions - before
        for board in self.boards:
            for actuator, axis in board.axes:
                if not self._armed[actuator] or self.homed[actuator] or not abs(moved[actuator]) > _TURNED:
                    continue
                if not math.isclose(self._number(board, _TIMEOUT.format(axis)), self.watchdog, rel_tol=1e-4):
                    raise DeviceError(
                        f"{board.line.port}: axis{axis} reads {moved[actuator]:+.2f} turns from where it was: without "
                        "power it has forgotten whole turns; bring its joint to where the ODrive's zero is right, and "
                        "start the program anew"
                    )

    def close(self) -> None:
        """Close the lines."""
        for board in self.boards:
            board.line.close()

    @property
    def closed(self) -> bool:
        """Whether the port of a board is closed."""
        return not all(board.line.is_open for board in self.boards)

    @property
    def where(self) -> str:
        """The ports."""
        return " on " + ", ".join(board.line.port for board in self.boards)

    @property
    def missing(self) -> str:
        """The boards with an open question."""
        ports = ", ".join(board.line.port for board in self.boards if board.since is not None)
        return ports and f"no answer from the ODrive on {ports}"

    def enable(self, positions: Array) -> None:
        """Closed loop, at the positions; the ODrive releases its own mechanical brake, where it has one."""
        self._searching[:] = False
        self._settle()
        seeing = [
            (board, i, axis, f"p {axis} {positions[i]:.6f} 0 0")
            for board in self.boards
            for i, axis in board.axes
            if self._sees(board, i)
        ]
        for board, _, axis, place in seeing:
            self._arm(board, axis, place)
        for board, actuator, axis, place in seeing:
            self._armed[actuator] = True
            self._require_wanted()
            board.line.write(with_checksum(place) + with_checksum(f"w axis{axis}.requested_state {CLOSED_LOOP}"))
        for board, actuator, axis, _ in seeing:
            self._await_closed_loop(board, axis, [(board, place) for board, _, _, place in seeing])
            self._held[actuator] = True

    def _arm(self, board: Board, axis: int, place: str) -> None:
        # a target position feeds the watchdog
        self._set(board, _TIMEOUT.format(axis), f"{self.watchdog:g}")
        board.line.write(with_checksum(place))
        self._set(board, f"axis{axis}.config.enable_watchdog", "1")

    def _settle(self) -> None:
        changes = []
        for board in self.boards:
            for actuator, axis in board.axes:
                prefix = f"axis{axis}.controller.config"
                for name, allowed in (("control_mode", (_BY_POSITION,)), ("input_mode", (_PASSED_ON, _FILTERED))):
                    value = f"{self._number(board, f'{prefix}.{name}'):g}"
                    if value not in allowed:
                        self._set(board, f"{prefix}.{name}", allowed[0])
                        changes.append(f"{board.line.port}: {prefix}.{name} was {value}, now {allowed[0]}")
                speed, current = float(self.limits.speed[actuator]), float(self.limits.current[actuator])
                changes += self._narrow(board, f"{prefix}.vel_limit", speed, FASTER, "turns/s")
                changes += self._narrow(board, f"axis{axis}.{self.current}", current, 1.0, "A")
        if changes:
            self._changed = "; ".join(changes)
        self.notice = self._changed

    def _narrow(self, board: Board, name: str, value: float, margin: float, unit: str) -> list[str]:
        # a limit of the device to one of the machine; returns the changes, in words
        if not math.isfinite(value):
            return []
        limit = self._number(board, name)
        if limit < value:
            raise DeviceError(
                f"{board.line.port}: {name} is {limit:g} {unit}, less than the {value:.4g} of its actuator: give that "
                "less (velocity, current) in the machine's file, or the axis more with odrivetool"
            )
        if limit <= margin * value * _SAME:
            return []
        self._set(board, name, f"{margin * value:.6g}")
        return [f"{board.line.port}: {name} was {limit:g}, now {margin * value:.4g} {unit}"]

    def _number(self, board: Board, name: str) -> float:
        return _number_in(board, name, self._asked(board, f"r {name}", time.monotonic() + self.silence))

    def _set(self, board: Board, name: str, value: str) -> None:
        until = time.monotonic() + self.silence
        while True:
            board.line.write(with_checksum(f"w {name} {value}"))
            if math.isclose(self._number(board, name), float(value), rel_tol=1e-4, abs_tol=1e-9):
                return
            if time.monotonic() > until:
                raise DeviceError(f"the ODrive on {board.line.port} does not take {value} for {name}")

    def _await_closed_loop(self, board: Board, axis: int, places: Sequence[tuple[Board, str]]) -> None:
        """Wait until an axis is in closed loop; meanwhile target positions feed the watchdogs."""
        until = time.monotonic() + _ARMING
        while self._asked(board, f"r axis{axis}.current_state", until) != str(CLOSED_LOOP):
            for one, place in places:
                one.line.write(with_checksum(place))
            if time.monotonic() > until:
                answer = self._asked(board, f"r axis{axis}.{self.error}", until + self.silence)
                why = f"{self.error} {answer}{_named(self.error, answer)}"
                problem = f"does not enter closed loop ({why}): is it calibrated?"
                raise DeviceError(f"{board.line.port}: axis{axis} {problem}")
        board.late.clear()  # they are of the state before

    def _sees(self, board: Board, actuator: int) -> bool:
        # whether an axis needs no index, or has found it
        if self._blind[actuator]:
            name = self.properties.index[actuator]
            answer = self._asked(board, f"r {name}", time.monotonic() + self.silence)
            self._blind[actuator] = not _true(answer)
        return not self._blind[actuator]

    def disable(self) -> None:
        """Idle: no current; the ODrive closes its mechanical brake, where it has one."""
        self._held[:] = False
        self._searching[:] = False
        if unsure := self._let_go(TELLING):
            raise DeviceError(f"axes that may be in closed loop: {', '.join(self._why(board) for board in unsure)}")

    def _let_go(self, patience: float) -> list[Board]:
        """Tell every axis to be idle for `patience` [s]; the boards that do not confirm it."""
        self._gone = {}
        until = time.monotonic() + patience
        left, times = list(self.boards), 1
        while True:
            for board in left:
                with self._noted(board):
                    board.tell_idle(times)
            left = [board for board in left if not self._is_idle(board)]
            if not any(board.line.is_open for board in left) or time.monotonic() > until:
                return left
            times = 5

    def _is_idle(self, board: Board) -> bool:
        # whether all axes of a board say so; their watchdogs are then disarmed
        with self._noted(board):
            if board.says_idle():
                rows = [f"w axis{axis}.config.enable_watchdog 0" for _, axis in board.axes]
                board.line.write(b"".join(map(with_checksum, rows)))
                board.drain()
                return True
        return False

    @contextlib.contextmanager
    def _noted(self, board: Board) -> Iterator[None]:
        try:
            yield
        except DeviceError as error:
            self._gone[board.line.port] = str(error)

    def _why(self, board: Board) -> str:
        return f"{board.named} ({self._gone.get(board.line.port, 'no answer')})"

    def exchange(self, positions: Array | None) -> Reading:
        """Send positions [turns], which also feeds the board's watchdog, and read."""
        if positions is not None:
            for board in self.boards:
                rows = [self._order(actuator, axis, positions) for actuator, axis in board.axes]
                board.line.write(b"".join(with_checksum(row) for row in rows if row))
        self._look()
        garbled = sum(board.garbled for board in self.boards)
        nonsense = f"{garbled} answers of the ODrives made no sense" if garbled else ""
        self.notice = "; ".join(words for words in (self._changed, nonsense) if words)
        asked = self.properties
        return Reading(
            self._positions.copy(),
            float(self._times.min()),
            self._velocities.copy(),
            loads=self._loads.copy() if any(asked.load) else None,
            switches=self._switches.copy() if any(asked.switch) else None,
            indices=np.where(self._blind, np.nan, 0.0) if any(asked.index) else None,
        )

    def _order(self, actuator: int, axis: int, positions: Array) -> str:
        if not self._blind[actuator]:
            return f"p {axis} {positions[actuator]:.6f} 0 0"
        if self._searching[actuator] or abs(positions[actuator] - self._positions[actuator]) < _AWAY:
            return ""
        self._searching[actuator] = True
        return f"w axis{axis}.requested_state {INDEX_SEARCH}"

    def _look(self) -> None:
        for board in self.boards:
            for actuator, axis in board.axes:
                self._ask_more(board, actuator, axis)  # before the position, which is then where the stop was met
                place = f"f {axis}"
                if (found := board.ask_or_late(place, _PATIENCE)) is not None:
                    answer, self._times[actuator] = found
                    self._positions[actuator], self._velocities[actuator] = _place_in(board, answer)
            self._ask_in_turn(board)
            # only now: an answer that came while this computer stalled has been read
            if board.since is not None and time.monotonic() - board.since > self.silence:
                seen = f"; {board.garbled} answers made no sense" if board.garbled else ""
                raise DeviceError(f"the ODrive on {board.line.port} has not answered for {self.silence:g} s{seen}")

    def _ask_in_turn(self, board: Board) -> None:
        """Ask one axis for its error or its state: a board's axes and these questions take turns."""
        actuator, axis = board.axes[board.turn // 2 % len(board.axes)]
        of_state = board.turn % 2 == 1
        found = board.ask_or_late(f"r axis{axis}.{'current_state' if of_state else self.error}", _PATIENCE)
        if found is None:
            return
        answer, _ = found
        board.turn += 1
        if of_state and self._held[actuator] and answer != str(CLOSED_LOOP):
            error = self._asked(board, f"r axis{axis}.{self.error}", time.monotonic() + self.silence)
            if error not in (None, "0"):
                raise self._reported(board, axis, error)
            raise DeviceError(f"{board.line.port}: axis{axis} has disabled its torque by itself: its state is {answer}")
        if not of_state and answer != "0":
            raise self._reported(board, axis, answer)

    def _reported(self, board: Board, axis: int, error: str | None) -> DeviceError:
        what = f"axis{axis}.{self.error} is {error}{_named(self.error, error)}"
        return DeviceError(f"the ODrive on {board.line.port} reports: {what}")

    def _ask_more(self, board: Board, actuator: int, axis: int) -> None:
        asked = self.properties
        switch = board.ask(f"r {asked.switch[actuator]}", _PATIENCE) if asked.switch[actuator] else None
        if switch is not None:
            self._switches[actuator] = _true(switch)
        load = board.ask(f"r {asked.load[actuator]}", _PATIENCE) if asked.load[actuator] else None
        if load is not None:
            self._loads[actuator] = _number_in(board, asked.load[actuator], load)
        if self._searching[actuator] and _true(board.ask(f"r {asked.index[actuator]}", _PATIENCE)):
            self._take_up(board, actuator, axis)

    def _take_up(self, board: Board, actuator: int, axis: int) -> None:
        """Hold an axis that has found its index at its position, which the index search has changed."""
        until = time.monotonic() + _ARMING
        while self._asked(board, f"r axis{axis}.current_state", until) != str(IDLE) and time.monotonic() < until:
            time.sleep(_PATIENCE)
        answer = self._asked(board, f"f {axis}", until)
        if answer is None:
            return  # the next period asks anew
        self._positions[actuator], self._velocities[actuator] = _place_in(board, answer)
        self._times[actuator] = board.asked
        place = f"p {axis} {self._positions[actuator]:.6f} 0 0"
        self._arm(board, axis, place)
        board.line.write(with_checksum(place) + with_checksum(f"w axis{axis}.requested_state {CLOSED_LOOP}"))
        self._await_closed_loop(board, axis, [(board, place)])
        self._held[actuator] = True
        self._searching[actuator] = self._blind[actuator] = False

    def _asked(self, board: Board, question: str, until: float) -> str | None:
        while time.monotonic() < until:
            self._require_wanted()
            answer = board.ask(question, _PATIENCE)
            if answer is not None:
                return answer
        return None


def _named(asked: str, error: str | None) -> str:
    return error_names(error) if asked == _ACTIVE_ERRORS else ""


def _place_in(board: Board, answer: str) -> tuple[float, float]:
    try:
        position, velocity = (float(word) for word in answer.split())
    except ValueError:
        port = board.line.port
        raise DeviceError(f"the ODrive on {port} answers '{answer}', not position and velocity") from None
    return position, velocity


def _number_in(board: Board, name: str, answer: str | None) -> float:
    try:
        return float({"True": "1", "False": "0"}.get(answer or "", answer or "nothing"))
    except ValueError:
        port = board.line.port
        raise DeviceError(f"the ODrive on {port} answers '{answer or 'nothing'}' for {name}, not a number") from None


def _is_place(answer: str) -> bool:
    words = answer.split()
    try:
        return len([float(word) for word in words]) == 2  # nan where the encoder tells nothing
    except ValueError:
        return False


def _true(answer: str | None) -> bool:
    return answer in ("1", "True", "true")


def drives(file: MachineFile, mechanism: Mechanism, home: Array) -> Drives:
    """Driver, scale and homing of ODrives by a machine's file; `home` (n_actuated,) [rad or m]."""
    top, sections = file.section, file.of(mechanism)
    silence = top.number("silence", 0.1, (0.005, 60.0))
    error = top.text("error_property", _ACTIVE_ERRORS)
    current = top.text("current_property", "config.motor.current_soft_max")
    baud = top.whole("baud", 115200, (1200, 4_000_000))
    watchdog = top.number("watchdog", 0.5, (0.02, 60.0))
    top.finish()
    boards: dict[str, Board] = {}
    units: list[float] = []
    asked: dict[str, list[str]] = {"switch": [], "index": [], "load": []}
    for actuator, section in enumerate(sections):
        port = section.text("port")
        board = boards.setdefault(port, Board(SerialLine(port, baud), []))
        axis = section.whole("axis", 0, (0, 1))
        if axis in (number for _, number in board.axes):
            raise section.wrong("axis", f"axis{axis} on {port} is another actuator's too", "give each its own")
        board.axes.append((actuator, axis))
        units.append(section.number("gear", 1.0, (1e-6, 1e6)) / (2.0 * math.pi))
        for name, named in asked.items():
            named.append(section.text(name, "-").replace("-", ""))
    scale, homing = scale_of(sections, mechanism, units, [0.0] * len(sections)), homing_of(sections, mechanism)
    limits = device_limits(file, mechanism, scale, homing)
    for section in sections:
        section.finish()
    properties = Properties(**{name: tuple(values) for name, values in asked.items()})
    homed = np.isin(np.arange(len(sections)), [axis.actuator for axis in homing])
    driver = ODriveDriver(tuple(boards.values()), silence, error, properties, limits, watchdog, current, homed)
    return Drives(driver, scale, home, homing)


def _without_place(boards: Sequence[Board], positions: Array, times: Array, began: float) -> str:
    rows = [(board, actuator, axis) for board in boards for actuator, axis in board.axes]
    board, actuator, axis = next(row for row in rows if not math.isfinite(positions[row[1]]))
    if times[actuator] < began:
        return f"no answer from the ODrive on {board.line.port}: is the baud rate right?"
    return f"{board.line.port}: axis{axis} reads {positions[actuator]:g} turns: look at its encoder"
