# SPDX-License-Identifier: Apache-2.0
"""One compiled call that tells on which sides of its singularities a configuration is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.modes import read_modes
from pkm_kinematics.lean import bind
from pkm_kinematics.task import chain_state

if TYPE_CHECKING:
    from pkm_kinematics.kinematics import Kinematics


class ModeReader:
    """On which sides of the singularities configurations are; see `kernels.modes`. Not for several threads."""

    def __init__(self, kinematics: Kinematics) -> None:
        e, t = kinematics.engine, kinematics.tables
        m, blocks = len(kinematics.actuated_names), t.blocks
        square = e.constant_space and m == e.mobility
        subspace = np.ascontiguousarray(e.task.subspace) if square else np.zeros((6, m + 1))
        self.sides = np.ones(len(blocks))
        size = max(int(blocks["count"].max(initial=0)), m)
        scratch = (np.zeros(t.n_work), np.zeros(t.n_work), np.zeros((size, size)), np.zeros((m, 6)))
        task = e.task
        fixed = (
            t.bodies, t.closures, blocks, *t.workspace(),
            task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task),
            e.body_column, e.chain_column, subspace, *scratch, self.sides,
        )  # fmt: skip
        self._read: Callable[..., Any] = bind(read_modes, fixed, (np.array(e.home), np.array(e.home_joints)))

    def read(self, pose: Array, joints: Array) -> tuple[int, float]:
        """Status, and the side of the platform: 1.0, -1.0, 0.0 where singular; writes those of the blocks to `sides`.

        `pose` (7,) and `joints` (n_joints,) must be contiguous float64 arrays.
        """
        status, side = self._read(pose, joints)
        return status, side
