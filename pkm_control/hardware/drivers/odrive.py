# SPDX-License-Identifier: Apache-2.0
"""ODrives by their ASCII protocol, over USB or a serial line: nothing to install, and much the same on every firmware.

Lines carry the protocol's own checksum, so that a garbled one does nothing. Answers have no number, so there is never
more than one question open on a line: an answer that is late belongs to the question that was asked, or to none.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.drivers.driver import DeviceError, Driver, Reading
from pkm_control.hardware.drivers.serial_line import SerialLine
from pkm_control.hardware.drives import Drives
from pkm_control.hardware.machine_file import MachineFile, homing_of, scale_of
from pkm_description.mechanism import Mechanism

Array = NDArray[np.float64]

IDLE, INDEX_SEARCH, CLOSED_LOOP = 1, 6, 8  # states of an axis
_AWAY = 1e-4  # turns: a target further from where an axis stands asks it to move
_PATIENCE = 0.004  # s, for an answer within a period; a later one is taken in the next
_ARMING = 1.0  # s, to be in closed loop
_GREETING = 1.0  # s


def with_checksum(text: str) -> bytes:
    """Return the line of a command.

    Args:
        text: of the command.

    Returns:
        The line, with its end.
    """
    return f"{text} *{_xor(f'{text} '.encode())}\n".encode()


def without_checksum(line: bytes) -> str | None:
    """Return the text of an answer; None where its checksum is missing or wrong.

    Args:
        line: without its end.

    Returns:
        Its text.
    """
    body, star, digits = line.rpartition(b"*")
    if not star or not digits.isdigit() or int(digits) != _xor(body):
        return None
    return body.decode("ascii", "replace").strip()


def _xor(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
    return value


@dataclass
class Board:
    """A line to one ODrive, and its axes as (actuator, number of the axis)."""

    line: SerialLine
    axes: list[tuple[int, int]]
    since: float | None = None  # when the oldest question was asked that has no good answer, s
    question: str = ""  # that is open; empty: none
    garbled: int = 0
    turn: int = field(default=0)  # whose error is asked next

    def ask(self, question: str, patience: float) -> str | None:
        """Return the answer to a question; None where it has not come yet, or was one to an older question.

        Args:
            question: a command that is answered.
            patience: for the answer [s].

        Returns:
            The answer.
        """
        if not self.question:
            self.line.write(with_checksum(question))
            self.question = question
            self.since = time.monotonic() if self.since is None else self.since
        until = time.monotonic() + patience
        while self.question and (left := until - time.monotonic()) > 0.0:
            for line in self.line.lines(left):
                asked, text = self.question, without_checksum(line)
                if text is not None:
                    self.since, self.question = None, ""
                    return text if asked == question else None
                if line:  # the answer, garbled: ask anew
                    self.garbled += 1
                    self.question = ""
        return None


@dataclass(frozen=True)
class Properties:
    """Names of what an ODrive is asked for besides position and velocity, one for each actuator; empty: nothing.

    `switch`: 1 where the reference switch is closed. `index`: 1 once the encoder's index has been found, where the
    ODrive sets its position to zero. `load`: what shows a stop, such as the current.
    """

    switch: tuple[str, ...]
    index: tuple[str, ...]
    load: tuple[str, ...]


class ODriveDriver(Driver):
    """Positions out in turns, positions and velocities in.

    An axis whose index has not been found since power-on cannot be in closed loop, for want of the rotor's angle. It
    stays idle when the others are enabled; the first target away from where it stands has the ODrive search the index,
    in its own manner, and then it is held where it came to rest.

    Args:
        boards: with their axes.
        silence: of a board that is a fault [s].
        error: name of the property of an axis that is 0 while all is well.
        properties: of the actuators.
    """

    def __init__(self, boards: Sequence[Board], silence: float, error: str, properties: Properties) -> None:
        n = len(properties.switch)
        self._boards = boards
        self._silence = silence
        self._error = error
        self._properties = properties
        self._positions = np.full(n, np.nan)
        self._velocities = np.zeros(n)
        self._switches = np.zeros(n, dtype=bool)
        self._loads = np.zeros(n)
        self._blind = np.array([bool(name) for name in properties.index])  # without its index
        self._searching = np.zeros(n, dtype=bool)

    def open(self, home: Array) -> None:
        """Open the lines, clear old errors, and read where every axis is."""
        self._positions = np.full(len(home), np.nan)
        self._blind[:] = [bool(name) for name in self._properties.index]
        for board in self._boards:
            board.line.open()
            board.since, board.question, board.garbled = None, "", 0
            board.line.write(with_checksum("sc"))
        until = time.monotonic() + _GREETING
        while not np.isfinite(self._positions).all():
            self._look()
            if time.monotonic() > until:
                missing = next(b for b in self._boards if any(math.isnan(self._positions[i]) for i, _ in b.axes))
                raise DeviceError(
                    f"no ODrive answers on {missing.line.port}: has it power, and is the baud rate right?"
                )

    def close(self) -> None:
        """Axes idle, lines free."""
        for board in self._boards:
            if board.line.is_open:
                with contextlib.suppress(DeviceError):
                    self._set_state(board, IDLE)
                board.line.close()

    def enable(self, positions: Array) -> None:
        """Closed loop, at the positions; the ODrive releases its own mechanical brake, where it has one."""
        self._searching[:] = False
        seeing = [(board, i, axis) for board in self._boards for i, axis in board.axes if self._sees(board, i)]
        for board, actuator, axis in seeing:
            board.line.write(with_checksum(f"p {axis} {positions[actuator]:.6f} 0 0"))
            board.line.write(with_checksum(f"w axis{axis}.requested_state {CLOSED_LOOP}"))
        for board, _, axis in seeing:
            self._await_closed_loop(board, axis)

    def _await_closed_loop(self, board: Board, axis: int) -> None:
        until = time.monotonic() + _ARMING
        while self._asked(board, f"r axis{axis}.current_state", until) != str(CLOSED_LOOP):
            if time.monotonic() > until:
                answer = self._asked(board, f"r axis{axis}.{self._error}", until + self._silence)
                problem = f"does not enter closed loop ({self._error} {answer}): is it calibrated?"
                raise DeviceError(f"{board.line.port}: axis{axis} {problem}")

    def _sees(self, board: Board, actuator: int) -> bool:
        """Whether an axis needs no index, or has found it."""
        if self._blind[actuator]:
            name = self._properties.index[actuator]
            answer = self._asked(board, f"r {name}", time.monotonic() + self._silence)
            self._blind[actuator] = not _true(answer)
        return not self._blind[actuator]

    def disable(self) -> None:
        """Idle: no current; the ODrive closes its mechanical brake, where it has one. Every board is told."""
        problems: list[str] = []
        for board in self._boards:
            try:
                self._set_state(board, IDLE)
            except DeviceError as error:
                problems.append(str(error))
        if problems:
            raise DeviceError("; ".join(problems))

    def exchange(self, positions: Array | None) -> Reading:
        """Send positions [turns], which also feeds the board's watchdog, and read."""
        if positions is not None:
            for board in self._boards:
                rows = [self._order(actuator, axis, positions) for actuator, axis in board.axes]
                board.line.write(b"".join(with_checksum(row) for row in rows if row))
        self._look()
        garbled = sum(board.garbled for board in self._boards)
        self.notice = f"{garbled} answers of the ODrives made no sense" if garbled else ""
        asked = self._properties
        return Reading(
            self._positions.copy(),
            self._velocities.copy(),
            loads=self._loads.copy() if any(asked.load) else None,
            switches=self._switches.copy() if any(asked.switch) else None,
            indices=np.where(self._blind, np.nan, 0.0) if any(asked.index) else None,
        )

    def _order(self, actuator: int, axis: int, positions: Array) -> str:
        """What an axis is told in a period: where to go, or to search its index; empty: nothing."""
        if not self._blind[actuator]:
            return f"p {axis} {positions[actuator]:.6f} 0 0"
        if self._searching[actuator] or abs(positions[actuator] - self._positions[actuator]) < _AWAY:
            return ""
        self._searching[actuator] = True
        return f"w axis{axis}.requested_state {INDEX_SEARCH}"

    def _look(self) -> None:
        """Ask every axis where it is, and one of each board whether all is well."""
        for board in self._boards:
            if board.since is not None and time.monotonic() - board.since > self._silence:
                seen = f"; {board.garbled} answers made no sense" if board.garbled else ""
                raise DeviceError(f"the ODrive on {board.line.port} has not answered for {self._silence:g} s{seen}")
            for actuator, axis in board.axes:
                self._ask_more(board, actuator, axis)  # before the position, which is then where the stop was met
                answer = board.ask(f"f {axis}", _PATIENCE)
                if answer is not None:
                    self._positions[actuator], self._velocities[actuator] = self._numbers(board, answer)
            _, axis = board.axes[board.turn % len(board.axes)]
            error = board.ask(f"r axis{axis}.{self._error}", _PATIENCE)
            if error is None:
                continue
            board.turn += 1
            if error != "0":
                raise DeviceError(f"the ODrive on {board.line.port} reports: axis{axis}.{self._error} is {error}")

    def _ask_more(self, board: Board, actuator: int, axis: int) -> None:
        """Ask an axis for what homing needs."""
        asked = self._properties
        switch = board.ask(f"r {asked.switch[actuator]}", _PATIENCE) if asked.switch[actuator] else None
        if switch is not None:
            self._switches[actuator] = _true(switch)
        load = board.ask(f"r {asked.load[actuator]}", _PATIENCE) if asked.load[actuator] else None
        if load is not None:
            try:
                self._loads[actuator] = float(load)
            except ValueError:
                raise DeviceError(
                    f"the ODrive on {board.line.port} answers '{load}' for {asked.load[actuator]}, not a number"
                ) from None
        if self._searching[actuator] and _true(board.ask(f"r {asked.index[actuator]}", _PATIENCE)):
            self._take_up(board, actuator, axis)

    def _take_up(self, board: Board, actuator: int, axis: int) -> None:
        """Hold an axis that has found its index where it is; its position is another one now."""
        until = time.monotonic() + _ARMING
        while self._asked(board, f"r axis{axis}.current_state", until) != str(IDLE) and time.monotonic() < until:
            time.sleep(_PATIENCE)
        answer = self._asked(board, f"f {axis}", until)
        if answer is None:
            return  # the next period asks anew
        self._positions[actuator], self._velocities[actuator] = self._numbers(board, answer)
        board.line.write(with_checksum(f"p {axis} {self._positions[actuator]:.6f} 0 0"))
        board.line.write(with_checksum(f"w axis{axis}.requested_state {CLOSED_LOOP}"))
        self._await_closed_loop(board, axis)
        self._searching[actuator] = self._blind[actuator] = False

    @staticmethod
    def _numbers(board: Board, answer: str) -> tuple[float, float]:
        try:
            position, velocity = (float(word) for word in answer.split())
        except ValueError:
            raise DeviceError(
                f"the ODrive on {board.line.port} answers '{answer}', not position and velocity"
            ) from None
        return position, velocity

    def _asked(self, board: Board, question: str, until: float) -> str | None:
        while time.monotonic() < until:
            answer = board.ask(question, _PATIENCE)
            if answer is not None:
                return answer
        return None

    @staticmethod
    def _set_state(board: Board, state: int) -> None:
        for _, axis in board.axes:
            board.line.write(with_checksum(f"w axis{axis}.requested_state {state}"))


def _true(answer: str | None) -> bool:
    """Whether a property is set."""
    return answer in ("1", "True", "true")


def drives(file: MachineFile, mechanism: Mechanism, home: Array) -> Drives:
    """ODrives as a machine's file has them.

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
    silence = top.number("silence", 0.1, (0.005, 60.0))
    error = top.text("error_property", "active_errors")
    baud = top.whole("baud", 115200, (1200, 4_000_000))
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
    scale, homing = scale_of(sections, units, [0.0] * len(sections)), homing_of(sections)
    for section in sections:
        section.finish()
    properties = Properties(**{name: tuple(values) for name, values in asked.items()})
    driver = ODriveDriver(tuple(boards.values()), silence, error, properties)
    return Drives(driver, scale, home, homing)
