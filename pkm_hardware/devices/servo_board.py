# SPDX-License-Identifier: Apache-2.0
"""The board of hobby servos, as its sketch behaves: pulses, acknowledgements, watchdog."""

from __future__ import annotations

import time

from pkm_hardware.devices.pseudo_terminal import SimulatedDevice
from pkm_hardware.drivers.checked_lines import PROTOCOL, with_checksum, without_checksum


class SimulatedServoBoard(SimulatedDevice):
    """Servos that follow their pulses at once.
    `pulses` [us] of every channel, 0: off; `history`: (time [s], pulses) of every line that has some; `brake_open`.
    """

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.pulses = [0] * channels
        self.history: list[tuple[float, tuple[int, ...]]] = []
        self.brake_open = False
        self.watchdog = 0.5  # s
        self.holds = False
        self.bites = 0  # how often the watchdog has
        self._heard = time.monotonic()
        self._buffer = b""
        self._to_say = b""

    def say(self, text: str) -> None:
        """Send a text unasked, such as an error; the checksum is added."""
        self._to_say += with_checksum(text)

    def receive(self, data: bytes) -> bytes:
        """Answer whole lines."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return b"".join(self._answer(line) for line in lines if line)

    def pass_time(self) -> bytes:
        """Switch the servos off where the computer is silent; return what there is to send."""
        if any(self.pulses) and time.monotonic() - self._heard > self.watchdog:
            self.bites += 1
            self._heard = time.monotonic()
            if not self.holds:
                self.pulses = [0] * len(self.pulses)
                self.brake_open = False
            self.say("E watchdog: the computer was silent")
        said, self._to_say = self._to_say, b""
        return said

    def _answer(self, line: bytes) -> bytes:
        text = without_checksum(line)
        if text is None:
            return with_checksum("E checksum")
        word, *rest = text.split() or [""]
        try:
            return self._obey(word, rest)
        except (ValueError, IndexError):  # another line, by a checksum that happens to fit
            return with_checksum("E word")

    def _obey(self, word: str, rest: list[str]) -> bytes:
        if word == "H":
            return with_checksum(f"H pkm {PROTOCOL} {len(self.pulses)}")
        if word == "W":
            self.watchdog, self.holds = int(rest[0]) / 1e3, rest[1] == "1"
        elif word == "B":
            self.brake_open = rest[0] == "1"
        elif word == "R":
            self.pulses = [0] * len(self.pulses)
        elif word == "P":
            self._heard = time.monotonic()
            for channel, pulse in enumerate(rest[1:]):
                self.pulses[channel] = int(pulse)
            if any(self.pulses):
                self.history.append((self._heard, tuple(self.pulses)))
            return with_checksum(f"A {rest[0]}")
        else:
            return with_checksum("E word")
        return with_checksum(f"A {word}")
