# SPDX-License-Identifier: Apache-2.0
"""Singularity-free regions of working modes (aspects), which of them touch, and the assembly modes in each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Range, size_unit
from pkm_analysis.kernels.pose_quantities import WIDTH
from pkm_analysis.regions.grid_graph import CONSTRAINT, LIMB, TURN, TYPE_2, GridGraph, Indices, OverGrid
from pkm_analysis.regions.path import WHOLE, Path, find_path
from pkm_analysis.requirements.conditions import INSIDE, Membership
from pkm_analysis.requirements.grammar import shown
from pkm_analysis.workspace.border import bisect, extent
from pkm_description.mechanism import Array
from pkm_kinematics.status import closes
from pkm_runtime.describable import counted

LEAST = 1e-4  # of the nodes inside: parts that are smaller are counted, not listed
SAME_DRIVES = 1e-6  # rad, and of the robot's size
MEETING = 0.02  # rad, m: joint positions of two modes this close are equal at a border
APART = (TYPE_2, CONSTRAINT, LIMB, TURN)  # what separates regions of one mode
TRIED = 8  # most points of the border that are tested
FINE = 1e-9  # of a step: how near to the border


@dataclass(frozen=True)
class Region:
    """A connected set of poses of one working mode without a singularity.

    `number` counts over all modes. `sign` is that of the direct determinant relative to home's, 0 where it has none.
    `size` is by counting nodes, in the unit of `Regions`; `lower` and `upper` are the bounding box (d,).
    """

    number: int
    mode: int
    mode_label: str
    sign: int
    size: float
    lower: Array
    upper: Array
    home: bool


@dataclass(frozen=True, eq=False)
class Assembled:
    """An assembly mode: where the platform is, and its region; 0 for none that is listed."""

    label: str
    mode: int
    point: Array
    region: int


@dataclass(frozen=True, eq=False)
class Touch:
    """Two regions, by number, what is crossed between them at a point (d,), and how many pairs of nodes it parts."""

    first: int
    second: int
    through: str
    at: Array
    count: int

    def __str__(self) -> str:
        return f"{self.first} and {self.second} touch through {self.through}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "at": self.at.tolist()}


@dataclass(frozen=True, eq=False, repr=False)
class Regions(OverGrid):
    """The singularity-free regions of some working modes over a domain, the largest first, mode by mode.

    `numbers` are, for each mode, the region at each node of its grid, 0 for none. `crumbs` count the parts too small to
    be listed, and their nodes.
    """

    _picture: ClassVar[str] = "singularity_pictures.regions_picture"

    graphs: dict[int, GridGraph]
    regions: tuple[Region, ...]
    numbers: dict[int, NDArray[np.int32]]
    touches: tuple[Touch, ...]
    crumbs: tuple[int, int]
    notes: tuple[str, ...] = ()

    @property
    def graph(self) -> GridGraph:  # type: ignore[override]
        """The first mode's grid."""
        return next(iter(self.graphs.values()))

    @property
    def unit(self) -> str:
        """Unit of sizes."""
        return size_unit(self.graph.domain)

    def _summary(self) -> str:
        modes = f" in {len(self.graphs)} working modes" if len(self.graphs) > 1 else ""
        return f"{self.membership.robot.name}: {counted(len(self.regions), 'singularity-free region')}{modes}"

    def _details(self) -> list[str]:
        lines = []
        for one in self.regions:
            home = ", home in it" if one.home else ""
            where = f"mode {one.mode} {one.mode_label}".rstrip()
            lines.append(f"{one.number}: {where}, sign {one.sign:+d}, {shown(one.size, self.unit)}{home}")
        lines += [str(touch) for touch in self.touches]
        if self.crumbs[0]:
            lines.append(f"{self.crumbs[0]} parts with {self.crumbs[1]} nodes together are too small for this grid")
        return [*lines, *self.notes, *self._grid]

    def region_of(self, point: Array, mode: int | None = None) -> int:
        """Number of the region of a pose (d,) [m, rad], 0 for none listed; by default in the first mode of `graphs`."""
        mode = next(iter(self.graphs)) if mode is None else mode
        graph = self.graphs[mode]
        inner = graph.within(np.asarray(point, dtype=np.float64)[None])
        here = graph.measures.of(inner)
        if not here.inside[0]:
            return 0
        for node in graph.around(inner[0]):
            number = int(self.numbers[mode][node])
            if number:
                there = graph.measures.of(graph.nearest_turn(graph.points(np.array([node])), inner[0]))
                if graph.measures.between(here, there, np.array([0]), np.array([0]))[0] == 0:
                    return number
        return 0

    def assembly_modes(self, actuated: Array | None = None) -> list[Assembled]:
        """The assembly modes of actuator positions (n_actuated,) [rad, m], home's by default, and their regions.

        Only those in one of these working modes. Two in one region change without a singularity.
        """
        kinematics = self.graph.membership.robot.kinematics
        q = kinematics.inverse(kinematics.home).actuated if actuated is None else np.asarray(actuated, dtype=float)
        units = np.where(kinematics.engine.actuated_turning, 1.0, kinematics.engine.size)
        found = []
        for solution in kinematics.forward_all(q):
            at = kinematics.engine.inputs.branch_at(solution.pose)
            point = np.array([at[c.name] for c in self.graph.domain.coordinates])
            for mode in self.graphs:
                inverse = kinematics.inverse(solution.pose, mode=mode)
                apart = np.abs((inverse.actuated - q) / units).max()
                if closes(np.atleast_1d(inverse.status))[0] and apart < SAME_DRIVES:
                    found.append(Assembled(solution.label, mode, point, self.region_of(point, mode)))
                    break
        return found

    @cached_property
    def changes(self) -> list[tuple[Assembled, Assembled]]:
        """Pairs of home's assembly modes in one region: they change without a singularity."""
        pairs = itertools.combinations(self.assembly_modes(), 2)
        return [(a, b) for a, b in pairs if a.region == b.region != 0 and a.mode == b.mode]

    def path(self, start: Array, end: Array, mode: int | None = None) -> Path:
        """A path within one region between points (d,) [m, rad]; by default in the first mode of `graphs`."""
        return find_path(self.graphs[next(iter(self.graphs)) if mode is None else mode], start, end)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        wraps = zip(self.domain.labels, self.graph.wraps, strict=True)
        return {
            **self.asked,
            "quantity": "singularity-free regions",
            "goes_round": [label for label, wrapped in wraps if wrapped],
            "unit": self.unit,
            "regions": [
                {**vars(one), "lower": one.lower.tolist(), "upper": one.upper.tolist()} for one in self.regions
            ],
            "touches": [touch.to_dict() for touch in self.touches],
            "crumbs": list(self.crumbs),
            "notes": list(self.notes),
        }


def regions(conditions: Sequence[Membership], given: Mapping[str, Range], resolution: int | None = None) -> Regions:
    """Find the regions of working modes, from the conditions of each; `given` ranges [m, rad] are by full name."""
    ranges = ranges_for(conditions, given)
    graphs: dict[int, GridGraph] = {}
    numbers: dict[int, NDArray[np.int32]] = {}
    listed: list[Region] = []
    crumbs = [0, 0]
    for one in conditions:
        graph = GridGraph(one.over(one.domain.within(ranges)), resolution)
        mode = one.robot.mode or 0
        graphs[mode], numbers[mode] = graph, np.zeros(int(np.prod(graph.shape)), dtype=np.int32)
        _list_parts(graph, mode, numbers[mode], listed, crumbs)
    if not listed:
        graph = next(iter(graphs.values()))
        where = graph.domain.in_words()
        if any((g.nodes.codes == TYPE_2).any() for g in graphs.values()):
            raise AnalysisError("regions", f"the robot is singular of type 2 all over {where}", "there are none")
        raise AnalysisError("regions", f"at no node over {where} do all conditions hold", "give other ranges")
    found = [t for mode, graph in graphs.items() for t in touches_within(graph, numbers[mode])]
    for first, second in itertools.combinations(graphs, 2):
        found += touches_between((graphs[first], numbers[first]), (graphs[second], numbers[second]))
    signed = next(iter(graphs.values())).measures.signed
    notes = () if signed else ("more drives than degrees of freedom: type 2 separates no regions",)
    return Regions(graphs, tuple(listed), numbers, tuple(found), (crumbs[0], crumbs[1]), notes)


def ranges_for(conditions: Sequence[Membership], given: Mapping[str, Range]) -> dict[str, Range]:
    """Ranges that contain the workspaces of all modes; the whole turn of periodic angles."""
    boxes, problem = [], None
    for one in conditions:
        try:
            boxes.append(extent(one, given))
        except AnalysisError as error:  # a mode that is nowhere, beside others that are somewhere
            problem = error
    if not boxes and problem is not None:
        raise problem
    ranges = {name: (min(b[name][0] for b in boxes), max(b[name][1] for b in boxes)) for name in boxes[0]}
    for c in conditions[0].domain.coordinates:
        low, high = ranges[c.name]
        if c.unit == "rad" and c.name not in given and high - low > WHOLE and c.upper - c.lower > 2.0 * np.pi - 1e-9:
            middle = 0.5 * (c.lower + c.upper) if np.isfinite(c.lower) and np.isfinite(c.upper) else c.home
            ranges[c.name] = (middle - np.pi, middle + np.pi)
    return ranges


def _list_parts(
    graph: GridGraph, mode: int, numbers: NDArray[np.int32], listed: list[Region], crumbs: list[int]
) -> None:
    """Append the large parts of one mode to `listed`, and write their numbers at the nodes."""
    parts = graph.components
    kinematics = graph.membership.robot.kinematics
    inside = int(graph.nodes.inside.sum())
    counts = np.bincount(parts)[1:]
    least = max(2.0 ** len(graph.shape), LEAST * inside)
    home = np.array([c.home for c in graph.domain.coordinates])
    there = mode == 0 and bool(graph.domain.inside(graph.within(home[None]))[0])
    near_home = graph.around(home)[:1] if there else np.empty(0, dtype=np.int64)
    for part, count in enumerate(counts, start=1):
        if count < least:
            crumbs[0] += 1
            crumbs[1] += int(count)
            continue
        at = np.flatnonzero(parts == part)
        points = graph.points(at)
        number = len(listed) + 1
        numbers[at] = number
        size, home_in = float(count * np.prod(graph.steps)), bool((parts[near_home] == part).any())
        sign, box = int(graph.nodes.sign[at[0]]), (points.min(axis=0), points.max(axis=0))
        listed.append(Region(number, mode, kinematics.mode_label(mode), sign, size, *box, home_in))


def touches_within(graph: GridGraph, numbers: NDArray[np.int32]) -> list[Touch]:
    """Touches of regions of one mode, one per pair of regions and singularity, or turn of a joint."""
    edges = graph.edges
    a, b = numbers[edges.first], numbers[edges.second]
    apart = np.flatnonzero((a != b) & (a > 0) & (b > 0) & np.isin(edges.between, APART))
    a, b, at = a[apart], b[apart], edges.first[apart]
    found = []
    for (first, second, code), pairs in _grouped(np.minimum(a, b), np.maximum(a, b), edges.between[apart]):
        place = graph.points(at[pairs[[len(pairs) // 2]]])[0]
        found.append(Touch(first, second, graph.measures.what(code), place, len(pairs)))
    return found


def _grouped(*values: NDArray[Any]) -> Iterator[tuple[list[int], Indices]]:
    combinations, which = np.unique(np.stack(values, axis=1), axis=0, return_inverse=True)
    for k, combination in enumerate(combinations.tolist()):
        yield combination, np.flatnonzero(which.ravel() == k)


def touches_between(
    one: tuple[GridGraph, NDArray[np.int32]], other: tuple[GridGraph, NDArray[np.int32]]
) -> list[Touch]:
    """Touches of two modes where a limb is stretched or folded, one per pair of regions and limb; same nodes."""
    (graph, first), (second_graph, second) = one, other
    codes, second_codes = graph.nodes.codes, second_graph.nodes.codes
    beside = []
    for a, b, _ in graph.neighbours():
        for near, far in ((a, b), (b, a)):
            keep = (first[near] > 0) & (second[near] > 0) & (codes[far] != INSIDE) & (codes[far] == second_codes[far])
            beside.append(np.stack([near[keep], far[keep]]))
    near, far = np.hstack(beside)
    found = []
    for (i, j, code), pairs in _grouped(first[near], second[near], codes[far]):
        stop = graph.membership.stop(code)
        if stop.kind != "reach":
            continue
        chosen = pairs[np.linspace(0, len(pairs) - 1, min(TRIED, len(pairs))).astype(int)]
        place = _meeting(graph, second_graph, near[chosen], far[chosen])
        if place is not None:
            found.append(Touch(i, j, f"type 1, {stop.text}", place, len(pairs)))
    return found


def _meeting(graph: GridGraph, other: GridGraph, inside: Indices, outside: Indices) -> Array | None:
    """A point (d,) between nodes where both modes have the same joint positions; None where they do not meet."""
    near, far = graph.points(inside), graph.points(outside)
    same_cell = (np.abs(far - near) < 1.5 * graph.steps).all(axis=1)  # not across the seam of a periodic angle
    near, far = near[same_cell], far[same_cell]
    if not len(near):
        return None
    kinematics = graph.membership.robot.kinematics
    columns = [int(c) for c in kinematics.engine.body_column[2:] if c >= 0]
    wanted = tuple(WIDTH + c for c in columns)
    turning = np.array([kinematics.engine.names.units[kinematics.joint_names[c]] == "rad" for c in columns])
    border, _ = bisect(graph.membership.codes, near, far, FINE * float(graph.steps.min()))
    border += 1e-6 * (near - border)  # safely inside
    poses, _ = graph.domain.poses(border)
    a = graph.membership.robot.evaluator.numbers(poses, wanted)
    apart = np.abs(a - other.membership.robot.evaluator.numbers(poses, wanted))
    apart[turning] = np.abs(np.mod(apart[turning] + np.pi, 2.0 * np.pi) - np.pi)
    meets = np.flatnonzero(apart.max(axis=0) < MEETING)
    return border[meets[0]] if 2 * len(meets) > len(border) else None  # fewer: a corner that other borders share
