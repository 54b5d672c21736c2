# SPDX-License-Identifier: Apache-2.0
"""The settings of a robot that is simulated in this process. Nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass

from pkm_control.controllers.law_settings import (
    COMPUTED_TORQUE,
    DAMPING,
    NATURAL_FREQUENCY,
    highest_natural_frequency,
)
from pkm_hardware.realism import DELAY, RESERVE, USUAL_RESERVE


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
