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

IDLE, CLOSED_LOOP = 1, 8  # states of an axis
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


class ODriveDriver(Driver):
    """Positions out in turns, positions and velocities in.

    Args:
        boards: with their axes.
        n: number of actuators.
        silence: of a board that is a fault [s].
        error: name of the property of an axis that is 0 while all is well.
        switches: property of the reference switch of each actuator, empty where there is none.
    """

    def __init__(
        self, boards: Sequence[Board], n: int, silence: float, error: str, switches: Sequence[str] = ()
    ) -> None:
        self._boards = boards
        self._silence = silence
        self._error = error
        self._switch_names = switches
        self._positions = np.full(n, np.nan)
        self._velocities = np.zeros(n)
        self._switches = np.zeros(n, dtype=bool)

    def open(self, home: Array) -> None:
        """Open the lines, clear old errors, and read where every axis is."""
        self._positions = np.full(len(home), np.nan)
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
        for board in self._boards:
            for actuator, axis in board.axes:
                board.line.write(with_checksum(f"p {axis} {positions[actuator]:.6f} 0 0"))
            self._set_state(board, CLOSED_LOOP)
        for board in self._boards:
            for _, axis in board.axes:
                until = time.monotonic() + _ARMING
                while self._asked(board, f"r axis{axis}.current_state", until) != str(CLOSED_LOOP):
                    if time.monotonic() > until:
                        answer = self._asked(board, f"r axis{axis}.{self._error}", until + self._silence)
                        problem = f"does not enter closed loop ({self._error} {answer}): is it calibrated?"
                        raise DeviceError(f"{board.line.port}: axis{axis} {problem}")

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
                rows = (f"p {axis} {positions[actuator]:.6f} 0 0" for actuator, axis in board.axes)
                board.line.write(b"".join(with_checksum(row) for row in rows))
        self._look()
        garbled = sum(board.garbled for board in self._boards)
        self.notice = f"{garbled} answers of the ODrives made no sense" if garbled else ""
        switches = self._switches.copy() if any(self._switch_names) else None
        return Reading(self._positions.copy(), self._velocities.copy(), switches=switches)

    def _look(self) -> None:
        """Ask every axis where it is, and one of each board whether all is well."""
        for board in self._boards:
            if board.since is not None and time.monotonic() - board.since > self._silence:
                seen = f"; {board.garbled} answers made no sense" if board.garbled else ""
                raise DeviceError(f"the ODrive on {board.line.port} has not answered for {self._silence:g} s{seen}")
            for actuator, axis in board.axes:
                answer = board.ask(f"f {axis}", _PATIENCE)
                if answer is not None:
                    self._positions[actuator], self._velocities[actuator] = self._numbers(board, answer)
                name = self._switch_names[actuator] if self._switch_names else ""
                state = board.ask(f"r {name}", _PATIENCE) if name else None
                if state is not None:
                    self._switches[actuator] = state in ("1", "True", "true")
            _, axis = board.axes[board.turn % len(board.axes)]
            error = board.ask(f"r axis{axis}.{self._error}", _PATIENCE)
            if error is None:
                continue
            board.turn += 1
            if error != "0":
                raise DeviceError(f"the ODrive on {board.line.port} reports: axis{axis}.{self._error} is {error}")

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
    switches: list[str] = []
    for actuator, section in enumerate(sections):
        port = section.text("port")
        board = boards.setdefault(port, Board(SerialLine(port, baud), []))
        axis = section.whole("axis", 0, (0, 1))
        if axis in (number for _, number in board.axes):
            raise section.wrong("axis", f"axis{axis} on {port} is another actuator's too", "give each its own")
        board.axes.append((actuator, axis))
        units.append(section.number("gear", 1.0, (1e-6, 1e6)) / (2.0 * math.pi))
        switches.append(section.text("switch", "-").replace("-", ""))
    scale, homing = scale_of(sections, units, [0.0] * len(sections)), homing_of(sections)
    for section in sections:
        section.finish()
    driver = ODriveDriver(tuple(boards.values()), len(sections), silence, error, switches)
    return Drives(driver, scale, home, homing)
