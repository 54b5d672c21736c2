# SPDX-License-Identifier: Apache-2.0
"""A simulated ODrive with two axes on a line: positions that are followed, a switch, a hard stop, errors."""

from __future__ import annotations

import time

from pkm_hardware.devices.pseudo_terminal import SimulatedDevice
from pkm_hardware.drivers.checked_lines import CLOSED_LOOP, IDLE, INDEX_SEARCH, exclusive_or

_FASTEST = 20.0  # turns/s
_SEARCHING = 2.0  # turns/s, in the search for the index, upwards
_PUSH = 5.0  # A, of a motor that runs against a stop
_WATCHDOG_EXPIRED = 1 << 24  # as an axis reports it


class SimulatedAxis:
    """A motor that goes to its target, at most to its stops; its encoder counts from the position at power-on.

    `index` [turns, of the world]: the index of its encoder, without which the ODrive has no closed loop; None: an
    encoder that needs none. `jump` [turns]: error of its next reading. `values`: its settings, by the firmware's names.
    """

    def __init__(self) -> None:
        self.place = 0.0  # turns, of the world
        self.power_on = 0.0  # turns: what the encoder calls zero
        self.target = 0.0  # turns, of the encoder
        self.state = IDLE
        self.errors = 0
        self.stops = (-100.0, 100.0)  # turns, of the world
        self.switch_below, self.switch_above = -100.0, 1e9  # turns: closed there
        self.index: float | None = None
        self.index_found = False
        self.current = 0.0  # A
        self.jump = 0.0
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
            jump, axis.jump = axis.jump, 0.0
            return f"{axis.place - axis.power_on + jump:f} 0.000000"
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
