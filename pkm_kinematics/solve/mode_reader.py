# SPDX-License-Identifier: Apache-2.0
"""One compiled call that tells on which sides of its singularities a configuration is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.binding import bind
from pkm_kinematics.kernels.path.sides import read_modes
from pkm_kinematics.solve.engine import Engine


class ModeReader:
    """On which sides of the singularities configurations are; see `kernels.path.sides`. Not for several threads."""

    def __init__(self, engine: Engine) -> None:
        e = engine
        self.sides = np.ones(len(e.tables.blocks))
        blocks = e.tables.blocks
        self._weights = np.where(blocks["branches"] > 1, blocks["stride"], 0)
        work = e.tables.n_work
        fixed = (e.model, e.data(), np.zeros(work), np.zeros(work), self.sides)
        self._read: Callable[..., Any] = bind(read_modes, fixed, (np.array(e.home), np.array(e.home_joints)))

    def read(self, pose: Array, joints: Array) -> tuple[int, float]:
        """The modes of a configuration; those of the blocks are written to `sides`.

        Args:
            pose: (7,), a contiguous float64 array.
            joints: (n_joints,), a contiguous float64 array.

        Returns:
            Status, and the side of the platform: 1.0, -1.0, 0.0 where singular.
        """
        status, side = self._read(pose, joints)
        return status, side

    @property
    def branch(self) -> int:
        """Number of the working mode that was read last, as far as closed forms tell it."""
        return int(self._weights @ (self.sides < 0.0))
