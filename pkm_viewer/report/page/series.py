# SPDX-License-Identifier: Apache-2.0
"""Series for drawing: fewer points with the same peaks, rotations without jumps, the plane of a path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array

BINS = 1200  # a panel is not that many pixels wide
_STILL = 1e-6  # m
_UNTURNED = 1e-3  # rad


def envelope(x: Array, y: Array) -> tuple[Array, Array]:
    """At most 2 `BINS` points of a curve x, y (n,) that draw the same picture: lowest and highest of each bin."""
    if len(x) <= 2 * BINS:
        return x, y
    edges = np.linspace(0, len(x), BINS + 1).astype(np.int64)
    picked = []
    for begin, end in pairwise(edges):
        part = y[begin:end]
        low, high = begin + int(np.argmin(part)), begin + int(np.argmax(part))
        picked += [min(low, high), max(low, high)]
    return x[picked], y[picked]


def rms_and_max(x: Array, y: Array, bins: int) -> tuple[Array, Array, Array]:
    """The middle (bins,) of each bin, and the RMS and the maximum of y (n,) in it."""
    edges = np.linspace(0, len(x), bins + 1).astype(np.int64)
    parts = [slice(begin, end) for begin, end in pairwise(edges) if end > begin]
    rms = np.array([np.sqrt(np.mean(y[part] ** 2)) for part in parts])
    return np.array([x[part].mean() for part in parts]), rms, np.array([y[part].max() for part in parts])


def moves(poses: Array) -> bool:
    """Whether the position changes along poses (n, 7)."""
    return bool(np.ptp(poses[:, :3], axis=0).max() > _STILL)


def turns(poses: Array) -> bool:
    """Whether the orientation changes along poses (n, 7)."""
    return bool(np.abs(rotation_vectors(poses, poses[0])).max() > _UNTURNED)


def rotation_vectors(poses: Array, start: Array) -> Array:
    """Rotation vectors (n, 3) [rad], base axes, from a pose (7,) to consecutive poses (n, 7); NaN propagates.

    They have no jumps: beyond half a turn a vector goes on growing.
    """
    turned = np.full((len(poses), 3), np.nan)
    known = np.isfinite(poses[:, 3:]).all(axis=1)
    turned[known] = (Rotation.from_quat(poses[known, 3:]) * Rotation.from_quat(start[3:]).inv()).as_rotvec()
    angle = np.linalg.norm(turned, axis=1)
    jumps = np.flatnonzero(np.linalg.norm(np.diff(turned, axis=0), axis=1) > np.pi)
    for jump in jumps:
        axis = turned[jump + 1] / angle[jump + 1]
        rounds = np.round((turned[jump] - turned[jump + 1]) @ axis / (2.0 * np.pi))
        after = slice(jump + 1, None)
        units = turned[after] / np.maximum(np.linalg.norm(turned[after], axis=1, keepdims=True), 1e-12)
        turned[after] += 2.0 * np.pi * rounds * units * np.sign(units @ axis)[:, None]
    return np.asarray(turned, dtype=np.float64)


def widest_plane(points: Array) -> tuple[int, int, int]:
    """The two coordinates in which points (n, 3) extend most, in order, and the third."""
    spans = np.ptp(points, axis=0)
    third = int(np.argmin(spans))
    if np.isclose(spans[2], spans[third]) and np.allclose(np.delete(spans, int(np.argmax(spans))), spans[third]):
        third = 1 if int(np.argmax(spans)) != 1 else 0  # a straight line: show its height
    first, second = (axis for axis in range(3) if axis != third)
    return first, second, third
