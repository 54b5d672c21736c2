# SPDX-License-Identifier: Apache-2.0
"""Distances of two shapes by the collision library coal; no other module uses it."""

from __future__ import annotations

from typing import Any

from pkm_analysis.collision.bodies import Body, vertices_of
from pkm_analysis.optional_library import optional_library
from pkm_description.mechanism import Array
from pkm_description.urdf.visuals import Visual


class ExactDistances:
    """Distances between the shapes of bodies; `AnalysisError` where coal is not installed."""

    def __init__(self, bodies: list[Body]) -> None:
        self._coal = optional_library("coal", "coal", "clearances between bodies")
        self._request = self._coal.DistanceRequest()
        self._geometry = [self._made(shape) for body in bodies for shape in body.shapes]
        self._frames = [(shape.frame[:3, :3], shape.frame[:3, 3]) for body in bodies for shape in body.shapes]

    def _made(self, shape: Visual) -> Any:
        coal, size = self._coal, [float(v) for v in shape.size]
        if shape.shape == "sphere":
            return coal.Sphere(*size)
        if shape.shape == "cylinder":
            return coal.Cylinder(*size)
        if shape.shape == "box":
            return coal.Box(*size)
        vertices, triangles = vertices_of(shape)
        mesh = coal.BVHModelOBBRSS()
        mesh.beginModel(len(triangles), len(vertices))
        mesh.addVertices(vertices)
        for triangle in triangles:
            mesh.addTriangle(*(vertices[k] for k in triangle))
        mesh.endModel()
        return mesh

    def between(self, i: int, first: tuple[Array, Array], j: int, second: tuple[Array, Array]) -> float:
        """Distance [m] of shapes i and j on bodies at (rotation, position); not positive in contact."""
        coal = self._coal
        result = coal.DistanceResult()
        placed = []
        for k, (turn, place) in ((i, first), (j, second)):
            own_turn, own_place = self._frames[k]
            placed.append(coal.Transform3s(turn @ own_turn, turn @ own_place + place))
        return float(coal.distance(self._geometry[i], placed[0], self._geometry[j], placed[1], self._request, result))
