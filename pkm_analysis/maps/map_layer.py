# SPDX-License-Identifier: Apache-2.0
"""Maps as coloured sheets in the base frame, for the browser page and RViz."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, Range, through
from pkm_analysis.layers.layer_file import Sheet, in_base_frame
from pkm_analysis.maps.isosurfaces import Isosurface
from pkm_analysis.optional_library import optional_library
from pkm_description.introduction import measure
from pkm_description.mechanism import Array

OPACITY = 200
THIN = 110  # opacity of nested surfaces


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
