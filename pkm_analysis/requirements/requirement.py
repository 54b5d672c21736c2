# SPDX-License-Identifier: Apache-2.0
"""A bound on a quantity: what is asked of every pose of a workspace beside what the limbs and joints allow."""

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
    """quantity >= bound, or quantity <= bound.

    Attributes:
        quantity: what is bounded.
        bound: in its unit.
        at_least: True for a lower bound.
    """

    quantity: Quantity
    bound: float
    at_least: bool = True

    def slack(self, batch: Batch) -> Array:
        """How far poses are from the bound.

        Args:
            batch: of n poses.

        Returns:
            (n,) not negative where they keep it; -inf where nothing is known.
        """
        return self.judged(batch)[0]

    def judged(self, batch: Batch) -> tuple[Array, NDArray[np.int64]]:
        """`slack`, and for each pose (n,) the number of the cause of the quantity that it is due to.

        Args:
            batch: of n poses.

        Returns:
            Both.
        """
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
    """Read a requirement.

    Args:
        robot: whose quantity it bounds.
        text: such as "type2 > 0.2 rad/m" or "joint:limb1_arm < 60 deg".
        assumed: of its drives, for quantities that need it.

    Returns:
        The requirement, in SI units.

    Raises:
        AnalysisError: it cannot be read, or bounds what there is not, or has no unit or a wrong one.
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
