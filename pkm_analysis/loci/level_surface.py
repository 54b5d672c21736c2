# SPDX-License-Identifier: Apache-2.0
"""The surface of one value of numbers at the nodes of a grid (Lorensen and Cline, "Marching cubes", 1987)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.optional_library import optional_library
from pkm_description.mechanism import Array

NONE = np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)


def level_surface(values: Array, level: float) -> tuple[Array, NDArray[np.int64]]:
    """Where numbers have a value, between nodes of a grid of cells whose corners are all known.

    Args:
        values: (l, m, n) at the nodes, NaN where they are not known.
        level: the value.

    Returns:
        Corners (k, 3), counted in steps of the grid from its first node, each on an edge of a cell; and triangles
        (t, 3) of them. Both are empty where the value is not met.

    Raises:
        AnalysisError: scikit-image is not installed.
    """
    marching = optional_library("skimage.measure", "scikit-image", "surfaces of one value")
    known = np.isfinite(values)
    cells = np.ones(tuple(n - 1 for n in values.shape), dtype=bool)
    for corner in np.ndindex(2, 2, 2):
        cells &= known[tuple(slice(c, n - 1 + c) for c, n in zip(corner, values.shape, strict=True))]
    mask = np.zeros(values.shape, dtype=bool)
    mask[1:, 1:, 1:] = cells
    filled = np.where(known, values, level + 1.0)
    if not (cells.any() and filled[known].min() < level < filled[known].max()):
        return NONE
    try:
        corners, triangles, _, _ = marching.marching_cubes(filled, level, mask=mask)
    except (RuntimeError, ValueError):  # no cell with all its corners known has the value
        return NONE
    return np.asarray(corners, dtype=np.float64), np.asarray(triangles, dtype=np.int64)
