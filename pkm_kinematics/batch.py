# SPDX-License-Identifier: Apache-2.0
"""Arrays with leading axes: brought to rows before a solve, and solved on all cores."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.errors import PkmError
from pkm_description.mechanism import Array

BATCH = 512  # rows below which threads cost more than they bring


class ShapeError(PkmError):
    """An array of the wrong shape."""


def as_rows(values: ArrayLike, width: int, what: str) -> tuple[Array, tuple[int, ...]]:
    """Values as rows.

    Args:
        values: (..., width).
        width: of a row.
        what: name of the values, for the message.

    Returns:
        A contiguous array (n, width), and the leading axes.

    Raises:
        ShapeError: another shape.
    """
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != width:
        raise ShapeError(f"{what}: expected (..., {width}), got {array.shape}")
    return array.reshape(-1, width), array.shape[:-1]


def rows_for(values: ArrayLike, width: int, n: int, what: str) -> Array:
    """Values as rows to go with others.

    Args:
        values: (..., width), one row or n.
        width: of a row.
        n: number of the others.
        what: name of the values, for the message.

    Returns:
        (1, width) or (n, width).

    Raises:
        ShapeError: another shape.
    """
    rows, _ = as_rows(values, width, what)
    if len(rows) not in (1, n):
        raise ShapeError(f"{what}: expected 1 or {n} rows of {width}, got {len(rows)}")
    return rows


def over_cores(part: Callable[[slice], None], n: int) -> None:
    """Call `part(slice)` for slices that cover range(n), in threads where n is large; kernels release the GIL."""
    cores = 1 if n < BATCH else os.cpu_count() or 1
    if cores == 1:
        part(slice(0, n))
        return
    edges = np.linspace(0, n, cores + 1).astype(int)
    with ThreadPoolExecutor(cores) as pool:
        for done in [pool.submit(part, slice(a, b)) for a, b in itertools.pairwise(edges)]:
            done.result()
