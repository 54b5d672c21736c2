# SPDX-License-Identifier: Apache-2.0
"""The level surface of numbers at the nodes of a grid (Lorensen and Cline, "Marching cubes", 1987)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.optional_library import optional_library
from pkm_description.mechanism import Array

NONE = np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)


def level_surface(values: Array, level: float) -> tuple[Array, NDArray[np.int64]]:
    """Corners (k, 3) and triangles (t, 3) where values (l, m, n) at nodes cross a level, in cells without NaN.

    Corners are in grid steps from the first node, each on an edge of a cell. Needs scikit-image, else `AnalysisError`.
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
