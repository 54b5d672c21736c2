# SPDX-License-Identifier: Apache-2.0
"""What a motion requires of a robot: efforts, speeds, power, energy, loads; and which motors and gears provide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_runtime.late import late

if TYPE_CHECKING:
    from pkm_analysis.prediction.motors_and_gears import (
        DIRECT,
        Choice,
        Gear,
        Motor,
        choose_drives,
        read_gears,
        read_motors,
    )
    from pkm_analysis.prediction.prediction import Exceeded, Prediction, predict

__all__ = [
    "DIRECT",
    "Choice",
    "Exceeded",
    "Gear",
    "Motor",
    "Prediction",
    "choose_drives",
    "predict",
    "read_gears",
    "read_motors",
]

__getattr__ = late(
    __name__,
    {
        "pkm_analysis.prediction.motors_and_gears": (
            "Choice",
            "DIRECT",
            "Gear",
            "Motor",
            "choose_drives",
            "read_gears",
            "read_motors",
        ),
        "pkm_analysis.prediction.prediction": ("Exceeded", "Prediction", "predict"),
    },
)
