# SPDX-License-Identifier: Apache-2.0
"""Errors of questions that cannot be answered as asked."""

from __future__ import annotations

from pkm_description.errors import PkmError, shortened


class AnalysisError(PkmError):
    """A question that cannot be answered as asked: the part it is about, what is wrong, and what to ask instead."""

    def __init__(self, about: str, problem: str, remedy: str) -> None:
        self.about = shortened(about)
        self.problem = shortened(problem)
        self.remedy = shortened(remedy)
        super().__init__(f"{self.about}: {self.problem}; {self.remedy}")
