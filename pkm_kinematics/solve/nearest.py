# SPDX-License-Identifier: Apache-2.0
"""The closed configuration whose platform is nearest to a given pose, which need not be reachable.

A least-distance problem with the loop closures as its constraints: each iteration takes the point nearest to what is
wanted on the linearised constraints (sequential quadratic programming with the metric as its Hessian). The platform's
pose counts, limb joints only decide what the pose leaves open: with the platform on a branch of its own or on a limb,
the answer is the same.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.model.tables import Tables
from pkm_kinematics.solve.graph_equations import GraphEquations

JOINTS = 1e-3  # weight of a joint's motion, the platform's being 1
APPROACHES = 60
CLOSURES = 20
LONGEST = 0.3  # rad, and of the robot's size: longest step of any joint
AT_REST = 1e-9
EXACT = 1e-12  # of the robot's size: what the iteration closes the loops to
RANK = 1e-9  # relative singular value below which closure equations repeat others


def nearest_closed(
    tables: Tables, wanted: Array, platform: Collection[int], size: float
) -> tuple[Array | None, float, int]:
    """Positions (n_bodies,) that close the loops nearest to `wanted` (n_bodies,), their gap [m], number of iterations.

    Positions are None where the iteration ends with open loops. `tables` holds the whole graph as one block, `platform`
    the bodies of the platform's own branch; `size` [m] makes rotations comparable with translations.
    """
    equations = GraphEquations(tables)
    span = equations.span
    lengths = np.where(equations.sliding, 1.0, size)
    of_platform = np.zeros(len(lengths), dtype=bool)
    of_platform[[i - span.start for i in platform]] = True
    weights = lengths * np.where(of_platform, 1.0, JOINTS)

    def least(J: Array, right: Array) -> Array:
        """The least weighted motion that `J` maps to `right`; NaN where these are too large for floating point."""
        with np.errstate(over="ignore"):
            scaled = J / weights
        if not (np.isfinite(scaled).all() and np.isfinite(right).all()):
            return np.full(len(weights), np.nan)
        return np.linalg.lstsq(scaled, right, rcond=RANK)[0] / weights

    def shortened(step: Array) -> Array:
        longest = float(np.abs(step * lengths).max())
        return step * min(1.0, LONGEST * size / longest) if longest > 0.0 else step

    goal = wanted[span]
    x = goal.copy()
    iterations = 0
    for iterations in range(1, APPROACHES + 1):  # noqa: B007 (counted)
        gap, J = equations.gaps(x), equations.slope()
        toward = np.where(of_platform, goal - x, 0.0)  # joints would rather stay where they are by now
        step = toward - least(J, gap + J @ toward)
        x = x + shortened(step)
        if not float(np.abs(step * lengths).max()) >= AT_REST * size:  # at rest, or lost
            break
    for _ in range(CLOSURES):  # what is left is to close the loops exactly
        gap, J = equations.gaps(x), equations.slope()
        if not float(np.abs(gap).max()) >= EXACT * size:
            break
        x = x - shortened(least(J, gap))
        iterations += 1
    equations.gaps(x)
    found = equations.state["q"].copy() if equations.closed else None
    return found, equations.residual, iterations
