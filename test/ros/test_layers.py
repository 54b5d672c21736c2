# SPDX-License-Identifier: Apache-2.0
"""Layers in RViz: whoever subscribes late gets the markers, in the frame, the places and the colours of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from visualization_msgs.msg import Marker

from pkm_analysis.layers.layer_file import Sheet, read_layer, write_layer
from pkm_analysis.ros.layers_node import markers_of


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
