# SPDX-License-Identifier: Apache-2.0
"""Which motors and gears can drive a motion, and why the others cannot; tables of them.

The motor's torque accelerates its rotor and the gear, and carries the joint's load through the ratio: divided by the
gear's efficiency where the motor drives, times it where the load drives the motor. Tables are CSV with units in the
header, as in `continuous [N m]`.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.prediction.prediction import Prediction
from pkm_analysis.requirements.words import SCALES
from pkm_description.mechanism import Array

_TORQUE = {**SCALES["N m"], "N": 1.0}  # of linear motors, the unit of theirs
_SPEED = {**SCALES["rad/s"], "m/s": 1.0}
_INERTIA = {**SCALES["kg m^2"], "kg": 1.0}
_PURE = {"": 1.0, "1": 1.0}
_RATIO = {**_PURE, "rad/m": 1.0}
_MOTOR = {"continuous": _TORQUE, "peak": _TORQUE, "speed": _SPEED, "inertia": _INERTIA}
_GEAR = {
    "ratio": _RATIO,
    "efficiency": SCALES["1"],
    "inertia": _INERTIA,
    "peak": _TORQUE,
    "speed": _SPEED,
}
_HEAD = re.compile(r"\s*(?P<name>[^\[\]]*?)\s*(?:\[(?P<unit>[^\[\]]*)\])?\s*")


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


Entry = TypeVar("Entry", Motor, Gear)


def read_motors(path: str | Path) -> list[Motor]:
    """Motors of a table with columns name, continuous, peak, speed, inertia; `AnalysisError` names line and column."""
    return _read(Path(path), Motor, _MOTOR, tuple(_MOTOR))


def read_gears(path: str | Path) -> list[Gear]:
    """Gears: name, ratio, optionally efficiency, inertia, peak, speed; `AnalysisError` names line and column."""
    return _read(Path(path), Gear, _GEAR, ("ratio",))


def _read(
    path: Path, kind: Callable[..., Entry], columns: dict[str, dict[str, float]], needed: tuple[str, ...]
) -> list[Entry]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise AnalysisError(f"table {path}", str(error), "give a CSV file") from error
    rows = [(k, row) for k, row in enumerate(csv.reader(lines), 1) if any(row) and not row[0].lstrip().startswith("#")]
    if len(rows) < 2:
        raise AnalysisError(
            f"table {path}", "it has no entries", f"write a header, name, {', '.join(columns)}, and rows"
        )
    factors = _header(path, rows[0][1], columns, needed)
    found = []
    for line, row in rows[1:]:
        about = f"{path.name}, line {line}"
        if len(row) != len(factors):
            raise AnalysisError(about, f"it has {len(row)} cells, the header {len(factors)}", "give a cell per column")
        entry: dict[str, object] = {}
        for (name, factor), cell in zip(factors, row, strict=True):
            entry[name] = cell.strip() if name == "name" else _number(f"{about}, column {name}", cell) * factor
        found.append(kind(**entry))
    return found


def _header(
    path: Path, cells: list[str], columns: dict[str, dict[str, float]], needed: tuple[str, ...]
) -> list[tuple[str, float]]:
    found = []
    for cell in cells:
        match = _HEAD.fullmatch(cell)
        name, unit = (match["name"], match["unit"] or "") if match else (cell, "")
        about = f"{path.name}, column {name}"
        if name != "name" and name not in columns:
            raise AnalysisError(about, "there is none of that name", f"use name, {', '.join(columns)}")
        units = _PURE if name == "name" else columns[name]
        if unit not in units:
            known = ", ".join(f"[{one}]" for one in units if one)
            raise AnalysisError(about, f"it has the unit [{unit}]" if unit else "it has no unit", f"write {known}")
        found.append((name, units[unit]))
    missing = [name for name in ("name", *needed) if name not in [one for one, _ in found]]
    if missing:
        raise AnalysisError(path.name, f"it has no column {missing[0]}", "add it")
    return found


def _number(about: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise AnalysisError(about, f"{cell.strip()!r} is no number", "write one") from None
    if math.isnan(value):
        raise AnalysisError(about, "it is no number", "write one")
    return value
