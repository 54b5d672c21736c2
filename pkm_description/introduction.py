# SPDX-License-Identifier: Apache-2.0
"""Objects that say what they are: one line at the prompt and in lists, a few when printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, SupportsFloat

SHOWN = 16  # entries of one kind that a line lists before it says how many more there are
MINOR = 0.25  # of the largest part of a direction
ROUNDING = 1e-12  # SI units: what is shown as zero


class Elsewhere:
    """An attribute that people try and that is not there: reading it says what to ask instead.

    A `__getattr__` could answer for every name, and would make every attribute that is there slower to read.

    Args:
        name: of the attribute.
        instead: what to ask, in words.
    """

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead

    def __get__(self, instance: object, owner: type) -> Any:
        """The error; the attribute itself where the class is asked."""
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} has no attribute {self._name!r}: {self._instead}")


class Introduced:
    """Base of objects that people look at: `repr` in one line, `print` in a few, `dir` without internals.

    A subclass says the rest of its line in `_summary`, and the lines below it in `_details`. Both must be cheap. None
    of this raises, whatever the object holds: one looks at an object when something has gone wrong. Names that people
    try, from what other libraries call the same, are the keys of `_elsewhere`
    (several in one, with blanks between), with what to ask instead.
    """

    _internal: ClassVar[frozenset[str]] = frozenset()  # for the other packages, and of no use to who writes scripts
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        """Answer for the names that are not there."""
        super().__init_subclass__()
        for names, instead in cls.__dict__.get("_elsewhere", {}).items():
            for name in names.split():
                setattr(cls, name, Elsewhere(name, instead))

    def _summary(self) -> str:
        return ""

    def _details(self) -> Sequence[str]:
        return ()

    def __repr__(self) -> str:
        """One line."""
        kind = type(self).__name__
        try:
            return f"<{kind} {self._summary()}>"
        except Exception:  # half made, or holding what it should not
            return f"<{kind}, incomplete>"

    def __str__(self) -> str:
        """A few lines."""
        try:
            return "\n".join([f"{type(self).__name__} {self._summary()}", *(f"  {line}" for line in self._details())])
        except Exception:
            return repr(self)

    def __dir__(self) -> list[str]:
        """The names that are meant for users."""
        kind = type(self)
        return sorted(
            name
            for name in super().__dir__()
            if not (name.startswith("_") or name in self._internal or isinstance(getattr(kind, name, None), Elsewhere))
        )


def number(value: float) -> str:
    """A number as people write it: six digits, and 0 for what rounding leaves of it."""
    return "0" if abs(value) < ROUNDING else f"{value:.6g}"


def fixed(value: float, digits: int) -> str:
    """A number with so many digits after the point, and no sign where all of them are 0."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def measure(number: SupportsFloat) -> str:
    """Four digits of a margin or a ratio; 0 and infinity for what rounding leaves of them."""
    value = float(number)
    if abs(value) > 1.0 / ROUNDING:
        return "inf" if value > 0.0 else "-inf"
    return "0" if abs(value) < ROUNDING else f"{value:.4g}"


def vector(values: Iterable[float]) -> str:
    """Numbers in a row."""
    return " ".join(number(float(value)) for value in values)


def axes(direction: Sequence[float], signed: bool = True) -> str:
    """A direction of motion in words.

    Args:
        direction: (6,) linear, then angular, in one unit; what is less than `MINOR` of the largest is left out.
        signed: False for a line that has no sense.

    Returns:
        Such as `along +x`, `about -z`, `along +x +y and about -z`.
    """
    largest = max(abs(float(size)) for size in direction)
    names = [
        f"{('+' if size > 0.0 else '-') if signed else ''}{'xyz'[i % 3]}" if abs(size) > MINOR * largest else ""
        for i, size in enumerate(direction)
    ]
    parts = (("along", names[:3]), ("about", names[3:]))
    return " and ".join(f"{word} {' '.join(filter(None, part))}" for word, part in parts if any(part))


def listed(names: Iterable[str]) -> str:
    """Names in a row.

    Args:
        names: as many as there are.

    Returns:
        The first `SHOWN`, and how many more there are.
    """
    every = list(names)
    more = f", and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def alike(text_of: Mapping[str, str]) -> list[str]:
    """Names that share a text, together.

    Args:
        text_of: texts by name.

    Returns:
        One line per text, with all the names that it goes with: `a, b: text`.
    """
    names: dict[str, list[str]] = {}
    for name, text in text_of.items():
        names.setdefault(text, []).append(name)
    return [f"{listed(group)}: {text}" for text, group in names.items()]


def counted(number: int, what: str) -> str:
    """A number and what it counts.

    Args:
        number: how many.
        what: they are, in the singular.

    Returns:
        Such as `3 limbs`.
    """
    return f"{number} {what}{'' if number == 1 else 's'}"
