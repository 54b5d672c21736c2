# SPDX-License-Identifier: Apache-2.0
"""Closed borders for mesh files: each side in two triangles, nothing lost."""

import numpy as np

from pkm_analysis.workspace.border import welded

SIDES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])  # of a tetrahedron, outward


def signed_volume(corners: np.ndarray, triangles: np.ndarray) -> float:
    return float(np.linalg.det(corners[triangles]).sum()) / 6.0


def test_bodies_that_share_a_side_are_parted() -> None:
    """Pairs of tetrahedra that touch along a whole side, as many as a slow way would take minutes for."""
    pairs = 2000
    one = np.array([[0.0, 0, 0], [1, 0, 0], [0.5, 1, 0.2], [0.5, 0.8, 1]])
    pair = np.vstack([one, one * [1, -1, 1]])
    corners = np.concatenate([pair + np.array([0, 0, 3.0 * k]) for k in range(pairs)])
    both = np.vstack([SIDES, SIDES[:, ::-1] + 4])
    triangles = np.concatenate([both + 8 * k for k in range(pairs)])
    points, found = welded(corners, triangles)
    _, count = np.unique(np.sort(found[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0, return_counts=True)
    assert (count == 2).all()
    assert len(found) == len(triangles) + 2 * pairs
    assert len(points) == 7 * pairs
    volume = signed_volume(corners, triangles)
    assert abs(signed_volume(points, found) / volume - 1.0) < 2e-3  # corners in the middle are off by a thousandth
