# SPDX-License-Identifier: Apache-2.0
"""The other way round: the cheapest tolerances with which a machine is accurate enough.

Each source has grades: parts of its tolerance with what they cost. Which grade each gets is a linear program in
integers (HiGHS), as the mean square of an error, and a bound of its worst case, are sums over the sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.errors.error_budget import GEOMETRY, ErrorModel, Source, shown_size
from pkm_analysis.errors.tolerances import NORMAL
from pkm_analysis.plottable import Plottable, Table
from pkm_description.mechanism import Array

EXPECTED, WORST = "expected", "worst"
SECONDS = 20.0


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Plottable):
    """Tolerances (k,) of the sources that reach an error [m], their costs (k,), and that of the coarsest grades."""

    _picture: ClassVar[str] = "proof_pictures.allocation_picture"

    robot: str
    goal: float
    criterion: str
    sources: tuple[Source, ...]
    tolerances: Array
    costs: Array
    coarsest: float
    reached: float

    def _summary(self) -> str:
        return (
            f"{self.robot}: {self.criterion} position error {1e3 * self.reached:.4g} mm, "
            f"{1e3 * self.goal:.4g} mm asked, cost {self.costs.sum():.5g} (coarsest grades {self.coarsest:.5g})"
        )

    def _details(self) -> list[str]:
        order = np.argsort(self.tolerances / [one.size for one in self.sources], kind="stable")
        finer = [k for k in order if self.tolerances[k] < self.sources[k].size * (1.0 - 1e-9)]
        lines = [f"{len(finer)} of {len(self.sources)} sources finer than their coarsest grade:"]
        lines += [
            f"  {self.sources[k].name}: {shown_size(float(self.tolerances[k]), self.sources[k].unit)}"
            for k in finer[:12]
        ]
        return lines + ([f"  and {len(finer) - 12} more"] if len(finer) > 12 else [])

    @property
    def tables(self) -> list[Table]:
        """Every source with its grade."""
        rows = [
            [one.name, shown_size(float(t), one.unit), f"{c:.4g}"]
            for one, t, c in zip(self.sources, self.tolerances, self.costs, strict=True)
        ]
        return [Table("Tolerances", ["source", "tolerance", "cost"], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, in m and rad."""
        return {
            **self._plain("robot", "goal", "criterion", "coarsest", "reached"),
            "cost": float(self.costs.sum()),
            "tolerances": {one.name: float(t) for one, t in zip(self.sources, self.tolerances, strict=True)},
        }


def allocate(model: ErrorModel, goal: float, criterion: str = EXPECTED) -> Allocation:
    """The cheapest grades with a position error of at most `goal` [m] at all configurations of a model.

    `criterion`: "expected", the root of the mean square, or "worst", a bound of the worst case, the sum of all effects.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    sources = model.sources()
    graded = [one for one in sources if one.kind == GEOMETRY]
    fixed = [one for one in sources if one.kind != GEOMETRY]
    if not graded:
        raise AnalysisError("--reach", "no tolerance of geometry is above zero", "give tolerances")
    parts = np.array([part for part, _ in model.tolerances.grades])
    prices = np.array([cost for _, cost in model.tolerances.grades])
    spread = 9.0 if model.tolerances.distribution == NORMAL else 3.0

    def load(one: Source, part: float) -> Array:
        size = part * np.linalg.norm(one.effects[:, :3], axis=1)
        return np.asarray(size**2 / spread if criterion == EXPECTED else size)

    rows = np.array([load(one, part) for one in graded for part in parts]).T
    known = np.sum([one.effects for one in fixed if one.one_way], axis=0) if any(one.one_way for one in fixed) else None
    rest = np.sum([np.zeros(len(rows)), *(load(one, 1.0) for one in fixed if not one.one_way)], axis=0)
    if known is not None:
        size = np.linalg.norm(known[:, :3], axis=1)
        rest = rest + (size**2 if criterion == EXPECTED else size)
    most = (goal**2 if criterion == EXPECTED else goal) - rest
    finest = rows[:, int(np.argmin(parts)) :: len(parts)].sum(axis=1)
    if (finest > most).any():
        best = float((finest + rest).max())
        best = float(np.sqrt(best)) if criterion == EXPECTED else best
        raise AnalysisError(
            f"--reach {1e3 * goal:g} mm",
            f"the finest grades reach {1e3 * best:.4g} mm, of which {_of_fixed(rest, criterion)} is of other sources",
            "give finer grades, or a larger error",
        )
    costs = np.concatenate([one.cost * prices for one in graded])
    one_each = np.kron(np.eye(len(graded)), np.ones(len(parts)))
    scale = float(np.abs(most).max())
    found = milp(
        costs,
        constraints=[LinearConstraint(rows / scale, -np.inf, most / scale), LinearConstraint(one_each, 1.0, 1.0)],
        integrality=np.ones(len(costs)),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": SECONDS, "mip_rel_gap": 1e-4},
    )
    if found.x is None:
        raise AnalysisError("--reach", "no answer was found in time", "give fewer grades, or fewer poses")
    chosen: NDArray[np.int64] = np.argmax(found.x.reshape(len(graded), -1), axis=1)
    tolerances = np.array([one.size * parts[k] for one, k in zip(graded, chosen, strict=True)])
    paid = np.array([one.cost * prices[k] for one, k in zip(graded, chosen, strict=True)])
    total = rows[:, np.arange(len(graded)) * len(parts) + chosen].sum(axis=1) + rest
    reached = float(np.sqrt(total.max()) if criterion == EXPECTED else total.max())
    coarsest = float(sum(one.cost for one in graded) * prices[int(np.argmax(parts))])
    return Allocation(model.mechanism.name, goal, criterion, tuple(graded), tolerances, paid, coarsest, reached)


def _of_fixed(rest: Array, criterion: str) -> str:
    most = float(rest.max(initial=0.0))
    return f"{1e3 * (np.sqrt(most) if criterion == EXPECTED else most):.4g} mm"
