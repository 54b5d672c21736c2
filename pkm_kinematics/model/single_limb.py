# SPDX-License-Identifier: Apache-2.0
"""The tables of one limb alone, between base and platform, to solve it apart from the others."""

from __future__ import annotations

import numpy as np

from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.model.tables import Tables


def limb_tables(tables: Tables, limb: int) -> tuple[Tables, np.ndarray]:
    """Tables of one limb, actuators and modes numbered as before, and the numbers (k,) of its bodies in `tables`."""
    first, stop = tables.limbs[limb]
    blocks = tables.blocks[first:stop].copy()
    start, closure_start = int(blocks["start"][0]), int(blocks["closure_start"][0])
    count = int(blocks["start"][-1] + blocks["count"][-1]) - start
    closure_count = int(blocks["closure_start"][-1] + blocks["closure_count"][-1]) - closure_start
    numbers = np.concatenate([np.arange(PLATFORM + 1), np.arange(start, start + count)])
    new = np.full(len(tables.bodies), -1)
    new[numbers] = np.arange(len(numbers))

    among = slice(closure_start, closure_start + closure_count)
    bodies, closures = tables.bodies[numbers].copy(), tables.closures[among].copy()
    for table, fields in (
        (bodies, ("parent",)),
        (closures, ("predecessor", "successor", "predecessor_anchor", "successor_anchor")),
        (blocks, ("start", "driver", "pointing", "extension", "lift")),
    ):
        for name in fields:
            table[name] = np.where(table[name] >= 0, new[table[name]], -1)
    blocks["limb_first"] -= first
    blocks["closure_start"] -= closure_start
    for array in (bodies, closures, blocks):
        array.setflags(write=False)
    # equations and inverses keep their places, in a workspace that has room for those of the others
    found = Tables(
        bodies=bodies,
        closures=closures,
        blocks=blocks,
        gravity=tables.gravity,
        names=tuple(tables.names[i] for i in numbers),
        closure_names=tables.closure_names[among],
        n_rows=tables.n_rows,
        n_work=tables.n_work,
        limbs=((0, len(blocks)),),
    )
    return found, numbers
