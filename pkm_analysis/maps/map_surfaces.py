# SPDX-License-Identifier: Apache-2.0
"""Surfaces of one value over a volume, and maps as coloured sheets in the base frame, for the browser page and RViz.

A level surface is found by marching cubes (Lorensen and Cline, "Marching cubes", 1987).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, Range, through
from pkm_analysis.layer_file import Sheet, in_base_frame
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure
from pkm_runtime.optional import optional_library

NONE = np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)


SHARES = (25.0, 55.0, 85.0)  # percent of the volume where the quantity is less than on each surface
ROUND = 40.0  # values are rounded to about this part of the range between the first and the last
OPACITY = 200
THIN = 110  # opacity of nested surfaces


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


def map_sheets(domain: Domain, axes: Sequence[Array], values: Array, name: str, shown: Range) -> list[Sheet]:
    """Sheets of a map: the plane of two coordinates, or of three the planes through home or the middle.

    `axes` [m, rad] and `values`, NaN where the robot cannot be, are at the nodes; `shown` are the values of the darkest
    and the brightest colour. `AnalysisError` for a single coordinate, or one that rotates the platform.
    """
    if len(axes) == 1:
        raise AnalysisError("layer", "a map over one coordinate is no surface", "vary two or three")
    if len(axes) == 2:
        return [_sheet(domain, axes, values, name, shown)]
    sheets = []
    for cut, (c, axis) in enumerate(zip(domain.coordinates, axes, strict=True)):
        at = int(np.abs(axis - through(c, float(axis[0]), float(axis[-1]))).argmin())
        plane = [axis[at : at + 1] if k == cut else other for k, other in enumerate(axes)]
        there = f"{name} at {c.label} = {axis[at]:.4g} {c.unit}"
        sheets.append(_sheet(domain, plane, np.asarray(np.take(values, at, axis=cut)), there, shown))
    return sheets


def surface_sheets(domain: Domain, surfaces: Sequence[Isosurface], name: str, unit: str, shown: Range) -> list[Sheet]:
    """Sheets of isosurfaces in the map's colours, as `map_sheets`; `AnalysisError` where a coordinate is an angle."""
    found = []
    for one in surfaces:
        colours = colours_of(np.full(len(one.corners), one.value), shown, THIN)
        title = f"{name} = {measure(one.value)}" + ("" if unit == "1" else f" {unit}")
        found.append(Sheet(title, in_base_frame(domain, one.corners), one.triangles, colours))
    return found


def _sheet(domain: Domain, axes: Sequence[Array], values: Array, name: str, shown: Range) -> Sheet:
    """Values (m, n) at the nodes of a plane as triangles between nodes inside."""
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    number = np.arange(values.size).reshape(values.shape)
    a, b, c, d = (number[i : i - 1 or None, j : j - 1 or None].ravel() for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    triangles = triangles[np.isfinite(values.ravel()[triangles]).all(axis=1)]
    used, renumbered = np.unique(triangles, return_inverse=True)
    return Sheet(
        name, in_base_frame(domain, points[used]), renumbered.reshape(-1, 3), colours_of(values.ravel()[used], shown)
    )


def colours_of(values: Array, shown: Range, opacity: int = OPACITY) -> NDArray[np.uint8]:
    """Colours (n, 4), 0 to 255, of values (n,); `shown` are the darkest and the brightest value."""
    low, high = shown
    viridis = optional_library("matplotlib", "matplotlib", "colours of layers").colormaps["viridis"]
    shares = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)
    colours = np.array(viridis(shares, bytes=True), dtype=np.uint8)
    colours[:, 3] = opacity
    return colours
