# SPDX-License-Identifier: Apache-2.0
"""Fits RViz and the browser to the size of a robot, which varies by a factor of ten and more.
Corners of boxes are the lowest and highest x, y, z [m], in the base frame. Nothing here imports ROS.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkm_description.mechanism import Array, Mechanism
from pkm_description.picture import extent

FLOOR_CELLS = 20  # on a side, no less than a quarter of it under the robot
_FLAT = 0.3  # a robot less high than this fraction of its width is looked at from above
_TILT, _TILT_FLAT = 0.3, 1.0  # rad, of the line of sight below the horizon
_UPPER = 0.37  # of the height of a narrow picture, for the robot: controls take three fifths of it
_NARROW = 0.75  # aspect of a picture
_MARGIN = 1.12  # around what is seen
_CENTRINGS = 4  # what is near looks larger, so the middle of the picture is found step by step
_AZIMUTH = -0.85  # rad: from the right, a little from the front

_DISTANCE = 1.5  # of the eye, in diagonals of the robot: RViz looks 45 degrees wide


@dataclass(frozen=True, eq=False)
class Floor:
    """A square grid: its middle (3,) [m] and the edge of a cell [m]; `FLOOR_CELLS` on a side."""

    middle: Array
    cell: float

    @property
    def width(self) -> float:
        """Edge of the whole grid [m]."""
        return FLOOR_CELLS * self.cell


def diagonal(low: Array, high: Array) -> float:
    """Size of a box [m]; 1 where it is a point."""
    return float(np.linalg.norm(high - low)) or 1.0


def floor_under(low: Array, high: Array) -> Floor:
    """The floor for a robot in a box: a little below it, with cells of a round length."""
    size = diagonal(low, high)
    middle = 0.5 * (low + high)
    return Floor(np.array((middle[0], middle[1], low[2] - 0.1 * size)), round_length(4.0 * size / FLOOR_CELLS))


def is_flat(low: Array, high: Array) -> bool:
    """Whether a box is so flat that it is better looked at from above."""
    return bool(high[2] - low[2] < _FLAT * max(high[0] - low[0], high[1] - low[1]))


def view_of(points: Array, fov: float, aspect: float) -> tuple[Array, Array]:
    """Eye and target (3,) [m] of the closest view of all points (n, 3) [m]; `fov`: vertical angle [rad]. In a picture
    taller than wide (`aspect` < 1), a phone's, with controls over its lower half, points are in the upper one.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    tilt = _TILT_FLAT if is_flat(low, high) else _TILT
    back = np.array((np.cos(tilt) * np.cos(_AZIMUTH), np.cos(tilt) * np.sin(_AZIMUTH), np.sin(tilt)))
    right = np.array((-np.sin(_AZIMUTH), np.cos(_AZIMUTH), 0.0))
    up = np.cross(back, right)
    share = _UPPER if aspect < _NARROW else 1.0
    steep = np.tan(0.5 * fov)
    middle = 0.5 * (low + high)
    depth = 0.0
    for _ in range(_CENTRINGS):
        seen = (points - middle) @ np.array((right, up, back)).T
        depth = float(np.max(np.maximum(abs(seen[:, 1]) / share, abs(seen[:, 0]) / aspect) / steep + seen[:, 2]))
        depth = _MARGIN * max(depth, 1e-6)
        across = seen[:, :2] / (depth - seen[:, 2:])
        middle = middle + 0.5 * depth * (across.min(axis=0) + across.max(axis=0)) @ np.array((right, up))
    middle = middle - (1.0 - share) * steep * depth * up
    return middle + depth * back, middle


def rounded(value: float) -> float:
    """A length to three figures."""
    return float(f"{value:.3g}")


def round_length(value: float) -> float:
    """The largest of 1, 2, 5, times a power of ten, that is not above a length."""
    power = 10.0 ** np.floor(np.log10(value))
    return rounded(max(step for step in (1.0, 2.0, 5.0) if step * power <= value * (1.0 + 1e-9)) * power)


def fitted_view(template: Mapping[str, Any], mechanism: Mechanism) -> dict[str, Any]:
    """The RViz configuration in `template` with frame, view, grid, axes and path that suit a robot at home."""
    found: dict[str, Any] = copy.deepcopy(dict(template))
    manager = found["Visualization Manager"]
    low, high = extent(mechanism)
    size, floor = diagonal(low, high), floor_under(low, high)
    middle = 0.5 * (low + high)
    manager["Global Options"]["Fixed Frame"] = mechanism.base_link
    view = manager["Views"]["Current"]
    view["Distance"] = rounded(_DISTANCE * size)
    view["Focal Point"] = _vector(middle)
    if is_flat(low, high):
        view["Pitch"] = 1.0
    for display in manager["Displays"]:
        kind = display["Class"].rpartition("/")[2]
        if kind == "Grid":
            display["Cell Size"] = floor.cell
            display["Plane Cell Count"] = FLOOR_CELLS
            display["Offset"] = _vector(floor.middle)
        elif kind == "TF":
            display["Marker Scale"] = rounded(0.2 * size)
        elif kind == "Path":
            display["Line Width"] = rounded(0.004 * size)
    return found


def _vector(values: np.ndarray) -> dict[str, float]:
    return {axis: round(float(value), 4) for axis, value in zip("XYZ", values, strict=True)}
