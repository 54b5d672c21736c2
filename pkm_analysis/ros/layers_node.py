# SPDX-License-Identifier: Apache-2.0
"""Shows layers, files that `pkm analyse` wrote, in RViz: latched markers, each sheet in a namespace of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from geometry_msgs.msg import Point
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.layer_file import Layer, read_layer
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.process import run_node
from pkm_description.ros.topics import ANALYSIS_LAYERS, LATCHED

_AGAIN, _AGAIN_EVERY = 5, 2.0  # times, s: for new subscribers


class LayersNode(Node):
    """Publishes the sheets of layers, latched for late subscribers."""

    def __init__(self) -> None:
        super().__init__("layers")
        text = declare(self, "files", "", "layers to show, .glb files of pkm analyse, with commas between", fixed=True)
        prefix = declare(
            self, "frame_prefix", "", "before the frame of each layer, as before those of the robot", fixed=True
        )
        markers: list[Marker] = []
        for name in filter(None, (word.strip() for word in text.split(","))):
            try:
                markers += markers_of(read_layer(Path(name)), len(markers), prefix)
            except AnalysisError as error:
                self.get_logger().error(str(error))
        if not markers:
            self.get_logger().error("the parameter files names no layer that can be shown")
        self._markers = MarkerArray(markers=markers)
        self._publisher = self.create_publisher(MarkerArray, ANALYSIS_LAYERS, LATCHED)
        self._publisher.publish(self._markers)
        self._readers, self._repeats = 0, 0
        self._timer = steady_timer(self, _AGAIN_EVERY, self._again)
        self.get_logger().info(f"{len(markers)} sheets on {self._publisher.topic_name}")

    def _again(self) -> None:
        """Publish a few more times for new subscribers: RViz drops a marker that comes before its frame is known."""
        readers = self._publisher.get_subscription_count()
        if readers > self._readers:
            self._repeats = _AGAIN
        self._readers = readers
        if self._repeats:
            self._repeats -= 1
            self._publisher.publish(self._markers)


def markers_of(layer: Layer, first: int = 0, prefix: str = "") -> list[Marker]:
    """Markers of a layer in its prefixed frame: per sheet a triangle list, in a namespace that RViz can switch."""
    found = []
    for number, sheet in enumerate(layer.sheets, start=first):
        marker = Marker(ns=f"{layer.title}: {sheet.name}", id=number, type=Marker.TRIANGLE_LIST, action=Marker.ADD)
        marker.header.frame_id = prefix + layer.frame
        marker.pose.orientation.w = 1.0
        marker.scale.x = marker.scale.y = marker.scale.z = 1.0
        order = np.asarray(sheet.triangles).ravel()
        shades = np.asarray(sheet.colours, dtype=np.float64)[order] / 255.0
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in np.asarray(sheet.corners, dtype=float)[order].tolist()]
        marker.colors = [ColorRGBA(r=r, g=g, b=b, a=a) for r, g, b, a in shades.tolist()]
        marker.color.a = 1.0
        found.append(marker)
    return found


main = partial(run_node, LayersNode)
