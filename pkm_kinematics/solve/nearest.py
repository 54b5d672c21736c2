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
from pkm_kinematics.kernels.position.closures import block_jacobian, block_residual, closed, turned_over
from pkm_kinematics.kernels.position.positions import place_block, write_block_rows
from pkm_kinematics.model.tables import Tables

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
    block = tables.blocks[0]
    model, data = tables.model, tables.data()
    state, rows = data.state, data.rows
    start, count, m = int(block["start"]), int(block["count"]), int(block["rows"])
    span, equations = slice(start, start + count), slice(int(block["rows_at"]), int(block["rows_at"]) + m)
    flat = np.empty(m * count)
    lengths = np.where(tables.bodies["prismatic"][span] == 1, 1.0, size)
    of_platform = np.zeros(count, dtype=bool)
    of_platform[[i - start for i in platform]] = True
    weights = lengths * np.where(of_platform, 1.0, JOINTS)

    def linear(x: Array) -> tuple[Array, Array]:
        state["q"][span] = x
        place_block(tables.model.bodies, block, state)
        write_block_rows(tables.model.closures, block, state, rows)
        block_jacobian(model, data, block, flat, 0)
        return rows["gap"][equations].copy(), flat.reshape(m, count).copy()

    def least(J: Array, right: Array) -> Array:
        """The least weighted motion that `J` maps to `right`; NaN where these are too large for floating point."""
        with np.errstate(over="ignore"):
            scaled = J / weights
        if not (np.isfinite(scaled).all() and np.isfinite(right).all()):
            return np.full(count, np.nan)
        return np.linalg.lstsq(scaled, right, rcond=RANK)[0] / weights

    def shortened(step: Array) -> Array:
        longest = float(np.abs(step * lengths).max())
        return step * min(1.0, LONGEST * size / longest) if longest > 0.0 else step

    goal = wanted[span]
    x = goal.copy()
    iterations = 0
    for iterations in range(1, APPROACHES + 1):  # noqa: B007 (counted)
        gap, J = linear(x)
        toward = np.where(of_platform, goal - x, 0.0)  # joints would rather stay where they are by now
        step = toward - least(J, gap + J @ toward)
        x = x + shortened(step)
        if not float(np.abs(step * lengths).max()) >= AT_REST * size:  # at rest, or lost
            break
    for _ in range(CLOSURES):  # what is left is to close the loops exactly
        gap, J = linear(x)
        if not float(np.abs(gap).max()) >= EXACT * size:
            break
        x = x - shortened(least(J, gap))
        iterations += 1
    linear(x)
    residual = float(block_residual(tables.model.closures, block, rows))
    if not closed(block, residual) or turned_over(tables.model.closures, block, state):
        return None, residual, iterations
    return state["q"].copy(), residual, iterations
