# SPDX-License-Identifier: Apache-2.0
"""The settings of a robot's loop, as plain data that another process can build it from.

Nothing heavy is imported, so that launch files and commands may read it; `robot_loop.py` makes the loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pkm_control.operator_interface import (
    COMPUTED_TORQUE,
    DAMPING,
    FORCE_LAWS,
    LAWS,
    NATURAL_FREQUENCY,
    POSITION,
    highest_natural_frequency,
)
from pkm_hardware.machine_kinds import DELAY, LOOPBACK, RESERVE, SIMULATED, USUAL_RESERVE

STALE_PERIODS = 5  # control periods without a new reading after which efforts stop
Fallback = Literal["zero", "gravity"]


@dataclass(frozen=True)
class MachineSettings:
    """A machine, as the parameters of the hardware node describe it; `hidden_payload` in kg, `command_timeout` in s."""

    kind: str = SIMULATED
    file: str = ""
    simulate: bool = False  # the device behind the driver
    force_file: str = ""
    command_timeout: float = 0.02
    encoder: tuple[float, float, float] | None = None  # resolution, and noises, of an `Encoder`
    realistic: bool = False
    hidden_payload: float = 0.0
    touches: bool = False  # there are solids and a force-torque sensor, without a force file, too


@dataclass(frozen=True)
class ControllerSettings:
    """A controller, as the parameters of its node describe it: `rate` in Hz, `natural_frequency` in rad/s,
    `stale_periods` and `delay` (from a reading to the beginning of the time in which its command acts) in periods,
    times in s, `following_error` in m.
    """

    law: str = LAWS[0]
    rate: float = 1000.0
    natural_frequency: float = NATURAL_FREQUENCY
    damping: float = DAMPING
    delay: float = 0.0
    stale_periods: int = 10
    fallback: Fallback = "gravity"
    hold_time: float = 0.03
    abort_after: float = 1.0
    following_error: float = 0.0
    machine_file: str = ""
    force_file: str = ""
    keep_out_file: str = ""
    conveyor_file: str = ""
    compliance_file: str = ""

    @property
    def period(self) -> float:
        """Of the loop [s]."""
        return 1.0 / self.rate

    def usable_frequency(self, asked: float, damping: float, rate: float) -> float:
        """The natural frequency [rad/s], at most `asked`, that readings at a rate [Hz] permit."""
        if self.law == POSITION:  # which has no gains
            return asked
        return min(asked, highest_natural_frequency(1.0 / rate, damping, 0.5 + self.delay))


_FILES = "compliance_file", "force_file", "keep_out_file", "conveyor_file"  # of a controller


@dataclass(frozen=True)
class Setup:
    """The settings of a simulated robot, explained by the options of `pkm simulate` of the same names."""

    rate: float = 1000.0  # Hz
    controller: str = COMPUTED_TORQUE
    natural_frequency: float = NATURAL_FREQUENCY  # rad/s
    damping: float = DAMPING
    realistic: bool = False
    hidden_payload: float = 0.0  # kg
    force_file: str = ""
    keep_out_file: str = ""
    conveyor_file: str = ""
    tool_file: str = ""
    compliance_file: str = ""

    def __post_init__(self) -> None:
        for name, above in (("rate", True), ("natural_frequency", True), ("damping", False), ("hidden_payload", False)):
            value = getattr(self, name)
            if not (0.0 < value < math.inf or (value == 0.0 and not above)):
                raise ValueError(f"{name} is {value}; give a number greater than zero{'' if above else ', or zero'}")

    @property
    def delay(self) -> float:
        """From a reading to the beginning of the time in which its command acts [periods]."""
        return float(DELAY) if self.realistic else 0.0

    @property
    def reserve(self) -> float:
        """Share of efforts and speeds that plans leave to the controller."""
        return RESERVE if self.realistic else USUAL_RESERVE

    @property
    def highest_frequency(self) -> float:
        """Natural frequency that rate and delay permit [rad/s]."""
        return highest_natural_frequency(1.0 / self.rate, self.damping, 0.5 + self.delay)

    @property
    def machine(self) -> MachineSettings:
        """The machine: with the law `position` a loopback, whose readings are its commands."""
        return MachineSettings(
            LOOPBACK if self.controller == POSITION else SIMULATED,
            force_file=self.force_file,
            command_timeout=math.inf,
            realistic=self.realistic,
            hidden_payload=self.hidden_payload,
            touches=self.controller in FORCE_LAWS,
        )

    @property
    def control(self) -> ControllerSettings:
        """The controller."""
        return ControllerSettings(
            self.controller,
            self.rate,
            self.natural_frequency,
            self.damping,
            self.delay,
            STALE_PERIODS,
            **{name: getattr(self, name) for name in _FILES},
        )
