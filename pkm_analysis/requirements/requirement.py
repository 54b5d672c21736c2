# SPDX-License-Identifier: Apache-2.0
"""A bound on a quantity: a condition on every pose of a workspace, in addition to limbs and joint limits."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.requirements.drive_quantities import NOTHING_MORE, Assumed
from pkm_analysis.requirements.quantities import find_quantity
from pkm_analysis.requirements.quantity import Batch, Quantity
from pkm_analysis.requirements.units import in_si
from pkm_analysis.robot import Robot
from pkm_description.mechanism import Array

_FORM = re.compile(
    r"\s*(?P<name>[\w:/.,-]+)\s*(?P<sense>>=|<=|>|<)\s*(?P<number>[-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(?P<unit>.*?)\s*"
)


@dataclass(frozen=True)
class Requirement:
    """quantity >= bound, or quantity <= bound; the bound is in the quantity's unit."""

    quantity: Quantity
    bound: float
    at_least: bool = True

    def slack(self, batch: Batch) -> Array:
        """Distance (n,) from the bound, not negative where it holds; -inf where unknown."""
        return self.judged(batch)[0]

    def judged(self, batch: Batch) -> tuple[Array, NDArray[np.int64]]:
        """`slack`, and for each pose (n,) the index of the quantity's cause that it is due to."""
        if self.quantity.near is not None:
            values, causes = self.quantity.near(batch, self.bound)
        else:
            values, causes = self.quantity.evaluate(batch), np.zeros(len(batch.poses), dtype=np.int64)
        slack = values - self.bound if self.at_least else self.bound - values
        return np.where(np.isnan(slack), -np.inf, slack), causes

    def __str__(self) -> str:
        """As it is written."""
        unit = "" if self.quantity.unit == "1" else f" {self.quantity.unit}"
        return f"{self.quantity.name} {'>=' if self.at_least else '<='} {self.bound:.6g}{unit}"


def requirement(robot: Robot, text: str, assumed: Assumed = NOTHING_MORE) -> Requirement:
    """Read a requirement, such as "type2 > 0.2 rad/m" or "joint:limb1_arm < 60 deg", in SI units.

    `AnalysisError` where it is unreadable, the quantity is unknown, or the unit missing or wrong.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise AnalysisError(f"requirement '{text}'", "it cannot be read", "write 'QUANTITY > NUMBER UNIT'")
    quantity = find_quantity(robot, form["name"], assumed)
    try:
        number = float(form["number"])
    except ValueError:
        raise AnalysisError(f"requirement '{text}'", f"{form['number']} is no number", "write one") from None
    bound = in_si(number, form["unit"], quantity.unit, f"requirement '{text}'")
    return Requirement(quantity, bound, form["sense"][0] == ">")
