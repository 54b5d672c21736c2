# SPDX-License-Identifier: Apache-2.0
"""The loop closures of a whole graph as functions of the positions of all its joints."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.position.closures import block_jacobian, block_residual, closed, turned_over
from pkm_kinematics.kernels.position.positions import place_block, write_block_rows
from pkm_kinematics.model.tables import Tables


class GraphEquations:
    """Closures of a graph that is one block, of n joints; bodies are where `gaps` placed them last."""

    def __init__(self, tables: Tables) -> None:
        self._model, self._data, self._block = tables.model, tables.data(), tables.blocks[0]
        self.state, self._rows = self._data.state, self._data.rows
        start, count, self.count, first = (int(self._block[name]) for name in ("start", "count", "rows", "rows_at"))
        self.span, self._equations = slice(start, start + count), slice(first, first + self.count)
        self._flat = np.empty(self.count * count)
        self.home: Array = self.state["q"][self.span].copy()
        self.sliding = tables.bodies["prismatic"][self.span] == 1

    def gaps(self, x: Array) -> Array:
        """Gaps (m,) with the joints at x (n,)."""
        self.state["q"][self.span] = x
        place_block(self._model.bodies, self._block, self.state)
        write_block_rows(self._model.closures, self._block, self.state, self._rows)
        return np.array(self._rows["gap"][self._equations])

    def slope(self) -> Array:
        """Derivatives (m, n): exact where the loops are closed, elsewhere good enough for Newton's method."""
        block_jacobian(self._model, self._data, self._block, self._flat, 0)
        return self._flat.reshape(self.count, -1).copy()

    @property
    def residual(self) -> float:
        """Largest gap [m]."""
        return float(block_residual(self._model.closures, self._block, self._rows))

    @property
    def genuine(self) -> bool:
        """False where axes that ought to coincide oppose each other, which the gaps do not show."""
        return not turned_over(self._model.closures, self._block, self.state)

    @property
    def closed(self) -> bool:
        """Whether the loops are closed."""
        return bool(closed(self._block, self.residual)) and self.genuine
