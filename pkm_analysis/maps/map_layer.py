# SPDX-License-Identifier: Apache-2.0
"""Maps as coloured sheets in the base frame, for the browser page and RViz."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import through
from pkm_analysis.layers.layer_file import Sheet, in_base_frame
from pkm_analysis.optional_library import optional_library
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from pkm_analysis.maps.map import Map

OPACITY = 200


def map_sheets(found: Map) -> list[Sheet]:
    """Sheets of a map: the plane of two coordinates, or of three the planes through home or the middle.

    Args:
        found: the map.

    Returns:
        The sheets.

    Raises:
        AnalysisError: one coordinate alone, or one that turns the platform.
    """
    dimension = len(found.axes)
    if dimension == 1:
        raise AnalysisError("layer", "a map over one coordinate is no surface", "vary two or three")
    if dimension == 2:
        return [_sheet(found, found.quantity.name, [slice(None), slice(None)])]
    sheets = []
    for cut, (c, axis) in enumerate(zip(found.domain.coordinates, found.axes, strict=True)):
        at = int(np.abs(axis - through(c, float(axis[0]), float(axis[-1]))).argmin())
        chosen: list[slice | int] = [slice(None)] * 3
        chosen[cut] = at
        sheets.append(_sheet(found, f"{found.quantity.name} at {c.label} = {axis[at]:.4g} {c.unit}", chosen))
    return sheets


def _sheet(found: Map, name: str, chosen: list[slice | int]) -> Sheet:
    """The part of a map's grid that is chosen along each axis, as triangles between nodes inside."""
    values = found.values[tuple(chosen)]
    axes = [np.atleast_1d(axis[part]) for axis, part in zip(found.axes, chosen, strict=True)]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    number = np.arange(values.size).reshape(values.shape)
    a, b, c, d = (number[i : i - 1 or None, j : j - 1 or None].ravel() for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    triangles = triangles[np.isfinite(values.ravel()[triangles]).all(axis=1)]
    used, renumbered = np.unique(triangles, return_inverse=True)
    colours = _colours(values.ravel()[used], found.shown)
    return Sheet(name, in_base_frame(found.domain, points[used]), renumbered.reshape(-1, 3), colours)


def _colours(values: Array, shown: tuple[float, float]) -> NDArray[np.uint8]:
    low, high = shown
    viridis = optional_library("matplotlib", "matplotlib", "colours of layers").colormaps["viridis"]
    shares = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)
    colours = np.array(viridis(shares, bytes=True), dtype=np.uint8)
    colours[:, 3] = OPACITY
    return colours
