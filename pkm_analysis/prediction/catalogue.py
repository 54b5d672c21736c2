# SPDX-License-Identifier: Apache-2.0
"""Motors and gears from CSV tables with units in the header, as in `continuous [N m]`."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.prediction.drives import Gear, Motor

_TORQUE = {"N m": 1.0, "Nm": 1.0, "mN m": 1e-3, "mNm": 1e-3, "N": 1.0}
_SPEED = {"rad/s": 1.0, "rpm": math.pi / 30.0, "1/min": math.pi / 30.0, "deg/s": math.pi / 180.0, "m/s": 1.0}
_INERTIA = {"kg m^2": 1.0, "kgm2": 1.0, "kg cm^2": 1e-4, "g cm^2": 1e-7, "kg": 1.0}
_PURE = {"": 1.0, "1": 1.0}
_RATIO = {**_PURE, "rad/m": 1.0}
_MOTOR = {"continuous": _TORQUE, "peak": _TORQUE, "speed": _SPEED, "inertia": _INERTIA}
_GEAR = {
    "ratio": _RATIO,
    "efficiency": {**_PURE, "%": 0.01},
    "inertia": _INERTIA,
    "peak": _TORQUE,
    "speed": _SPEED,
}
_HEAD = re.compile(r"\s*(?P<name>[^\[\]]*?)\s*(?:\[(?P<unit>[^\[\]]*)\])?\s*")

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
