# SPDX-License-Identifier: Apache-2.0
"""Objects that describe themselves: one line at the prompt and in lists, a few when printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, SupportsFloat

SHOWN = 16  # entries of one kind that a line lists before it says how many more there are
ROUNDING = 1e-12  # SI units: what is shown as zero
DEGREE = math.pi / 180.0
SCALES = {  # of an SI unit: units, and what each is of it
    "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6},
    "rad": {"rad": 1.0, "deg": DEGREE, "mrad": 1e-3},
    "kg": {"kg": 1.0, "g": 1e-3},
    "N": {"N": 1.0, "kN": 1e3, "mN": 1e-3},
    "N m": {"N m": 1.0, "Nm": 1.0, "kN m": 1e3, "kNm": 1e3, "mN m": 1e-3, "mNm": 1e-3},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3},
    "rad/s": {"rad/s": 1.0, "deg/s": DEGREE, "rpm": math.pi / 30.0, "1/min": math.pi / 30.0},
    "kg m^2": {"kg m^2": 1.0, "kgm2": 1.0, "kg cm^2": 1e-4, "g cm^2": 1e-7},
    "Hz": {"Hz": 1.0, "kHz": 1e3},
    "N/m": {"N/m": 1.0, "N/mm": 1e3, "kN/m": 1e3, "N/um": 1e6, "kN/mm": 1e6},
    "N m/rad": {"N m/rad": 1.0, "Nm/rad": 1.0, "kN m/rad": 1e3, "kNm/rad": 1e3, "N m/mrad": 1e3, "Nm/mrad": 1e3},
    "1": {"1": 1.0, "": 1.0, "%": 0.01},
}
_NUMBER = re.compile(r"(?P<number>[-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(?P<unit>.*)")


class MovedMethod:  # a `__getattr__` for every name would make every existing attribute slower to read
    """An attribute that people try in vain: reading it raises an error with what to ask instead."""

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead

    def __get__(self, instance: object, owner: type) -> Any:
        """Raise the error; the class gets the attribute itself."""
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} has no attribute {self._name!r}: {self._instead}")


class Describable:
    """Base of user-facing objects: `repr` in one line, `print` in a few, `dir` without internals.

    A subclass adds to its line in `_summary` and to the lines below in `_details`. Both must be cheap. None of this
    raises, since people look at an object when something has gone wrong. `_elsewhere` maps names from other libraries
    (several in one key, separated by blanks) to what to ask instead.
    """

    _internal: ClassVar[frozenset[str]] = frozenset()  # for the other packages, and of no use to who writes scripts
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for names, instead in cls.__dict__.get("_elsewhere", {}).items():
            for name in names.split():
                setattr(cls, name, MovedMethod(name, instead))

    def _summary(self) -> str:
        return ""

    def _details(self) -> Sequence[str]:
        return ()

    def __repr__(self) -> str:
        kind = type(self).__name__
        try:
            return f"<{kind} {self._summary()}>"
        except Exception:  # half made, or holding what it should not
            return f"<{kind}, incomplete>"

    def __str__(self) -> str:
        try:
            return "\n".join([f"{type(self).__name__} {self._summary()}", *(f"  {line}" for line in self._details())])
        except Exception:
            return repr(self)

    def __dir__(self) -> list[str]:
        kind = type(self)
        return sorted(
            name
            for name in super().__dir__()
            if not (
                name.startswith("_") or name in self._internal or isinstance(getattr(kind, name, None), MovedMethod)
            )
        )


def number_and_unit(text: str) -> tuple[float, str]:
    """A number and its unit, empty without, from a text such as "0.01 deg"; `ValueError` where there is none."""
    form = _NUMBER.fullmatch(text.strip())
    return float(form["number"] if form else ""), form["unit"] if form else ""


def number(value: float) -> str:
    """A number with six digits, and 0 for rounding errors."""
    return "0" if abs(value) < ROUNDING else f"{value:.6g}"


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals, without sign where all digits are 0."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def measure(number: SupportsFloat) -> str:
    """Four digits of a margin or a ratio; 0 and infinity for rounding errors."""
    value = float(number)
    if abs(value) > 1.0 / ROUNDING:
        return "inf" if value > 0.0 else "-inf"
    return "0" if abs(value) < ROUNDING else f"{value:.4g}"


def in_degrees(unit: str) -> tuple[float, str]:
    """The factor from rad, rad/s and the like to a unit of degrees, and that unit; 1 and the unit itself of others."""
    return (math.degrees(1.0), "deg" + unit[3:]) if unit.startswith("rad") else (1.0, unit)


def vector(values: Iterable[float]) -> str:
    """Numbers in a row."""
    return " ".join(number(float(value)) for value in values)


def listed(names: Iterable[str]) -> str:
    """The first `SHOWN` names, and the number of the others."""
    every = list(names)
    more = f", and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def alike(text_of: Mapping[str, str]) -> list[str]:
    """One line `a, b: text` per text, with all names that share it."""
    names: dict[str, list[str]] = {}
    for name, text in text_of.items():
        names.setdefault(text, []).append(name)
    return [f"{listed(group)}: {text}" for text, group in names.items()]


def counted(number: int, what: str) -> str:
    """A number and its noun, given in the singular: `3 limbs`, `2 degrees of freedom`."""
    noun, of, whose = what.partition(" of ")
    many = "es" if noun.endswith("x") else "s"
    return f"{number} {noun}{'' if number == 1 else many}{of}{whose}"
