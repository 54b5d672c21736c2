# SPDX-License-Identifier: Apache-2.0
"""A path between two poses that keeps its conditions, or the finding that a grid has none."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Range, TaskCoordinates
from pkm_analysis.proof.halving import Proof, prove_path
from pkm_analysis.regions.grid_graph import GridGraph, Indices, Measured, OverGrid
from pkm_analysis.requirements.conditions import INSIDE
from pkm_analysis.requirements.grammar import shown
from pkm_analysis.requirements.quantities import requirement
from pkm_analysis.requirements.quantity import Requirement
from pkm_description.mechanism import Array

CHECKS = 16  # checks of a path between neighbouring nodes
WHOLE = 1.5 * np.pi  # rad: an angle with a larger range may be periodic
REPAIRS = 200  # most connections between nodes removed because something was found on them


@dataclass(frozen=True, eq=False, repr=False)
class Path(OverGrid):
    """A path that keeps the conditions of a grid, straight between waypoints, or the reason why there is none.

    `start`, `end` (d,) and `waypoints` (k, d), none without a path, are in m and rad; periodic angles are unwrapped.
    With `proved`, that there is none follows from a change of sign, whatever the grid. `checked` is the spacing [m] of
    checks, angles at the characteristic length. `barrier` tells what stops the robot around the start's component.
    """

    _picture: ClassVar[str] = "singularity_pictures.path_picture"

    graph: GridGraph
    start: Array
    end: Array
    waypoints: Array
    reason: str
    proved: bool
    checked: float
    barrier: Mapping[str, float]

    @property
    def found(self) -> bool:
        """True where there is a path."""
        return len(self.waypoints) > 0

    @property
    def length(self) -> float:
        """Length [m], angles at the characteristic length; infinite without a path."""
        if not self.found:
            return float("inf")
        return float(np.linalg.norm(np.diff(self.waypoints * self.graph.scale, axis=0), axis=1).sum())

    def samples(self) -> Array:
        """Points (n, d) along it, no further apart than `checked`."""
        return along(self.waypoints, self.graph.scale, self.checked)

    def least(self) -> dict[str, float]:
        """Least value of each required quantity along the path, or the largest where it is bounded from above."""
        return {str(one): value for one, value in self._least()}

    def _least(self) -> Iterator[tuple[Requirement, float]]:
        poses, _ = self.domain.poses(self.graph.within(self.samples()))
        for one in self.membership.requirements:
            numbers = one.quantity.of(self.membership.robot, poses)
            yield one, float(numbers.min() if one.at_least else numbers.max())

    def prove(self) -> Proof:
        """Prove by intervals that it is inside, regular, and as required where that can be; else `AnalysisError`."""
        if not self.found:
            raise AnalysisError("proof", "there is no path", "find one first")
        membership = self.membership
        texts = ["inside", "no singularity"] if membership.joint_limits else ["no singularity"]
        wanted = [requirement(membership.robot, text) for text in texts]
        wanted += [one for one in membership.requirements if one.bounded]
        return prove_path(membership.robot, self.domain.values(self.waypoints), wanted)

    def _summary(self) -> str:
        name = self.membership.robot.name
        if not self.found:
            return f"{name}: no path: {self.reason}"
        return f"{name}: {len(self.waypoints)} waypoints, {shown(self.length, 'm')}"

    def _details(self) -> list[str]:
        lines = [f"{100.0 * share:.3g} % of the obstacles: {text}" for text, share in self.barrier.items()]
        if self.found:
            lines += [f"{one}: {shown(value, one.quantity.unit)}" for one, value in self._least()]
            lines.append(f"checked every {shown(self.checked, 'm', 2)}")
        return [*lines, *self._grid]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            **self.asked,
            "quantity": "path",
            "from": self.start.tolist(),
            "to": self.end.tolist(),
            **self._plain("found", "reason", "length", "checked", "waypoints"),
            "proved_none": self.proved,
            "least": self.least() if self.found else {},
            "in_the_way": dict(self.barrier),
        }


def box_of(
    task: TaskCoordinates,
    vary: list[str],
    start: Mapping[str, float],
    end: Mapping[str, float],
    ranges: Mapping[str, Range],
) -> tuple[dict[str, Range], Array, Array, dict[str, float]]:
    """Where a path is searched: ranges [m, rad] by name, its start and end (d,), and what is held, by name.

    Unless given in `ranges`, both ends with as much room again on all sides, and half the robot's size at least, within
    the platform's limits. Coordinates that do not vary are held where both ends name one value, else `AnalysisError`.
    """
    size = task.kinematics.engine.size
    first, last, named = task.named(start), task.named(end), task.named(ranges)
    held = {}
    for name in {*first, *last} - set(vary):
        if first.get(name) != last.get(name):
            problem = "it is not one of the robot's own degrees of freedom"
            raise AnalysisError(f"path in {name}", problem, f"vary {', '.join(vary)}")
        held[name] = float(first[name])
    box = {}
    for name in vary:
        c = task.find(name)
        a, b = first.get(name, c.home), last.get(name, c.home)
        room = max(abs(a - b), 0.5 * size if c.unit == "m" else 0.5 * np.pi)
        low, high = max(min(a, b) - room, c.lower), min(max(a, b) + room, c.upper)
        if c.unit == "rad" and high - low > WHOLE:
            low, high = 0.5 * (low + high) - np.pi, 0.5 * (low + high) + np.pi
        box[name] = named.get(name, (low, high))
    ends = [np.array([side.get(name, task.find(name).home) for name in vary]) for side in (first, last)]
    return box, ends[0], ends[1], held


def along(waypoints: Array, scale: Array, step: float) -> Array:
    """Points (n, d) of a path, including its waypoints (k, d), no further apart than a step [m]."""
    parts = [waypoints[:1]]
    for a, b in itertools.pairwise(waypoints):
        n = max(1, int(np.ceil(np.linalg.norm((b - a) * scale) / step)))
        parts.append(a + np.linspace(0.0, 1.0, n + 1)[1:, None] * (b - a))
    return np.concatenate(parts)


def find_path(graph: GridGraph, start: Array, end: Array) -> Path:
    """A path along grid nodes, straightened, and checked between nodes; `AnalysisError` where an end is not inside."""
    ends = np.array([start, end], dtype=np.float64)
    here = graph.measures.of(graph.within(ends))
    for word, code, point in zip(("start", "end"), here.codes, graph.within(ends), strict=True):
        if code != INSIDE:
            raise AnalysisError(f"{word} of the path", graph.membership.why(int(code), point), "choose another pose")
    checked = float((graph.steps * graph.scale).min()) / CHECKS
    none = np.empty((0, len(start)))
    if graph.measures.signed and here.sign[0] != here.sign[1]:
        reason = "the direct determinant has another sign at its end: every path in this mode meets type 2"
        return Path(graph, ends[0], ends[1], none, reason, True, checked, {})
    finder = _Finder(graph, ends, checked)
    waypoints = finder.find()
    if waypoints is None:
        return Path(graph, ends[0], ends[1], none, finder.reason, False, checked, finder.barrier())
    return Path(graph, ends[0], ends[1], finder.straightened(waypoints), "", False, checked, {})


class _Finder:
    def __init__(self, graph: GridGraph, ends: Array, checked: float) -> None:
        self.graph, self.ends, self.checked = graph, ends, checked
        self.reason = ""
        self.closed: set[tuple[int, int]] = set()
        self._reached: NDArray[np.bool_] | None = None

    def free(self, waypoints: Array) -> bool:
        points = along(waypoints, self.graph.scale, self.checked)
        inner = self.graph.within(points)
        if not (self.graph.membership.codes(inner) == INSIDE).all():
            return False
        found = self.graph.measures.of(inner)
        lower, upper, order = self.graph.domain.lower, self.graph.domain.upper, np.arange(len(points) - 1)
        wrapped = np.where(self.graph.wraps, np.clip(inner, lower, upper), points)
        moved = Measured(wrapped, *list(vars(found).values())[1:])
        return bool((self.graph.measures.between(moved, moved, order, order + 1) == 0).all())

    def _links(self, end: int) -> Indices:
        from_end = self.ends[end]
        nodes = self.graph.around(from_end)
        nodes = nodes[self.graph.nodes.inside[nodes]]
        near = [node for node in nodes if self.free(np.array([from_end, self._beside(node, from_end)]))]
        return np.array(near, dtype=np.int64)

    def _beside(self, node: int, point: Array) -> Array:
        """Coordinates of a node (d,), with periodic angles in the turn nearest to a point (d,)."""
        return self.graph.nearest_turn(self.graph.points(np.array([node]))[0], point)

    def find(self) -> Array | None:
        """Waypoints (k, d) from end to end; None where there are none."""
        if np.linalg.norm((self.ends[1] - self.ends[0]) * self.graph.scale) == 0.0:
            return self.ends
        links = [self._links(0), self._links(1)]
        for word, near in zip(("start", "end"), links, strict=True):
            if not len(near):
                self.reason = f"no node of the grid is reached from the {word}; a finer grid may have one"
                return None
        edges = self.graph.edges
        total = int(np.prod(self.graph.shape))
        axis_step = self.graph.steps * self.graph.scale
        index = np.array(np.unravel_index(np.stack([edges.first, edges.second]), self.graph.shape))
        axis = (index[:, 0] != index[:, 1]).argmax(axis=0)
        joined = edges.joined
        weight = axis_step[axis]
        for _ in range(REPAIRS):
            first = np.concatenate([edges.first[joined], np.full(len(links[0]), total), links[1]])
            second = np.concatenate([edges.second[joined], links[0], np.full(len(links[1]), total + 1)])
            lengths = np.concatenate([weight[joined], np.full(len(links[0]) + len(links[1]), float(axis_step.min()))])
            matrix = scipy.sparse.coo_array((lengths, (first, second)), (total + 2, total + 2)).tocsr()
            away, before = scipy.sparse.csgraph.dijkstra(
                matrix, directed=False, indices=total, return_predecessors=True
            )
            self._reached = np.isfinite(away[:total])
            if not np.isfinite(away[total + 1]):
                nodes = int(self._reached.sum())
                reached = f"of {nodes} nodes that lead on from the start none leads to the end"
                self.reason = f"by exhaustion: {reached}, on a grid of {shown(self.graph.pitch, 'm', 2)}"
                return None
            chain = [total + 1]
            while chain[-1] != total:
                chain.append(int(before[chain[-1]]))
            waypoints = self._unrolled(chain[::-1])
            bad = next((k for k in range(len(waypoints) - 1) if not self.free(waypoints[k : k + 2])), None)
            if bad is None:
                return waypoints
            pair = set(chain[::-1][bad : bad + 2])
            joined = joined & ~(np.isin(edges.first, list(pair)) & np.isin(edges.second, list(pair)))
        self.reason = f"more than {REPAIRS} ways between neighbouring nodes are closed; use a finer grid"
        return None

    def _unrolled(self, chain: list[int]) -> Array:
        places = [self.ends[0]]
        for node in chain[1:-1]:
            places.append(self._beside(node, places[-1]))
        return np.array([*places, self.graph.nearest_turn(self.ends[1], places[-1])])

    def straightened(self, waypoints: Array) -> Array:
        """Waypoints without those that a free straight line bypasses."""
        kept, at, last = [0], 0, len(waypoints) - 1
        while at < last:
            step = last - at
            while step > 1 and not self.free(waypoints[[at, at + step]]):
                step //= 2
            at += step
            kept.append(at)
        return waypoints[kept]

    def barrier(self) -> dict[str, float]:
        """What is met around the component of the start, with shares, the most frequent first."""
        if self._reached is None:
            return {}
        reached, edges = self._reached, self.graph.edges
        met = [edges.between[reached[edges.first] != reached[edges.second]]]
        for a, b, _ in self.graph.neighbours():
            codes = (self.graph.nodes.codes[far[reached[near]]] for near, far in ((a, b), (b, a)))
            met += [each[each != INSIDE] for each in codes]
        found: dict[str, float] = {}
        every = np.concatenate(met)
        for code, count in zip(*np.unique(every, return_counts=True), strict=True):
            name = self.graph.measures.what(int(code))
            found[name] = found.get(name, 0.0) + float(count) / len(every)
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))
