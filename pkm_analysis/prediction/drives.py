# SPDX-License-Identifier: Apache-2.0
"""Which motors and gears can drive a motion, and why the others cannot.

The motor's torque accelerates its rotor and the gear, and carries the joint's load through the ratio: divided by the
gear's efficiency where the motor drives, times it where the load drives the motor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.prediction.performance import Prediction
from pkm_description.mechanism import Array


@dataclass(frozen=True)
class Motor:
    """A motor of a catalogue; for a linear one, forces, speeds and masses."""

    name: str
    continuous: float  # N m, permanent
    peak: float  # N m
    speed: float  # rad/s, at most
    inertia: float  # kg m^2, of the rotor

    def __post_init__(self) -> None:
        """Refuse invalid numbers."""
        if not (0.0 < self.continuous <= self.peak and self.speed > 0.0 and self.inertia >= 0.0):
            raise AnalysisError(f"motor '{self.name}'", "its numbers make none", "0 < continuous <= peak, speed > 0")


@dataclass(frozen=True)
class Gear:
    """A gear, a belt, or a screw."""

    name: str
    ratio: float  # motor speed by joint speed; of a screw, 2 pi by its lead [rad/m]
    efficiency: float = 1.0
    inertia: float = 0.0  # kg m^2, felt by the motor
    peak: float = np.inf  # N m or N, at the joint
    speed: float = np.inf  # rad/s, of the motor

    def __post_init__(self) -> None:
        """Refuse invalid numbers."""
        if not (self.ratio > 0.0 and 0.0 < self.efficiency <= 1.0 and self.inertia >= 0.0 and self.peak > 0.0):
            raise AnalysisError(f"gear '{self.name}'", "its numbers make none", "ratio > 0, 0 < efficiency <= 1")


DIRECT = Gear("direct", 1.0)


@dataclass(frozen=True)
class Choice:
    """A motor and a gear on an actuated joint, and the share of each of their limits that the motion uses."""

    joint: str
    motor: Motor
    gear: Gear
    uses: dict[str, float]  # by name of the limit; above 1 it is exceeded
    losses: float  # J in the gear, over the motion

    @property
    def ok(self) -> bool:
        """Whether no limit is exceeded."""
        return all(use <= 1.0 for use in self.uses.values())

    @property
    def reason(self) -> str:
        """Why it fails: the exceeded limits, the worst first; otherwise the limit it is nearest to."""
        worst = sorted(self.uses.items(), key=lambda item: -item[1])
        if self.ok:
            return f"{worst[0][0]} is used to {100.0 * worst[0][1]:.0f} %"
        return "; ".join(f"{name} exceeded by {100.0 * (use - 1.0):.0f} %" for name, use in worst if use > 1.0)

    def __str__(self) -> str:
        """A line of the table."""
        verdict = "fits" if self.ok else "fails"
        return f"{self.joint}: {self.motor.name} with {self.gear.name} {verdict}: {self.reason}"


def choose_drives(
    prediction: Prediction, motors: Iterable[Motor], gears: Iterable[Gear] = (DIRECT,), rest: float = 0.0
) -> list[Choice]:
    """Every motor with every gear on every actuated joint, joint by joint: fitting ones first, the least loaded first.

    Args:
        prediction: of the motion, with the friction of the joints.
        rest: time [s] after each run of the motion, in which the motors hold the last pose.
    """
    catalogue, ratios = list(motors), list(gears)
    found = []
    for k, joint in enumerate(prediction.names):
        table = [_choice(prediction, k, joint, motor, gear, rest) for motor in catalogue for gear in ratios]
        found += sorted(table, key=lambda choice: max(choice.uses.values()))
    return found


def _choice(p: Prediction, k: int, joint: str, motor: Motor, gear: Gear, rest: float) -> Choice:
    torque, lost = _motor_torque(p, k, motor, gear)
    held = abs(p.holding[k]) * gear.efficiency / gear.ratio  # friction in the gear helps to hold
    squares = p.rms(torque) ** 2 * p.duration + held**2 * rest
    speed = gear.ratio * np.abs(p.velocity[:, k]).max()
    uses = {
        "peak torque": float(np.abs(torque).max() / motor.peak),
        "continuous torque": float(np.sqrt(squares / (p.duration + rest)) / motor.continuous),
        "speed of the motor": float(speed / motor.speed),
        "peak torque of the gear": float(np.abs(p.load[:, k]).max() / gear.peak),
        "speed of the gear": float(speed / gear.speed),
    }
    return Choice(joint, motor, gear, uses, float(p.integral(lost)))


def _motor_torque(p: Prediction, k: int, motor: Motor, gear: Gear) -> tuple[Array, Array]:
    """Torque of the motor (n,) and power lost in the gear (n,)."""
    load, speed = p.load[:, k], p.velocity[:, k]
    driving = load * speed >= 0.0
    through = np.where(driving, load / gear.efficiency, load * gear.efficiency) / gear.ratio
    accelerating = (motor.inertia + gear.inertia) * gear.ratio * p.acceleration[:, k]
    return through + accelerating, (through * gear.ratio - load) * speed
