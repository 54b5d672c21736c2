# SPDX-License-Identifier: Apache-2.0
"""Errors of the suite. Every error derives from `PkmError` and carries the data that explain it."""

from __future__ import annotations

_LONGEST = 1000  # characters of a quotation in a message


class PkmError(Exception):
    """Root of all errors that this suite raises."""


class DescriptionError(PkmError):
    """An unusable robot description: the element, its problem and the remedy.

    Long quotations are shortened: a description may come from anywhere, and messages go to logs.
    """

    def __init__(self, element: str, problem: str, remedy: str) -> None:
        self.element = shortened(element)
        self.problem = shortened(problem)
        self.remedy = shortened(remedy)
        super().__init__(f"{self.element}: {self.problem}; {self.remedy}")


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text with its middle left out where it has more than `longest` characters."""
    if len(text) <= longest:
        return text
    half = (longest - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
