# SPDX-License-Identifier: Apache-2.0
"""Borders between points inside and outside: by bisection, a first one on a grid, and welded for mesh files."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.requirements.membership import INSIDE
from pkm_description.mechanism import Array
from pkm_runtime.optional import optional_library

Codes = Callable[[Array], NDArray[np.int32]]


Simplices = NDArray[np.int64]


def bisect(codes: Codes, inside: Array, outside: Array, tolerance: float) -> tuple[Array, NDArray[np.int32]]:
    """Border points (n, d), within `tolerance` along lines from inside to outside; and the codes (n,) just outside."""
    inside, outside = inside.copy(), outside.copy()
    stops = codes(outside)
    longest = float(np.linalg.norm(outside - inside, axis=1).max(initial=0.0))
    for _ in range(max(0, ceil(log2(longest / tolerance))) if longest > 0.0 else 0):
        middle = 0.5 * (inside + outside)
        found = codes(middle)
        within = found == INSIDE
        inside[within] = middle[within]
        outside[~within] = middle[~within]
        stops[~within] = found[~within]
    return 0.5 * (inside + outside), stops


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


def welded(corners: Array, triangles: Simplices) -> tuple[Array, Simplices]:
    """Corners (m, 3), distinct in single precision as in .stl, and triangles (l, 3) of a closed border.

    At the end of a range, corners coincide. Degenerate parts are removed: triangles without a third corner, and pairs
    of them back to back. The border stays closed: each side loses as many triangles of one orientation as of the other.
    Each side of `triangles` (k, 3) must be in two of them.
    """
    _, first, number = np.unique(corners.astype(np.float32), axis=0, return_index=True, return_inverse=True)
    kept = number.reshape(-1)[triangles]
    a, b, c = kept.T
    kept = kept[(a != b) & (b != c) & (c != a)]
    turn = np.argmin(kept, axis=1)[:, None]
    kept = np.take_along_axis(kept, (turn + np.arange(3)) % 3, axis=1)  # the lowest corner first, in the same sense
    ordered = np.sort(kept, axis=1)
    sense = np.where(kept[:, 1] == ordered[:, 1], 1, -1)
    same, which = np.unique(ordered, axis=0, return_inverse=True)
    net = np.bincount(which.reshape(-1), sense, len(same)).astype(np.int64)
    one_way = np.where((net > 0)[:, None], same, same[:, [0, 2, 1]])
    left = np.repeat(one_way, np.abs(net), axis=0)
    used, renumbered = np.unique(left, return_inverse=True)
    return corners[first[used]], renumbered.reshape(-1, 3)
