# SPDX-License-Identifier: Apache-2.0
"""Singularities of type 1, type 2, of the constraints and inside limbs as surfaces over three coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Range
from pkm_analysis.kernels.pose_quantities import REACH, TYPE2
from pkm_analysis.layer_file import Sheet, in_base_frame, write_layer
from pkm_analysis.maps import level_surface
from pkm_analysis.regions.grid_graph import BETWEEN, CONSTRAINT, LIMB, TYPE_2, GridGraph, OverGrid
from pkm_analysis.requirements.conditions import Membership
from pkm_analysis.requirements.quantities import EVERYWHERE, singular_everywhere
from pkm_analysis.workspace.border import bisect, extent, facet_sizes
from pkm_description.mechanism import Array
from pkm_runtime.describable import counted, measure

FINE = 1e-8  # of a step: how far a corner may be from type 1 and type 2, along an edge of the grid
TYPE_1 = "type 1, a limb stretched or folded"
LOCUS_COLOURS = {TYPE_1: (31, 79, 214), BETWEEN[TYPE_2]: (214, 39, 40), BETWEEN[CONSTRAINT]: (170, 51, 119)}
OTHER = (34, 136, 51)
OPACITY = 150


@dataclass(frozen=True, eq=False)
class Locus:
    """A surface of singularities: corners (n, 3) [m, rad] and triangles (k, 3)."""

    name: str
    corners: Array
    triangles: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Loci(OverGrid):
    """Surfaces of singularities of a robot in one working mode; `notes` say what cannot be said, and why."""

    _picture: ClassVar[str] = "singularity_pictures.loci_picture"

    graph: GridGraph
    loci: tuple[Locus, ...]
    notes: tuple[str, ...] = ()

    def _summary(self) -> str:
        return f"{self.membership.robot.name}: {counted(len(self.loci), 'kind')} of singularities"

    def _details(self) -> list[str]:
        lines = [f"{name}: {measure(size)} m^2" for name, size in self.sizes.items()]
        return [*lines, *self.notes, *self._grid]

    @property
    def sizes(self) -> dict[str, float]:
        """Area [m^2] of each, angles at the characteristic length."""
        scale = self.graph.scale
        return {one.name: float(facet_sizes(one.corners * scale, one.triangles).sum()) for one in self.loci}

    def save(self, path: str | Path) -> Path:
        """Write a .glb layer for the browser page and RViz; `AnalysisError` unless coordinates are lengths."""
        sheets = []
        for one in self.loci:
            shade = np.array([*LOCUS_COLOURS.get(one.name, OTHER), OPACITY], dtype=np.uint8)
            colours = np.tile(shade, (len(one.corners), 1))
            sheets.append(Sheet(one.name, in_base_frame(self.domain, one.corners), one.triangles, colours))
        robot = self.membership.robot
        return write_layer(path, f"singularities of {robot.name}", "1", robot.mechanism.base_link, sheets)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**self.asked, "quantity": "loci of singularities", "areas": self.sizes, "notes": list(self.notes)}


def loci(conditions: Membership, given: Mapping[str, Range], resolution: int | None = None) -> Loci:
    """Find the loci over three coordinates, `given` ranges [m, rad] by full name; the workspace's extent for others.

    Type 1 and type 2 change sign, which locates their surfaces; corners are then refined along the grid's edges.
    Margins of the constraints and inside limbs have no sign: they get one, region by region, that changes where a
    margin dips to zero between two nodes. `AnalysisError` where the limbs reach nothing.
    """
    if conditions.domain.dimension != 3:
        problem = f"surfaces need three coordinates, and there are {conditions.domain.dimension}"
        raise AnalysisError("loci", problem, "vary three; of two, a map shows the curves")
    domain = conditions.domain.within(extent(conditions, given))
    free = Membership(conditions.robot, domain, (), joint_limits=False, platform_limits=False)
    graph = GridGraph(free, resolution)
    poses, known = graph.domain.poses(graph.nodes.points)
    numbers = conditions.robot.numbers(poses, (REACH, TYPE2))
    reach = np.where(known, numbers[0], np.nan)
    if not (reach >= 0.0).any():
        raise AnalysisError("loci", f"the limbs reach nothing over {graph.domain.in_words()}", "give other ranges")
    found, notes = [_signed(graph, TYPE_1, reach, REACH)], []
    if graph.measures.signed and singular_everywhere(numbers[1, reach >= 0.0]):
        notes.append(EVERYWHERE)
    elif graph.measures.signed:
        sign = np.where(graph.nodes.sign == 0, np.nan, graph.nodes.sign.astype(float))
        found.append(_signed(graph, BETWEEN[TYPE_2], sign, TYPE2))
    else:
        notes.append("more drives than degrees of freedom: type 2 needs several equations at once, and is no surface")
    for k, code in enumerate((CONSTRAINT, LIMB)):
        side, whole = _sides(graph, code)
        if not whole:
            notes.append(f"{BETWEEN[code]}: its surface has no two sides; what is shown of it has gaps")
        inside = graph.nodes.inside
        found.append(_surface(graph, BETWEEN[code], np.where(inside, side * graph.nodes.margins[:, k], np.nan))[0])
    kept = tuple(one for one in found if len(one.triangles))
    return Loci(graph, kept, tuple(notes if kept else ["no surface of singularities is met here", *notes]))


def _surface(graph: GridGraph, name: str, values: Array) -> tuple[Locus, Array, Array]:
    """Zeros of values at nodes, NaN where unknown; and the nodes below and above each corner (n, 3)."""
    points, triangles = level_surface(values.reshape(graph.shape), 0.0)
    start = np.array([axis[0] for axis in graph.axes])
    corners, low, high = (start + graph.steps * end for end in (points, np.floor(points), np.ceil(points)))
    return Locus(name, corners, triangles), low, high


def _signed(graph: GridGraph, name: str, values: Array, number: int) -> Locus:
    """Zeros of a number of poses that changes sign there, refined along the edges of the grid."""
    locus, low, high = _surface(graph, name, values)
    if not len(locus.corners):
        return locus
    robot, domain = graph.membership.robot, graph.domain

    def codes(points: Array) -> NDArray[np.int32]:
        reach, wanted = robot.numbers(domain.poses(points)[0], (REACH, number))
        return ((wanted < 0.0) | (reach < 0.0)).astype(np.int32)

    up = codes(high) == 0
    inside, outside = np.where(up[:, None], high, low), np.where(up[:, None], low, high)
    corners, _ = bisect(codes, inside, outside, FINE * float(graph.steps.min()))
    return Locus(name, corners, locus.triangles)


def _sides(graph: GridGraph, code: int) -> tuple[NDArray[np.int8], bool]:
    """The side (1 or -1) of a singularity that each node lies on, and whether sides are consistent throughout."""
    edges = graph.edges
    crossed = edges.between == code
    if not crossed.any():
        return np.ones(len(graph.nodes.codes), dtype=np.int8), True
    count, parts = graph.parts(~crossed)
    a, b = parts[edges.first[crossed]], parts[edges.second[crossed]]
    ties = scipy.sparse.coo_array((np.ones(len(a), dtype=np.int8), (a, b)), (count, count)).tocsr()
    colour = np.zeros(count, dtype=np.int8)
    for start in np.unique(np.concatenate([a, b])):
        if colour[start] == 0:
            colour[start] = 1
            order, before = scipy.sparse.csgraph.breadth_first_order(ties, start, directed=False)
            for part in order[1:]:
                colour[part] = -colour[before[part]]
    colour[colour == 0] = 1
    return colour[parts], bool((colour[a] != colour[b]).all())
