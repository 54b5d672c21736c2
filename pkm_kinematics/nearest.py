# SPDX-License-Identifier: Apache-2.0
"""The closed configuration whose platform is nearest to a given pose, which need not be reachable.

A least-distance problem with the loop closures as its constraints: each iteration takes the point nearest to what is
wanted on the linearised constraints (sequential quadratic programming with the metric as its Hessian). Distances are
weighted: the platform's pose counts, limb joints only decide what the pose leaves open, so that the tree in the
description, with the platform on a branch of its own or on a limb, makes no difference.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.closures import block_jacobian, turned_over
from pkm_kinematics.kernels.positions import place_block, write_block_rows
from pkm_kinematics.tables import Tables

JOINTS = 1e-3  # weight of a joint's motion, the platform's being 1
APPROACHES = 60
CLOSURES = 20
LONGEST = 0.3  # rad, and of the robot's size: longest step of any joint
AT_REST = 1e-9
CLOSED = 1e-12
RANK = 1e-9  # relative singular value below which closure equations repeat others


def nearest_closed(
    tables: Tables, wanted: Array, platform: Collection[int], size: float
) -> tuple[Array | None, float, int]:
    """Joint positions of all bodies (n_bodies,) that close the loops nearest to `wanted`: (positions, gap, iterations).

    `tables` hold the whole graph as one block, `platform` numbers the bodies of the platform's own branch; `size` [m]
    makes rotations comparable with translations. Positions are None where the iteration ends with open loops.
    """
    block = tables.blocks[0]
    state, rows, _ = tables.workspace()
    start, count, m = int(block["start"]), int(block["count"]), int(block["rows"])
    span, equations = slice(start, start + count), slice(int(block["rows_at"]), int(block["rows_at"]) + m)
    flat = np.empty(m * count)
    lengths = np.where(tables.bodies["prismatic"][span] == 1, 1.0, size)
    of_platform = np.zeros(count, dtype=bool)
    of_platform[[i - start for i in platform]] = True
    weights = lengths * np.where(of_platform, 1.0, JOINTS)

    def linear(x: Array) -> tuple[Array, Array]:
        state["q"][span] = x
        place_block(tables.bodies, block, state)
        write_block_rows(tables.closures, block, state, rows)
        block_jacobian(tables.bodies, tables.closures, block, state, rows, flat, 0)
        return rows["gap"][equations].copy(), flat.reshape(m, count).copy()

    def shortened(step: Array) -> Array:
        longest = float(np.abs(step * lengths).max())
        return step * min(1.0, LONGEST * size / longest) if longest > 0.0 else step

    goal = wanted[span]
    x = goal.copy()
    iterations = 0
    for iterations in range(1, APPROACHES + 1):  # noqa: B007 (counted)
        gap, J = linear(x)
        toward = np.where(of_platform, goal - x, 0.0)  # joints would rather stay where they are by now
        step = toward - np.linalg.lstsq(J / weights, gap + J @ toward, rcond=RANK)[0] / weights
        x = x + shortened(step)
        if float(np.abs(step * lengths).max()) < AT_REST * size:
            break
    for _ in range(CLOSURES):  # what is left is to close the loops exactly
        gap, J = linear(x)
        if float(np.abs(gap).max()) < CLOSED:
            break
        x = x - shortened(np.linalg.lstsq(J / weights, gap, rcond=RANK)[0] / weights)
        iterations += 1
    gap, _ = linear(x)
    residual = float(np.abs(gap).max())
    if not residual < CLOSED or turned_over(tables.closures, block, state):
        return None, residual, iterations
    return state["q"].copy(), residual, iterations
