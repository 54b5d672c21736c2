# SPDX-License-Identifier: Apache-2.0
"""Values and ranges of task coordinates as people write them: x=0.1, yaw=10deg, x=-300mm:300mm, yaw=-10:10deg."""

from __future__ import annotations

import re
from math import pi
from typing import TYPE_CHECKING

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.requirements.units import in_si

if TYPE_CHECKING:
    from pkm_analysis.domain import Coordinate, Range, TaskCoordinates

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
QUANTITY = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[A-Za-z%]*)")
FAR = 50.0  # of the robot's size: a larger length without a unit is not in metres


def read_value(coordinates: TaskCoordinates, word: str) -> tuple[Coordinate, float]:
    """A coordinate and its value [m, rad], from NAME=VALUE such as yaw=10deg; SI units by default.

    `AnalysisError` where unreadable, or implausible in m and rad for a robot of this size.
    """
    c, (low, high) = read_range(coordinates, word, optional=True)
    if low != high:
        raise AnalysisError(f"value '{word}'", "a range is no value", "give each coordinate one")
    return c, low


def read_range(coordinates: TaskCoordinates, word: str, optional: bool = False) -> tuple[Coordinate, Range]:
    """A coordinate and its range [m, rad], from NAME=LOWER:UPPER; one unit at the upper end is of both.

    With `optional` one value may stand for both ends. Errors as of `read_value`, or for an empty range.
    """
    about = f"range '{word}'"
    name, equals, text = word.partition("=")
    ends = [end.strip() for end in text.split(":")]
    if not equals or not all(ends) or len(ends) > 2 or (len(ends) == 1 and not optional):
        written = "NAME=VALUE or NAME=LOWER:UPPER" if optional else "NAME=LOWER:UPPER"
        raise AnalysisError(about, "it cannot be read", f"write {written}, such as x=-0.1:0.1 or yaw=-10:10deg")
    c = coordinates.find(name.strip())
    forms = []
    for end in ends:
        form = QUANTITY.fullmatch(end)
        if form is None:
            raise AnalysisError(about, f"{end!r} is no number", "write one, with or without a unit")
        forms.append(form)
    unit = forms[-1]["unit"]
    values = [_in_si(coordinates, c, float(form["number"]), form["unit"] or unit, about) for form in forms]
    low, high = values[0], values[-1]
    if low > high:
        raise AnalysisError(about, "it is empty", "give the lower end first")
    return c, (low, high)


def _in_si(coordinates: TaskCoordinates, c: Coordinate, number: float, unit: str, about: str) -> float:
    value = in_si(number, unit or c.unit, c.unit, about)
    if not unit and c.unit == "rad" and abs(number) > 2.0 * pi:
        raise AnalysisError(
            about, f"{number:g} rad is more than a turn", f"write {number:g}deg, or {number:g}rad if that is meant"
        )
    size = coordinates.kinematics.engine.size
    if not unit and c.unit == "m" and abs(number) > FAR * size:
        problem = f"{number:g} m is far from a robot of {size:.2g} m"
        raise AnalysisError(about, problem, f"write {number:g}mm, or {number:g}m if that is meant")
    return value
