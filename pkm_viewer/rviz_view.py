# SPDX-License-Identifier: Apache-2.0
"""The RViz configuration for the size of a robot: made from rviz/pkm.rviz and the mechanism, without importing ROS.

RViz keeps lengths in its file (distance of the view, cells of the grid, axes of the frames), and robots differ by a
factor of ten and more.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pkm_description.mechanism import Mechanism
from pkm_description.picture import extent
from pkm_viewer.fitting import FLOOR_CELLS, diagonal, floor_under, is_flat, rounded

_DISTANCE = 1.5  # of the eye, in diagonals of the robot: RViz looks 45 degrees wide


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


def read_view(path: str | Path) -> dict[str, Any]:
    """The configuration in a file of RViz."""
    return dict(yaml.safe_load(Path(path).read_text()))


def write_view(view: Mapping[str, Any], path: str | Path) -> None:
    """Write a configuration to a file that RViz takes."""
    Path(path).write_text(yaml.safe_dump(dict(view), sort_keys=False))


def _vector(values: np.ndarray) -> dict[str, float]:
    return {axis: round(float(value), 4) for axis, value in zip("XYZ", values, strict=True)}
