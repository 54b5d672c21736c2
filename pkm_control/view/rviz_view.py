# SPDX-License-Identifier: Apache-2.0
"""What RViz shows, fitted to the size of a robot: made from rviz/pkm.rviz and the mechanism.

RViz keeps lengths in its file (distance of the view, cells of the grid, axes of the frames), and robots differ by a
factor of ten and more. Plain data: nothing here imports ROS.
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

_DISTANCE = 1.5  # of the eye, in diagonals of the robot: RViz looks 45 degrees wide
_FLAT = 0.3  # a robot less high than this fraction of its width is looked at from above
_CELLS = 20.0  # of the grid, on a side, no less than a quarter of it under the robot


def fitted_view(template: Mapping[str, Any], mechanism: Mechanism) -> dict[str, Any]:
    """Return the RViz configuration in `template` with frame, view, grid, axes and path that suit a robot at home."""
    found: dict[str, Any] = copy.deepcopy(dict(template))
    manager = found["Visualization Manager"]
    low, high = extent(mechanism)
    size = float(np.linalg.norm(high - low)) or 1.0
    middle = 0.5 * (low + high)
    manager["Global Options"]["Fixed Frame"] = mechanism.base_link
    view = manager["Views"]["Current"]
    view["Distance"] = _rounded(_DISTANCE * size)
    view["Focal Point"] = _vector(middle)
    if high[2] - low[2] < _FLAT * max(high[0] - low[0], high[1] - low[1]):
        view["Pitch"] = 1.0
    for display in manager["Displays"]:
        kind = display["Class"].rpartition("/")[2]
        if kind == "Grid":
            display["Cell Size"] = _round_length(4.0 * size / _CELLS)
            display["Plane Cell Count"] = int(_CELLS)
            display["Offset"] = _vector(np.array((middle[0], middle[1], low[2] - 0.1 * size)))
        elif kind == "TF":
            display["Marker Scale"] = _rounded(0.2 * size)
        elif kind == "Path":
            display["Line Width"] = _rounded(0.004 * size)
    return found


def read_view(path: str | Path) -> dict[str, Any]:
    """Return the configuration in a file of RViz."""
    return dict(yaml.safe_load(Path(path).read_text()))


def write_view(view: Mapping[str, Any], path: str | Path) -> None:
    """Write a configuration to a file that RViz takes."""
    Path(path).write_text(yaml.safe_dump(dict(view), sort_keys=False))


def _rounded(value: float) -> float:
    """Return a length to three figures."""
    return float(f"{value:.3g}")


def _round_length(value: float) -> float:
    """Return the largest of 1, 2, 5, times a power of ten, that is not above a length."""
    power = 10.0 ** np.floor(np.log10(value))
    return _rounded(max(step for step in (1.0, 2.0, 5.0) if step * power <= value * (1.0 + 1e-9)) * power)


def _vector(values: np.ndarray) -> dict[str, float]:
    return {axis: round(float(value), 4) for axis, value in zip("XYZ", values, strict=True)}
