# SPDX-License-Identifier: Apache-2.0
"""Numbers that count their arithmetic: the cost of a formula, measured by running it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Count:
    """Operations so far."""

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0


class Counted:
    """A number that counts its operations; a change of sign is free."""

    __slots__ = ("count", "value")

    def __init__(self, value: float, count: Count) -> None:
        self.value, self.count = value, count

    def _other(self, other: Any) -> float:
        return other.value if isinstance(other, Counted) else float(other)

    def __add__(self, other: Any) -> Counted:
        """Count an addition."""
        self.count.additions += 1
        return Counted(self.value + self._other(other), self.count)

    def __sub__(self, other: Any) -> Counted:
        """Count a subtraction as an addition."""
        self.count.additions += 1
        return Counted(self.value - self._other(other), self.count)

    def __mul__(self, other: Any) -> Counted:
        """Count a multiplication."""
        self.count.multiplications += 1
        return Counted(self.value * self._other(other), self.count)

    def __rtruediv__(self, other: Any) -> Counted:
        """Count a division."""
        self.count.divisions += 1
        return Counted(self._other(other) / self.value, self.count)

    def __neg__(self) -> Counted:
        """Change the sign."""
        return Counted(-self.value, self.count)

    __radd__, __rmul__ = __add__, __mul__
