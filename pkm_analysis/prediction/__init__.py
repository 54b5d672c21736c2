# SPDX-License-Identifier: Apache-2.0
"""What a motion asks of a robot: efforts, speeds, power, energy and loads; and which motors and gears provide it."""

from pkm_analysis.prediction.drives import Choice, Gear, Motor, choose_drives
from pkm_analysis.prediction.performance import Exceeded, Prediction, predict

__all__ = ["Choice", "Exceeded", "Gear", "Motor", "Prediction", "choose_drives", "predict"]
