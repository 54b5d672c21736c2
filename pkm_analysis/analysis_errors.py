# SPDX-License-Identifier: Apache-2.0
"""Errors of questions that have no answer as they were asked."""

from __future__ import annotations

from pkm_description.errors import PkmError, shortened


class AnalysisError(PkmError):
    """A question about a robot that cannot be answered as it was asked: what is wrong with it, and what to ask instead.

    Args:
        about: the part of the question, such as "domain" or a requirement.
        problem: what is wrong with it.
        remedy: what to do.
    """

    def __init__(self, about: str, problem: str, remedy: str) -> None:
        self.about = shortened(about)
        self.problem = shortened(problem)
        self.remedy = shortened(remedy)
        super().__init__(f"{self.about}: {self.problem}; {self.remedy}")
