# SPDX-License-Identifier: Apache-2.0
"""Numbers with units, bounds, and values of task coordinates as people write them. No heavy imports."""

from __future__ import annotations

import re
from math import pi
from typing import TYPE_CHECKING, NamedTuple

from pkm_analysis.analysis_errors import AnalysisError

SCALES = {  # of an SI unit: units, and what each is of it
    "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6},
    "rad": {"rad": 1.0, "deg": pi / 180.0, "mrad": 1e-3},
    "N": {"N": 1.0, "kN": 1e3, "mN": 1e-3},
    "N m": {"N m": 1.0, "Nm": 1.0, "kN m": 1e3, "kNm": 1e3, "mN m": 1e-3, "mNm": 1e-3},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3},
    "rad/s": {"rad/s": 1.0, "deg/s": pi / 180.0, "rpm": pi / 30.0, "1/min": pi / 30.0},
    "kg m^2": {"kg m^2": 1.0, "kgm2": 1.0, "kg cm^2": 1e-4, "g cm^2": 1e-7},
    "Hz": {"Hz": 1.0, "kHz": 1e3},
    "1": {"1": 1.0, "": 1.0, "%": 0.01},
}


_QUANTITY = re.compile(r"(?P<number>[-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(?P<unit>.*)")
_BOUND = re.compile(r"\s*(?P<name>[\w:/.,-]+)\s*(?P<sense>[<>])=?\s*(?P<quantity>[-+]?[\d.].*?)\s*")
FAR = 50.0  # of the robot's size: a larger length without a unit is not in metres


def in_si(number: float, unit: str, wanted: str, about: str) -> float:
    """A number with the unit that somebody wrote, in SI units; `AnalysisError` for a missing or wrong one.

    `wanted` is the SI unit of the quantity, "1" where it has none; `about` the source text, for the message.
    """
    scales = SCALES.get(wanted, {wanted: 1.0})
    if unit in scales:
        return number * scales[unit]
    if not unit:
        raise AnalysisError(about, f"{number:g} has no unit", f"write '{number:g} {wanted}'")
    known = ", ".join(name for name in scales if name)
    raise AnalysisError(about, f"{unit!r} is no unit of it", f"give it in {known}")


if TYPE_CHECKING:
    from pkm_analysis.domain import Coordinate, Range, TaskCoordinates


class Bound(NamedTuple):
    """A bound on a named quantity."""

    name: str
    above: bool  # whether the quantity is to be above it
    number: float
    unit: str  # as written, empty without
    text: str

    @property
    def about(self) -> str:
        """What errors are about."""
        return f"requirement '{self.text}'"

    def in_si(self, wanted: str) -> float:
        """The bound in an SI unit, see `in_si`."""
        return in_si(self.number, self.unit, wanted, self.about)


def read_quantity(text: str, about: str, remedy: str = "write one, with or without a unit") -> tuple[float, str]:
    """A number and its unit, empty without, from a text such as "0.01 deg"; `AnalysisError` where there is none."""
    form = _QUANTITY.fullmatch(text)
    try:
        return float(form["number"] if form else ""), form["unit"] if form else ""
    except ValueError:
        raise AnalysisError(about, f"{text!r} is no number", remedy) from None


def read_bound(text: str, remedy: str = "write 'QUANTITY > NUMBER UNIT'") -> Bound:
    """A bound such as "type2 > 0.2 rad/m"; `AnalysisError` where it is unreadable."""
    form = _BOUND.fullmatch(text)
    if form is None:
        raise AnalysisError(f"requirement '{text}'", "it cannot be read", remedy)
    number, unit = read_quantity(form["quantity"], f"requirement '{text}'", "write one")
    return Bound(form["name"], form["sense"] == ">", number, unit, text)


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
    found = [read_quantity(end, about) for end in ends]
    values = [_in_si(coordinates, c, number, unit or found[-1][1], about) for number, unit in found]
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
