# SPDX-License-Identifier: Apache-2.0
"""Prepares a border for mesh files, which identify corners by position alone."""

from __future__ import annotations

import numpy as np

from pkm_analysis.workspace.contour import Simplices
from pkm_description.mechanism import Array


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
