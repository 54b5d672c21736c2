# SPDX-License-Identifier: Apache-2.0
"""The settings of a robot's loop and its laws, as plain data that another process can build it from.

Nothing heavy is imported, so that launch files and commands may read it; `robot_loop.py` makes the loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pkm_hardware.machine_kinds import LOOPBACK, SIMULATED
from pkm_hardware.realism import DELAY, RESERVE, USUAL_RESERVE

EFFORT_LAWS = COMPUTED_TORQUE, PD_GRAVITY, ADAPTIVE = "computed_torque", "pd_gravity", "adaptive"
FORCE_LAWS = IMPEDANCE, ADMITTANCE, HYBRID = "impedance", "admittance", "hybrid"  # for what is touched
POSITION = "position"  # for drives that take positions
LAWS = (*EFFORT_LAWS, *FORCE_LAWS, POSITION)  # the first is the default
NATURAL_FREQUENCY = 120.0  # rad/s, of the closed loop's tracking error
DAMPING = 1.0  # of the same; 1 is critical
PHASE_MARGIN = math.radians(30.0)  # of the loop over its delay; below, the error rings, and a wrong mass is too much


def highest_natural_frequency(period: float, damping: float = DAMPING, delay: float = 0.5) -> float:
    """Natural frequency [rad/s] up to which a loop of a period [s] keeps `PHASE_MARGIN`; 0 where there is none.

    The loop (2 zeta omega s + omega^2) / s^2 crosses one at omega_c = omega sqrt(2 zeta^2 + sqrt(4 zeta^4 + 1)), where
    its phase is atan(2 zeta omega_c / omega) from -180 degrees; a delay tau takes omega_c tau of that away. Below a
    damping of 0.3 the margin is not there even without delay, which lasts from a reading to the middle of the time in
    which its efforts act [periods]: 0.5 where they act at once.
    """
    crossing = math.sqrt(2.0 * damping**2 + math.sqrt(4.0 * damping**4 + 1.0))
    return max(0.0, (math.atan(2.0 * damping * crossing) - PHASE_MARGIN) / (crossing * delay * period))


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
    hold_time: float = 0.5
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
    """The settings of a simulated robot, explained by the options of `pkm simulate` of the same names.
    `rate` is in Hz, `natural_frequency` in rad/s, `hidden_payload` in kg.
    """

    rate: float = 1000.0
    controller: str = COMPUTED_TORQUE
    natural_frequency: float = NATURAL_FREQUENCY
    damping: float = DAMPING
    realistic: bool = False
    hidden_payload: float = 0.0
    force_file: str = ""
    keep_out_file: str = ""
    conveyor_file: str = ""
    tool_file: str = ""
    compliance_file: str = ""

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
