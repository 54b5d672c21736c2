# SPDX-License-Identifier: Apache-2.0
"""Provable requirements in words, and the limits of the search. No heavy imports."""

from __future__ import annotations

import difflib
import re

from pkm_analysis.analysis_errors import AnalysisError

RESOLUTION = 2.0**-14  # of the domain's sides: boxes are not halved beyond
MOST_BOXES = 20_000
FORMS = (
    "inside",
    "no singularity",
    "type1 > NUMBER UNIT",
    "type2 > NUMBER UNIT",
    "margin > NUMBER",
    "psi > NUMBER UNIT",
    "psi < NUMBER UNIT",
    "position_error < NUMBER UNIT",
    "turning_error < NUMBER UNIT",
    "effort_at_rest < NUMBER UNIT",
    "effort_at_rest < limits",
)
NAMES = tuple(dict.fromkeys(form.partition(" <")[0].partition(" >")[0] for form in FORMS))


def check_proved(text: str) -> None:
    """Raise `AnalysisError` for a text, such as "type2 > 1 rad/m", that is none of `FORMS`."""
    name = " ".join(re.split(r"[<>=]", text, maxsplit=1)[0].split())
    if name not in NAMES and name.partition(" ")[0] not in NAMES:  # else what follows the name cannot be read
        near = difflib.get_close_matches(name, NAMES, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"write one of: {'; '.join(FORMS)}"
        raise AnalysisError(f"requirement '{text}'", f"nothing is proved of '{name}'", remedy)
