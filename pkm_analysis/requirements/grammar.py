# SPDX-License-Identifier: Apache-2.0
"""What people write: names, numbers with units, and bounds. No heavy imports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, inf, log10, pi
from typing import NamedTuple

from pkm_analysis.analysis_errors import AnalysisError
from pkm_runtime.describable import DEGREE, SCALES, measure, number_and_unit
from pkm_runtime.errors import nearest

CLEARANCE, JOINT = "clearance", "joint:"
STIFFNESSES = ("stiffness", "turning_stiffness")
DIRECTED = ("speed", "turning_speed", "force", "moment", *STIFFNESSES)  # that may be asked for in one direction
QUANTITIES = (
    *("reach", "joint_limits", "type1", "type2", "type2_signed", "margin", "constraint", "limb_regularity"),
    *("isotropy", "smallest_transmission", "largest_transmission", *DIRECTED, "position_error", "turning_error"),
    *("effort_at_rest", "spare_effort", "natural_frequency", "sag", CLEARANCE),
)
IN_WORDS = (
    f"{', '.join(QUANTITIES)}, {JOINT}NAME; of {', '.join(DIRECTED)} also in a direction, as force:z or force:1,0,-1"
)
INSIDE, REGULAR, WITHIN_LIMITS = "inside", "no singularity", "effort_at_rest < limits"  # requirements without a number
POSE_ERROR = "pose_error"  # of machines within tolerances
PROVED = (  # what can be proved
    *(INSIDE, REGULAR, "type1 > NUMBER UNIT", "type2 > NUMBER UNIT", "margin > NUMBER", "isotropy > NUMBER"),
    *("psi > NUMBER UNIT", "psi < NUMBER UNIT", "position_error < NUMBER UNIT", "turning_error < NUMBER UNIT"),
    *("effort_at_rest < NUMBER UNIT", WITHIN_LIMITS, f"{POSE_ERROR} < NUMBER UNIT"),
    *(f"{name} {side} NUMBER UNIT" for name in STIFFNESSES for side in "><"),
    "sag < NUMBER UNIT",
)
KINDS = {  # of a workspace over orientations: whether a position must be reached in every orientation of the range
    "reachable": False,
    "inclusive": False,
    "total": True,
    "dexterous": True,
}
RESOLUTION = 2.0**-14  # of the domain's sides: boxes of a proof are not halved beyond
MOST_BOXES = 20_000
FAR = 50.0  # of the robot's size: a larger length without a unit is not in metres
_FAMILIAR = {"m": ("mm", 1e3), "rad/s": ("deg/s", 1.0 / DEGREE), "N/m": ("N/um", 1e-6)}
_BOUND = re.compile(r"\s*(?P<name>[\w:/.,-]+)\s*(?P<sense>[<>])=?\s*(?P<number>[-+]?[\d.].*?)\s*")


def in_si(number: float, unit: str, wanted: str, about: str) -> float:
    """A number with the unit that somebody wrote, in SI units; `AnalysisError` for a missing or wrong one.

    `wanted` is the SI unit of the quantity, "1" where it has none; `about` the source text, for the message.
    """
    scales = SCALES.get(wanted, {wanted: 1.0})
    if unit in scales:
        return number * scales[unit]
    if not unit:
        raise AnalysisError(about, f"{number:g} has no unit", f"write '{number:g} {wanted}'")
    usual = "as a plain number or in %" if wanted == "1" else f"in {', '.join(filter(None, scales))}"
    raise AnalysisError(about, f"{unit!r} is no unit of it", f"give it {usual}")


def by_default(number: float, unit: str, wanted: str, size: float, about: str) -> float:
    """A number as `in_si`, m or rad by default; `AnalysisError` where it makes no sense in a robot of a size [m]."""
    if not unit and wanted == "rad" and abs(number) > 2.0 * pi:
        problem, remedy = f"{number:g} rad is more than a turn", f"write {number:g}deg, or {number:g}rad"
        raise AnalysisError(about, problem, f"{remedy} if that is meant")
    if not unit and wanted == "m" and abs(number) > FAR * size:
        problem, remedy = f"{number:g} m is far from a robot of {size:.2g} m", f"write {number:g}mm, or {number:g}m"
        raise AnalysisError(about, problem, f"{remedy} if that is meant")
    return in_si(number, unit or wanted, wanted, about)


def read_number(text: str, about: str, remedy: str = "write one, with or without a unit") -> tuple[float, str]:
    """A number and its unit, empty without, from a text such as "0.01 deg"; `AnalysisError` where there is none."""
    try:
        return number_and_unit(text)
    except ValueError:
        raise AnalysisError(about, f"{text!r} is no number", remedy) from None


class Bound(NamedTuple):
    """A bound on a named quantity."""

    name: str
    above: bool  # whether the quantity is to be above it
    number: float
    unit: str  # as written, empty without

    def __str__(self) -> str:
        return f"{self.name} {'>' if self.above else '<'} {self.number:.15g} {self.unit}".rstrip()

    def in_si(self, wanted: str) -> float:
        """The bound in an SI unit, see `in_si`."""
        return in_si(self.number, self.unit, wanted, f"requirement '{self}'")


def read_bound(text: str) -> Bound:
    """A bound such as "type2 > 0.2 rad/m"; `AnalysisError` where it is unreadable."""
    form = _BOUND.fullmatch(text)
    if form is None:
        raise AnalysisError(f"requirement '{text}'", "it cannot be read", "write 'QUANTITY > NUMBER UNIT'")
    return Bound(form["name"], form["sense"] == ">", *read_number(form["number"], f"requirement '{text}'", "write one"))


def label_of(coordinate: str) -> str:
    """The short name of a task coordinate: its last part."""
    return coordinate.replace("/", "_").rpartition("_")[2]


def check_coordinate(name: str, chain: Sequence[str]) -> None:
    """Raise `AnalysisError` for a coordinate that is none of `chain`, the joints of the platform's branch, if any."""
    labels = [label_of(joint) for joint in chain]
    if labels and name not in chain and name not in labels:
        remedy = nearest(name, labels, f"choose one of: {', '.join(labels)}")
        hint = "; ranges are given apart, as --range NAME=A:B" if "=" in name else ""
        raise AnalysisError(f"coordinate {name}", "the robot has none of that name", remedy + hint)


def check_name(text: str) -> None:
    """Raise `AnalysisError` for a quantity that no robot has, alone or with a bound: "force:z > 100 N"."""
    words = " ".join(text.split())
    name = re.split(r"[<>=\s]", words, maxsplit=1)[0]
    first, colon, rest = name.partition(":")
    known = name in QUANTITIES or (bool(rest) and (first in DIRECTED or first + colon == JOINT))
    if name and not known and words not in (INSIDE, REGULAR) and name != "psi":
        raise AnalysisError(f"quantity {name}", "there is none of that name", remedy_for(name))


def remedy_for(name: str) -> str:
    """What to ask for instead of an unknown name."""
    first, colon, rest = name.partition(":")
    if first in QUANTITIES and colon:
        return f"write {first} alone"
    directed = tuple(f"{one}{colon}{rest}" for one in DIRECTED) if colon else ()
    return nearest(name, (*directed, *QUANTITIES, INSIDE, REGULAR), f"choose one of {IN_WORDS}")


def check_proved(text: str) -> None:
    """Raise `AnalysisError` for a text, such as "type2 > 1 rad/m", that is none of `PROVED`."""
    names = tuple(dict.fromkeys(re.split(" [<>]", form)[0] for form in PROVED))
    name = " ".join(re.split(r"[<>=]", text, maxsplit=1)[0].split())
    first = name.partition(":")[0] if name.startswith(tuple(f"{one}:" for one in STIFFNESSES)) else name
    if first not in names and name.partition(" ")[0] not in names:  # else what follows the name cannot be read
        remedy = nearest(name, names, f"write one of: {'; '.join(PROVED)}")
        raise AnalysisError(f"requirement '{text}'", f"nothing is proved of '{name}'", remedy)


def familiar(unit: str) -> tuple[str, float]:
    """The unit that a person uses in place of an SI unit, such as mm or deg, and the factor to it."""
    if unit in _FAMILIAR:
        return _FAMILIAR[unit]
    words = [re.sub(r"^rad(?=$|\^)", "deg", word) for word in unit.split(" ")] if "/" not in unit else [unit]
    powers = [int(word.partition("^")[2] or 1) for word in words if word.startswith("deg")]
    return " ".join(words), DEGREE ** -sum(powers)


def shown(value: float, unit: str, digits: int = 4) -> str:
    """A number in the unit that a person uses; 0 for rounding errors."""
    name, factor = familiar(unit)
    text = measure(value) if abs(value) < 1e-12 or abs(value) > 1e12 else f"{factor * value:.{digits}g}"
    return text if name == "1" else f"{text} {name}"


def spread(low: float, high: float, unit: str) -> str:
    """A range in the unit that a person uses, as "-10 to 10 deg"."""
    first, _, name = shown(low, unit).partition(" ")
    return f"{first} to {shown(high, unit).partition(' ')[0]} {name}".rstrip()


def with_error(value: float, error: float, unit: str) -> str:
    """A number and its error in the unit that a person uses, rounded to two digits of the error."""
    name, factor = familiar(unit)
    if not 0.0 < error < inf:
        return shown(value, unit, 6)
    digits = 1 - floor(log10(factor * error))
    numbers = (f"{round(factor * one, digits):.{max(digits, 0)}f}" for one in (value, error))
    return f"{' ± '.join(numbers)} {name}"
