# SPDX-License-Identifier: Apache-2.0
"""Layers in RViz: whoever subscribes late gets the markers, in the frame, the places and the colours of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from visualization_msgs.msg import Marker, MarkerArray

from pkm_analysis.layer_file import Sheet, read_layer, write_layer
from pkm_analysis.ros.layers_node import LayersNode, markers_of
from pkm_description.ros import topics

from .conftest import Graph

VIEW = Path(__file__).parents[2] / "rviz" / "pkm.rviz"


def test_markers_are_those_of_the_file(tmp_path: Path) -> None:
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    triangles = np.array([[0, 1, 2], [0, 2, 3]])
    colours = np.array([[255, 0, 0, 255], [0, 255, 0, 51], [0, 0, 255, 51], [0, 0, 0, 255]], dtype=np.uint8)
    file = write_layer(tmp_path / "a.glb", "loci", "1", "base", [Sheet("type 2", corners, triangles, colours)])
    (marker,) = markers_of(read_layer(file))
    assert marker.type == Marker.TRIANGLE_LIST
    assert (marker.ns, marker.header.frame_id) == ("loci: type 2", "base")
    places = np.array([[p.x, p.y, p.z] for p in marker.points]).reshape(2, 3, 3)
    np.testing.assert_allclose(places, corners[triangles], atol=1e-6)
    assert (marker.colors[1].g, marker.colors[1].a) == pytest.approx((1.0, 0.2))
    (prefixed,) = markers_of(read_layer(file), prefix="left/")
    assert prefixed.header.frame_id == "left/base"


def test_rviz_asks_for_what_is_published_and_latched() -> None:
    displays = yaml.safe_load(VIEW.read_text())["Visualization Manager"]["Displays"]
    asked = {
        one["Class"].rpartition("/")[2] + " " + one["Topic"]["Value"]: one["Topic"]
        for one in displays
        if "Topic" in one
    }
    assert set(asked) == {
        f"Path {topics.PLANNED_PATH}",
        f"Path {topics.PLATFORM_PATH}",
        f"MarkerArray {topics.ANALYSIS_LAYERS}",
    }
    assert {one["Durability Policy"] for one in asked.values()} == {"Transient Local"}


def test_who_is_new_gets_them_again_as_frames_may_come_after_them(graph: Graph, tmp_path: Path) -> None:
    corners, triangles = np.eye(3), np.array([[0, 1, 2]])
    sheet = Sheet("type 2", corners, triangles, np.full((3, 4), 255, dtype=np.uint8))
    graph.start(LayersNode, files=str(write_layer(tmp_path / "a.glb", "loci", "1", "base", [sheet])))
    heard = graph.listen(MarkerArray, topics.ANALYSIS_LAYERS)
    graph.wait(lambda: len(heard) >= 2)
    assert heard[0] == heard[1]
