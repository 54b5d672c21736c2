# SPDX-License-Identifier: Apache-2.0
"""The view of RViz: whole robots in it, whatever their size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_bringup.ros2_control import read_parameters, write_parameters
from pkm_description import load_mechanism
from pkm_description.picture import extent
from pkm_viewer.fitting import fitted_view

SHIPPED = Path(__file__).parents[2] / "rviz" / "pkm.rviz"
ROBOTS = ("agile_eye", "delta", "five_bar", "gough_stewart", "hexaglide", "tricept")  # small and large, flat and high
HALF_ANGLE = np.radians(22.5)  # RViz looks 45 degrees high


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    return read_parameters(SHIPPED)


def looked_at(view: dict[str, Any]) -> tuple[np.ndarray, float]:
    current = view["Visualization Manager"]["Views"]["Current"]
    return np.array([current["Focal Point"][axis] for axis in "XYZ"]), current["Distance"]


@pytest.mark.parametrize("name", ROBOTS)
def test_the_robot_fills_the_view(shipped: dict[str, Any], name: str) -> None:
    mechanism = load_mechanism(name)
    view = fitted_view(shipped, mechanism)
    assert view["Visualization Manager"]["Global Options"]["Fixed Frame"] == mechanism.base_link
    low, high = extent(mechanism)
    focus, distance = looked_at(view)
    farthest = np.linalg.norm(np.maximum(high - focus, focus - low))  # of the robot, from the middle of the picture
    assert 0.5 < farthest / (distance * np.sin(HALF_ANGLE)) < 1.0


@pytest.mark.parametrize(("limbs", "first"), [(3, 0.0), (3, 30.0), (4, 0.0), (4, 45.0)])
def test_no_limb_hides_another(shipped: dict[str, Any], limbs: int, first: float) -> None:
    """Limbs, or posts of a frame, at equal angles from a first one [deg]: how far right each is seen."""
    yaw = shipped["Visualization Manager"]["Views"]["Current"]["Yaw"]
    right = np.sin(np.radians(first) + 2.0 * np.pi * np.arange(limbs) / limbs - yaw)
    assert np.diff(np.sort([*right, 0.0])).min() > 0.2  # of the radius; 0 is the middle, where the platform is


def test_displays_follow_the_size(shipped: dict[str, Any]) -> None:
    def cell(name: str) -> float:
        displays = fitted_view(shipped, load_mechanism(name))["Visualization Manager"]["Displays"]
        return float(next(d for d in displays if d["Name"] == "Grid")["Cell Size"])

    assert cell("agile_eye") < 0.5 * cell("delta")


def test_a_written_view_is_read_back(shipped: dict[str, Any], tmp_path: Path) -> None:
    view = fitted_view(shipped, load_mechanism("five_bar"))
    write_parameters(view, tmp_path / "view.rviz")
    assert read_parameters(tmp_path / "view.rviz") == view
    assert shipped == read_parameters(SHIPPED)  # the template is left alone
