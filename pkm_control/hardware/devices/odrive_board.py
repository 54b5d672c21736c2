# SPDX-License-Identifier: Apache-2.0
"""An ODrive with two axes at the other end of a line: positions that are followed, a switch, a hard stop, errors."""

from __future__ import annotations

import time

from pkm_control.hardware.devices.pseudo_terminal import SimulatedDevice
from pkm_control.hardware.drivers.odrive import CLOSED_LOOP, IDLE, INDEX_SEARCH, _xor

_FASTEST = 20.0  # turns/s
_SEARCHING = 2.0  # turns/s, in the search for the index, upwards
_PUSH = 5.0  # A, of a motor that runs against a stop


class SimulatedAxis:
    """A motor that goes where it is told, at most to its stops; its encoder counts from where it stood at power-on.

    `index` [turns, of the world]: where its encoder has an index; until the ODrive has found that, there is no closed
    loop. None: an encoder without, which needs none.
    """

    def __init__(self) -> None:
        self.place = 0.0  # turns, of the world
        self.power_on = 0.0  # turns: what the encoder calls zero
        self.target = 0.0  # turns, of the encoder
        self.state = IDLE
        self.errors = 0
        self.stops = (-100.0, 100.0)  # turns, of the world
        self.switch_below = -100.0  # turns: closed there
        self.index: float | None = None
        self.index_found = False
        self.current = 0.0  # A

    def step(self, dt: float) -> None:
        """Move towards the target.

        Args:
            dt: time that passes [s].
        """
        self.current = 0.0
        if self.state == INDEX_SEARCH and self.index is not None:
            before, self.place = self.place, min(self.place + _SEARCHING * dt, self.stops[1])
            if before <= self.index <= self.place:
                self.power_on = self.index
                self.index_found, self.state = True, IDLE
        if self.state == CLOSED_LOOP:
            way = self.target + self.power_on - self.place
            self.place += max(-_FASTEST * dt, min(_FASTEST * dt, way))
            wanted = self.place
            self.place = max(self.stops[0], min(self.stops[1], self.place))
            self.current = _PUSH if wanted != self.place else 0.1

    def request(self, state: int) -> None:
        """Enter a state, where that is possible.

        Args:
            state: its number.
        """
        blind = self.index is not None and not self.index_found
        self.state = IDLE if self.errors or (blind and state == CLOSED_LOOP) else state


class SimulatedODrive(SimulatedDevice):
    """Answers with checksums where it is asked with them."""

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
            if not star or int(digits) != _xor(body):
                continue  # as the protocol has it: a wrong line is ignored
            answer = self._answer(body.decode().split())
            if answer:
                answers += f"{answer}*{_xor(answer.encode())}\r\n".encode()
        return answers

    def _answer(self, words: list[str]) -> str:
        if words[0] == "p":
            self.axes[int(words[1])].target = float(words[2])
        elif words[0] == "f":
            axis = self.axes[int(words[1])]
            return f"{axis.place - axis.power_on:f} 0.000000"
        elif words[0] == "sc":
            for axis in self.axes:
                axis.errors = 0
        elif words[0] in ("r", "w"):
            axis, name = self.axes[int(words[1][4])], words[1].partition(".")[2]
            if words[0] == "w" and name == "requested_state":
                axis.request(int(words[2]))
            elif name == "current_state":
                return str(axis.state)
            elif name == "active_errors":
                return str(axis.errors)
            elif name == "min_endstop.endstop_state":
                return str(int(axis.place < axis.switch_below))
            elif name == "encoder.index_found":
                return str(int(axis.index_found))
            elif name == "motor.current_control.Iq_measured":
                return f"{axis.current:f}"
        return ""
