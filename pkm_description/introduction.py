# SPDX-License-Identifier: Apache-2.0
"""Objects that say what they are: one line at the prompt and in lists, a few when printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

SHOWN = 16  # entries of one kind that a line lists before it says how many more there are
ROUNDING = 1e-12  # SI units: what is shown as zero


class Introduced:
    """Base of objects that people look at: `repr` in one line, `print` in a few, `dir` without internals.

    A subclass says the rest of its line in `_summary`, and the lines below it in `_details`. Both must be cheap. None
    of this raises, whatever the object holds: one looks at an object when something has gone wrong.
    """

    _internal: ClassVar[frozenset[str]] = frozenset()  # for the other packages, and of no use to who writes scripts

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
        return sorted(name for name in super().__dir__() if not name.startswith("_") and name not in self._internal)


def number(value: float) -> str:
    """A number as people write it: six digits, and 0 for what rounding leaves of it."""
    return "0" if abs(value) < ROUNDING else f"{value:.6g}"


def vector(values: Iterable[float]) -> str:
    """Numbers in a row."""
    return " ".join(number(float(value)) for value in values)


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
