# SPDX-License-Identifier: Apache-2.0
"""First borders between the nodes of a grid: triangles of a surface, or the sides of a polygon."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.optional_library import optional_library
from pkm_analysis.requirements.membership import INSIDE
from pkm_analysis.workspace.border import Codes, bisect
from pkm_description.mechanism import Array

Simplices = NDArray[np.int64]


def first_border(
    codes: Codes, on_grid: NDArray[np.int32], axes: list[Array], tolerance: float
) -> tuple[Array, Simplices, NDArray[np.int32]]:
    """Corners (n, d) on the border, consistently oriented simplices (k, d), and the codes (n,) beyond corners.

    `on_grid` are the nodes' codes, `axes` their coordinates, evenly spaced; all beyond the grid is outside. Corners are
    within `tolerance` of the border.
    """
    steps = np.array([axis[1] - axis[0] for axis in axes])
    start = np.array([axis[0] for axis in axes]) - steps
    solid = np.pad((on_grid == INSIDE).astype(np.float32), 1)
    points, simplices = _surface(solid) if len(axes) == 3 else _polygon(solid)
    low, high = np.floor(points).astype(np.int64), np.ceil(points).astype(np.int64)
    low_inside = solid[tuple(low.T)] > 0.5
    ends = start + steps * low, start + steps * high
    inside = np.where(low_inside[:, None], *ends)
    outside = np.where(low_inside[:, None], *ends[::-1])
    corners, stops = bisect(codes, inside, outside, tolerance)
    return corners, simplices, stops


def _surface(solid: Array) -> tuple[Array, Simplices]:
    measure = optional_library("skimage.measure", "scikit-image", "meshes of workspaces")
    points, triangles, _, _ = measure.marching_cubes(solid, 0.5, gradient_direction="ascent")
    points = np.round(2.0 * points) / 2.0  # halfway between two nodes, all of them
    return np.asarray(points, dtype=np.float64), np.asarray(triangles, dtype=np.int64)


def _polygon(solid: Array) -> tuple[Array, Simplices]:
    measure = optional_library("skimage.measure", "scikit-image", "borders of workspaces")
    points, sides, at = [np.empty((0, 2))], [np.empty((0, 2), dtype=np.int64)], 0
    for contour in measure.find_contours(solid, 0.5):
        ring = np.round(2.0 * contour[:-1]) / 2.0  # the last point is the first again
        number = at + np.arange(len(ring))
        points.append(ring)
        sides.append(np.stack([number, np.roll(number, -1)], axis=1))
        at += len(ring)
    return np.vstack(points), np.vstack(sides)
