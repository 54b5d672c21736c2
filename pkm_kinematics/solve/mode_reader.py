# SPDX-License-Identifier: Apache-2.0
"""One compiled call that tells on which sides of its singularities a configuration is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.path.assembled import read_modes
from pkm_kinematics.solve.engine import Engine
from pkm_runtime.kernels.binding import bind


class ModeReader:
    """On which sides of its singularities a configuration is; see `kernels.path.assembled`. Not thread-safe."""

    def __init__(self, engine: Engine) -> None:
        e = engine
        self.sides = np.ones(len(e.tables.blocks))
        blocks = e.tables.blocks
        self._weights = np.where(blocks["branches"] > 1, blocks["stride"], 0)
        work = e.tables.n_work
        fixed = (e.model, e.data(), np.zeros(work), np.zeros(work), self.sides)
        self._read: Callable[..., Any] = bind(read_modes, fixed, (np.array(e.home), np.array(e.home_joints)))

    def read(self, pose: Array, joints: Array) -> tuple[int, float]:
        """Status, and the platform's side (1.0, -1.0, 0.0 where singular) at a pose (7,) and joints (n_joints,).

        Both must be contiguous float64 arrays. The sides of the blocks are written to `sides`.
        """
        status, side = self._read(pose, joints)
        return status, side

    @property
    def branch(self) -> int:
        """Number of the working mode read last, as far as closed forms tell it."""
        return int(self._weights @ (self.sides < 0.0))
