# SPDX-License-Identifier: Apache-2.0
"""Errors of the suite. Every error derives from `PkmError` and carries the data that explain it."""

from __future__ import annotations

_LONGEST = 1000  # letters that a message keeps of what it quotes


class PkmError(Exception):
    """Root of all errors that this suite raises on purpose."""


class DescriptionError(PkmError):
    """A robot description that cannot be used: names the element, what is wrong with it and what to do.

    What it quotes is cut where it is long: a description may come from anywhere, and messages go to logs.

    Args:
        element: of the description.
        problem: what is wrong.
        remedy: what to do.
    """

    def __init__(self, element: str, problem: str, remedy: str) -> None:
        self.element = shortened(element)
        self.problem = shortened(problem)
        self.remedy = shortened(remedy)
        super().__init__(f"{self.element}: {self.problem}; {self.remedy}")


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text with its middle left out where it has more than `longest` letters."""
    if len(text) <= longest:
        return text
    half = (longest - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
