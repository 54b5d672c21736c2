# SPDX-License-Identifier: Apache-2.0
"""Nested isosurfaces of a map over a volume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.loci.level_surface import level_surface
from pkm_description.mechanism import Array

SHARES = (25.0, 55.0, 85.0)  # percent of the volume where the quantity is less than on each surface
ROUND = 40.0  # values are rounded to about this part of the range between the first and the last


@dataclass(frozen=True, eq=False)
class Isosurface:
    """Where a quantity has a value: corners (n, 3) [m, rad] and triangles (k, 3)."""

    value: float
    corners: Array
    triangles: NDArray[np.int64]


def round_values(values: Array) -> tuple[float, ...]:
    """A few increasing round values that divide a volume into similar parts; none where all values are equal."""
    found = np.nanpercentile(values, SHARES)
    span = float(found[-1] - found[0])
    if not span > 0.0:
        return ()
    step = 10.0 ** np.floor(np.log10(span / ROUND))
    step *= max(m for m in (1.0, 2.0, 5.0, 10.0) if m * step <= span / ROUND * (1.0 + 1e-9))
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return tuple(float(f"{v:.12g}") for v in np.unique(step * np.round(found / step)) if low < v < high)


def isosurfaces(axes: Sequence[Array], values: Array, levels: Sequence[float]) -> tuple[Isosurface, ...]:
    """Isosurfaces over the three coordinates of a map, in the order of the levels, by linear interpolation.

    They end where the robot cannot be, NaN in values (l, m, n), and at the ends of the ranges; empty ones are left out.
    `axes` are values at the nodes [m, rad], evenly spaced. Needs scikit-image, else `AnalysisError`.
    """
    start, steps = np.array([axis[0] for axis in axes]), np.array([axis[1] - axis[0] for axis in axes])
    found = []
    for level in levels:
        corners, triangles = level_surface(values, level)
        if len(triangles):
            found.append(Isosurface(level, start + steps * corners, triangles))
    return tuple(found)
