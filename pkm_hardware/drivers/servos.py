# SPDX-License-Identifier: Apache-2.0
"""Hobby servos on a board that speaks a plain line protocol (docs/hardware.md); config/servo_board has its sketch.

Lines have a checksum (`checked_lines`). The computer sends the pulse of each channel; the board acknowledges each such
line by its number.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pkm_description.mechanism import Array, Mechanism
from pkm_hardware.devices import SimulatedServoBoard
from pkm_hardware.drivers.driver import TELLING, DeviceError, Driver, Reading, output_name
from pkm_hardware.drivers.serial_line import PROTOCOL, SerialLine, with_checksum, without_checksum
from pkm_hardware.machine_file import Drives, MachineFile, Scale, scale_of
from pkm_runtime.yaml_section import Section

_GREETING_PATIENCE = 4.0  # s: a board that resets when its port is opened takes two of them
_GREETING_EVERY = 0.25  # s
_MOST_TURN, _MOST_STROKE = 50.0, 5.0  # rad, m: winch servos take up to eight turns
_ANSWER = 0.05  # s, beside the time that the bytes take, for the board to say that the servos are off
HIGHEST_CHANNEL = 31
_NUMBERS = 256  # acknowledgements count modulo that
RELEASE, HOLD = "release", "hold"


@dataclass(frozen=True)
class ServoOutput:
    """A channel that belongs to no actuator, such as a gripper's servo: its pulses [us] for the values 0 and 1."""

    channel: int
    off: float
    on: float

    def pulse(self, value: float) -> int:
        """Pulse [us] of a value, which is clipped to 0 to 1."""
        return round(self.off + min(max(value, 0.0), 1.0) * (self.on - self.off))


@dataclass(eq=False)
class ServoDriver(Driver):
    """Sends pulses, reads acknowledgements. Servos report no position: the reading is the command. `channels` of the
    board, one per actuator, with their shortest and longest `pulses` (n_actuated, 2) [us]. `silence` of the board that
    is a fault [s]; `watchdog`: silence after which the board does `on_silence` by itself [s], `release` or `hold`.
    `outputs` have no pulses until they are set.
    """

    line: SerialLine
    channels: tuple[int, ...]
    pulses: Array
    silence: float = 0.3
    watchdog: float = 0.5
    on_silence: str = RELEASE
    outputs: Mapping[str, ServoOutput] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self.resting = "the servos hold their last pulses" if self.on_silence == HOLD else ""
        self._set: dict[int, int] = {}  # pulses of the outputs, by channel
        self._highest = max((*self.channels, *(output.channel for output in self.outputs.values())))
        self._positions: Array | None = None  # last told
        self._on = self._brake_heard = False  # that the brake is to be open
        self._number = 0
        self._unanswered: float | None = None  # when the oldest line was sent that has no acknowledgement, s
        self._asked = 0.0  # when the newest was sent, s
        self._garbled = 0

    def simulate(self, positions: Array) -> None:
        """A board whose servos follow their pulses at once."""
        self.line.port = SimulatedServoBoard(self._highest + 1).switch_on()

    def open(self, home: Array) -> None:
        """Open the port, wait for the board's greeting, and switch the servos off, where they were told to be last."""
        self._positions = home.copy() if self._positions is None else self._positions
        self._on, self._unanswered, self._garbled, self.notice = False, None, 0, ""
        self.line.open()
        until = time.monotonic() + _GREETING_PATIENCE
        channels = None
        while channels is None:
            self._require_wanted()
            if time.monotonic() > until:
                seen = f", only {self._garbled} lines that make no sense" if self._garbled else ""
                raise DeviceError(
                    f"no servo board answers on {self.line.port}{seen}: is the sketch on it, and "
                    f"{self.line.baud} its baud rate?"
                )
            self.line.write(with_checksum("H"))
            channels = self._greeting(time.monotonic() + _GREETING_EVERY)
        if self._highest >= channels:
            raise DeviceError(f"{self.line.port}: the board has {channels} channels, no {self._highest}")
        self._garbled = 0
        self.disable()
        self._set_watchdog()

    def _set_watchdog(self) -> None:
        # until the board has taken it: it would go on with that of another program
        line = with_checksum(f"W {round(1e3 * self.watchdog)} {int(self.on_silence == HOLD)}")
        until = time.monotonic() + TELLING
        while True:
            self.line.write(line)
            if self._answered(line, lambda heard: "A W" in heard):
                return
            self._require_wanted()
            if time.monotonic() > until:
                raise DeviceError(f"the servo board on {self.line.port} does not confirm its watchdog")

    def _greeting(self, until: float) -> int | None:
        while (left := until - time.monotonic()) > 0.0:
            for line in self.line.lines(left):
                words = (without_checksum(line) or "").split()
                if len(words) == 4 and words[:2] == ["H", "pkm"] and words[2].isdigit() and words[3].isdigit():
                    if int(words[2]) != PROTOCOL:
                        raise DeviceError(f"the board speaks protocol {words[2]}, not {PROTOCOL}: reload the sketch")
                    return int(words[3])
                self._garbled += bool(line) and not words
        return None

    def close(self) -> None:
        """Close the port."""
        self.line.close()

    @property
    def closed(self) -> bool:
        """Whether the port is closed."""
        return not self.line.is_open

    def enable(self, positions: Array) -> None:
        """Servos on, and the brake open, where the board has one; they go to the positions at once."""
        self._require_wanted()
        self._on, self._brake_heard = True, False
        self._send(positions)

    def disable(self) -> None:
        """The brake closed, pulses off; most servos are limp then."""
        self._on, self._unanswered = False, None
        until = time.monotonic() + TELLING
        why, times = "it does not confirm that its torque is off", 1
        while True:
            try:
                if self._is_off(times):
                    return
            except DeviceError as error:
                why = str(error)
            if time.monotonic() > until or not self.line.is_open:
                break
            times = 10  # short lines, of which some arrive where much is garbled
        named = ", ".join(f"channel {channel}" for channel in self.channels)
        raise DeviceError(f"the servo board on {self.line.port} may still drive {named}: {why}")

    def _is_off(self, times: int) -> bool:
        # acknowledgements have no number but those of pulses, which ask for none either: what comes between two counts
        first, last = self._next_number(), self._next_number()
        none = " ".join("0" * (self._highest + 1))
        words = ["B 0", "R"] * times + [f"P {first} {none}", "B 0", "R", f"P {last} {none}"]
        data = b"\n" + b"".join(map(with_checksum, words))  # ends a line that was left in the middle
        self.line.write(data)
        wanted = [f"A {first}", "A B", "A R", f"A {last}"]
        return self._answered(data, lambda heard: any(heard[k : k + 4] == wanted for k in range(len(heard) - 3)))

    def _answered(self, data: bytes, enough: Callable[[list[str]], bool]) -> bool:
        heard: list[str] = []
        until = time.monotonic() + _ANSWER + 2.0 * 10.0 * len(data) / self.line.baud
        while (left := until - time.monotonic()) > 0.0:
            texts = [without_checksum(line) or "" for line in self.line.lines(left)]
            heard += [text for text in texts if not text.startswith("E watchdog")]
            if enough(heard):
                return True
        return False

    def _next_number(self) -> int:
        self._number = (self._number + 1) % _NUMBERS
        return self._number

    def output_problem(self, name: str) -> str:
        """Why an output cannot be set: the machine's file does not name it."""
        if name in self.outputs:
            return ""
        return f"the machine has no output '{name}'; its file names {', '.join(self.outputs) or 'none'}"

    def set_output(self, name: str, value: float) -> None:
        """Give an output the pulse of a value, 0 to 1, with the next exchange."""
        output = self.outputs[name]
        self._set[output.channel] = output.pulse(value)

    def exchange(self, positions: Array | None) -> Reading:
        """Send the pulses of positions [us] and read the board's lines; returns the command."""
        for line in self.line.lines():
            self._hear(line)
        # by the newest question: a stall of this computer is no silence of the board
        if self._on and self._unanswered is not None and self._asked - self._unanswered > self.silence:
            seen = f"; {self._garbled} lines made no sense: look at baud rate and ground" if self._garbled else ""
            raise DeviceError(
                f"the servo board on {self.line.port} has not answered for {self.silence:g} s"
                f"{seen or ': has it power?'}"
            )
        if self._positions is None:
            raise DeviceError(f"{self.line.port} has not been opened")
        if self._on:
            self._send(self._positions if positions is None else positions)
        return Reading(self._positions.copy(), time.monotonic())

    def _send(self, positions: Array) -> None:
        pulses = np.clip(positions, self.pulses[:, 0], self.pulses[:, 1])
        self._positions = pulses
        row = [0] * (self._highest + 1)
        for channel, pulse in self._set.items():
            row[channel] = pulse
        for channel, pulse in zip(self.channels, pulses, strict=True):
            row[channel] = round(float(pulse))
        self.line.write(with_checksum(f"P {self._next_number()} {' '.join(map(str, row))}"))
        if not self._brake_heard:
            self.line.write(with_checksum("B 1"))
        self._asked = time.monotonic()
        if self._unanswered is None:
            self._unanswered = self._asked

    def _hear(self, line: bytes) -> None:
        text = without_checksum(line)
        if text is None:
            self._garbled += bool(line)
            self.notice = f"{self._garbled} lines from the servo board made no sense" if self._garbled else ""
            return
        word, _, rest = text.partition(" ")
        if word == "A":
            self._unanswered = None
            self._brake_heard |= rest == "B"
        elif text == "E checksum":
            self._garbled += 1
            self.notice = f"the servo board got {self._garbled} lines that made no sense"
        elif word == "E":
            raise DeviceError(f"the servo board on {self.line.port} reports: {rest}")


def drives(file: MachineFile, mechanism: Mechanism, home: Array) -> Drives:
    """Driver and scale of hobby servos by a machine's file; `home` (n_actuated,) [rad or m]."""
    top, sections = file.section, file.of(mechanism)
    line = SerialLine(top.text("port"), top.whole("baud", 115200, (1200, 4_000_000)))
    silence = top.number("silence", 0.3, (0.01, 60.0))
    watchdog = top.number("watchdog", 0.5, (0.02, 60.0))
    on_silence = top.text("on_silence", RELEASE, (RELEASE, HOLD))
    outputs = _outputs_of(top)
    top.finish()
    channels: list[int] = []
    for section in sections:
        channel = section.whole("channel", bounds=(0, HIGHEST_CHANNEL))
        if channel in channels:
            raise section.wrong("channel", f"{channel} is another actuator's too", "give each its own")
        channels.append(channel)
    pulses, scale = _pulses_and_scale(sections, mechanism)
    for section, pulse, (shortest, longest) in zip(sections, scale.to_device(home), pulses, strict=True):
        section.finish()
        if not shortest <= pulse <= longest:
            problem = f"home takes a pulse of {pulse:.0f} us, outside {shortest:g} to {longest:g}"
            raise section.wrong("offset", problem, "mend sign or offset")
    for name, output in outputs.items():
        if output.channel in channels:
            raise top.wrong(f"outputs.{name}.channel", f"{output.channel} is another's too", "give each its own")
        channels.append(output.channel)
    actuated = tuple(channels[: len(sections)])
    driver = ServoDriver(line, actuated, pulses, silence, watchdog, on_silence, outputs)
    return Drives(driver, scale, home, axes=tuple(f"channel {channel}" for channel in actuated), unit="us")


def ends(file: MachineFile, mechanism: Mechanism) -> tuple[Array, Array]:
    """Lowest and highest actuator positions (n_actuated,) [rad or m] at the pulse limits, which clip commands."""
    pulses, scale = _pulses_and_scale(file.of(mechanism), mechanism)
    both = np.stack([scale.to_joints(pulses[:, 0]), scale.to_joints(pulses[:, 1])])
    return both.min(axis=0), both.max(axis=0)


def _pulses_and_scale(sections: Sequence[Section], mechanism: Mechanism) -> tuple[Array, Scale]:
    """Shortest and longest pulse of each servo (n_actuated, 2) [us], and the scale of joints to pulses."""
    pulses: list[tuple[float, float]] = []
    units: list[float] = []
    zero: list[float] = []
    for section, name in zip(sections, mechanism.actuated_joints, strict=True):
        shortest = section.number("pulse_min", 1000.0, (200.0, 3000.0))
        longest = section.number("pulse_max", 2000.0, (200.0, 3000.0))
        if not shortest < longest:
            raise section.wrong("pulse_min", f"{shortest:g} is not below pulse_max", "give pulse_min < pulse_max [us]")
        pulses.append((shortest, longest))
        zero.append(section.number("pulse_zero", 1500.0, (shortest, longest)))
        units.append(section.number("pulse_per_unit", bounds=(1e-3, 1e7)))
        _check_reach(section, (longest - shortest) / units[-1], units[-1], mechanism.joint_named[name].unit)
    return np.array(pulses), scale_of(sections, mechanism, units, zero)


def _check_reach(section: Section, reach: float, per_unit: float, unit: str) -> None:
    """Refuse pulses that no servo follows: written per degree or mm, they move joints by next to nothing."""
    most, small, factor = (_MOST_TURN, "degree", 180.0 / math.pi) if unit == "rad" else (_MOST_STROKE, "mm", 1000.0)
    if reach > most:
        problem = f"{per_unit:g} us for each {unit} lets pulses reach over {reach:.3g} {unit}: no servo does"
        remedy = f"it is for each {unit}: {per_unit:g} us for each {small} are {per_unit * factor:.4g}"
        raise section.wrong("pulse_per_unit", problem, remedy)


def _outputs_of(top: Section) -> dict[str, ServoOutput]:
    found = {}
    for name, values in top.mapping("outputs").items():
        if not output_name(str(name)):
            raise top.wrong("outputs", f"'{name}' is not a valid output name", "write letters, digits or any of _./-")
        one = Section(top.source, f"outputs.{name}", values)
        channel = one.whole("channel", bounds=(0, HIGHEST_CHANNEL))
        off, on = (one.number(key, bounds=(200.0, 3000.0)) for key in ("pulse_off", "pulse_on"))
        one.finish()
        found[str(name)] = ServoOutput(channel, off, on)
    return found
