# SPDX-License-Identifier: Apache-2.0
"""Errors of the suite. Every error derives from `PkmError` and carries the data that explain it."""

from __future__ import annotations


class PkmError(Exception):
    """Root of all errors that this suite raises on purpose."""


class DescriptionError(PkmError):
    """A robot description that cannot be used: names the element, what is wrong with it and what to do."""

    def __init__(self, element: str, problem: str, remedy: str) -> None:
        self.element = element
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{element}: {problem}; {remedy}")
