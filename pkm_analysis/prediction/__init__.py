# SPDX-License-Identifier: Apache-2.0
"""What a motion requires of a robot: efforts, speeds, power, energy, loads; and which motors and gears provide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_analysis.late import late

if TYPE_CHECKING:
    from pkm_analysis.prediction.catalogue import read_gears, read_motors
    from pkm_analysis.prediction.drives import DIRECT, Choice, Gear, Motor, choose_drives
    from pkm_analysis.prediction.performance import Exceeded, Prediction, predict

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
        "DIRECT": "pkm_analysis.prediction.drives",
        "read_gears": "pkm_analysis.prediction.catalogue",
        "read_motors": "pkm_analysis.prediction.catalogue",
        "Choice": "pkm_analysis.prediction.drives",
        "Exceeded": "pkm_analysis.prediction.performance",
        "Gear": "pkm_analysis.prediction.drives",
        "Motor": "pkm_analysis.prediction.drives",
        "Prediction": "pkm_analysis.prediction.performance",
        "choose_drives": "pkm_analysis.prediction.drives",
        "predict": "pkm_analysis.prediction.performance",
    },
)
