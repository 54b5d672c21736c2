# SPDX-License-Identifier: Apache-2.0
"""Generalised inverses of blocks in recordings: by elimination, in an order of pivots that is chosen near home.

Equations of a limb have many zeros, which elimination keeps and orthogonalisation does not. With more equations than
joints, those without a pivot are left out: rates and closure forces in possible motions are the same by every
generalised inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pkm_kinematics.kernels.position.closures import inverse_by_rows
from pkm_runtime.codegen import trace
from pkm_runtime.codegen.tape import Number, call, value

# Part of a joint's column that its pivot must keep, else the general kernels answer: rounding grows by one over it.
FIRM = 1e-3
LARGE = 0.1  # of the largest part: pivots to choose from, by how few zeros they cost


def inverse_in_fixed_order(work: Any, at: int, m: int, n: int, to: int, idle: int) -> Number:
    """In place of `inverse_by_rows`."""
    if idle:
        return trace(inverse_by_rows)(work, at, m, n, to, idle)
    columns, identity = range(n), np.eye(m).tolist()
    rows = [[*work[at + r * n : at + r * n + n], *identity[r]] for r in range(m)]
    squares = [sum(row[c] * row[c] for row in rows) for c in columns]
    free, pivots = set(range(m)), dict[int, int]()
    for _ in columns:
        found = _pivot(rows, free, set(columns) - set(pivots), squares)
        if found is None:
            return 0.0
        r, c = found
        mine, pivot = rows[r], rows[r][c]
        if not pivot * pivot > FIRM * FIRM * squares[c]:
            return 0.0
        mine[:] = [x * (1.0 / pivot) for x in mine]
        mine[c] = 1.0
        for other in rows:
            if other is not mine and _there(factor := other[c]):
                other[:] = [x - factor * y for x, y in zip(other, mine, strict=True)]
                other[c] = 0.0
        free.remove(r)
        pivots[c] = r
    inverted: Number = 0.0
    for c, r in pivots.items():
        work[to + c * m : to + c * m + m] = rows[r][n:]
        inverted = inverted + squares[c] * sum(x * x for x in rows[r][n:])
    return call("sqrt", n / inverted)


def _there(x: Number) -> bool:
    """Whether a number is not known to be zero."""
    return not (isinstance(x, float) and x == 0.0)


def _pivot(rows: list[list[Number]], free: set[int], left: set[int], squares: list[Number]) -> tuple[int, int] | None:
    """Row and column of the pivot that costs the fewest zeros, of those that are large; None where all are zero."""
    part = {(r, c): abs(value(rows[r][c])) / value(squares[c]) ** 0.5 for r in free for c in left if _there(rows[r][c])}
    largest = max(part.values(), default=0.0)

    def cost(at: tuple[int, int]) -> tuple[int, float]:
        r, c = at
        others = sum(_there(row[c]) for row in rows) - 1
        return others * sum(map(_there, rows[r])), -part[at]

    return min((at for at in part if part[at] > LARGE * largest > 0.0), key=cost, default=None)
