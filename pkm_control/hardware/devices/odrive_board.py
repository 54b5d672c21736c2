# SPDX-License-Identifier: Apache-2.0
"""An ODrive with two axes at the other end of a line: positions that are followed, a switch, a hard stop, errors."""

from __future__ import annotations

import time

from pkm_control.hardware.devices.pseudo_terminal import SimulatedDevice
from pkm_control.hardware.drivers.odrive import CLOSED_LOOP, IDLE, _xor

_FASTEST = 20.0  # turns/s


class SimulatedAxis:
    """A motor that goes where it is told, at most to its stops; its encoder counts from where it stood at power-on."""

    def __init__(self) -> None:
        self.place = 0.0  # turns, of the world
        self.power_on = 0.0  # turns: what the encoder calls zero
        self.target = 0.0  # turns, of the encoder
        self.state = IDLE
        self.errors = 0
        self.stops = (-100.0, 100.0)  # turns, of the world
        self.switch_below = -100.0  # turns: closed there

    def step(self, dt: float) -> None:
        """Move towards the target.

        Args:
            dt: time that passes [s].
        """
        if self.state == CLOSED_LOOP:
            way = self.target + self.power_on - self.place
            self.place += max(-_FASTEST * dt, min(_FASTEST * dt, way))
            self.place = max(self.stops[0], min(self.stops[1], self.place))


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
                axis.state = IDLE if axis.errors else int(words[2])
            elif name == "current_state":
                return str(axis.state)
            elif name == "active_errors":
                return str(axis.errors)
            elif name == "min_endstop.endstop_state":
                return str(int(axis.place < axis.switch_below))
        return ""
