# SPDX-License-Identifier: Apache-2.0
"""Which regions touch, and through what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.kernels.pose_quantities import WIDTH
from pkm_analysis.regions.grid_graph import CONSTRAINT, LIMB, TURN, TYPE_2, GridGraph, Indices
from pkm_analysis.requirements.membership import INSIDE
from pkm_analysis.workspace.border import bisect
from pkm_description.mechanism import Array

MEETING = 0.02  # rad, m: joint positions of two modes this close are equal at a border
APART = (TYPE_2, CONSTRAINT, LIMB, TURN)  # what separates regions of one mode
TRIED = 8  # most points of the border that are tested
FINE = 1e-9  # of a step: how near to the border


@dataclass(frozen=True, eq=False)
class Touch:
    """Two regions, by number, with a singularity between them, or a turn that a joint's limits do not allow.

    `through` is what is crossed, `at` a point (d,) of it [m, rad], `count` the pairs of neighbouring nodes that it
    separates, or nodes beside it.
    """

    first: int
    second: int
    through: str
    at: Array
    count: int

    def __str__(self) -> str:
        """The two regions, and what is crossed."""
        return f"{self.first} and {self.second} touch through {self.through}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "at": self.at.tolist()}


def touches_within(graph: GridGraph, numbers: NDArray[np.int32]) -> list[Touch]:
    """Touches of regions of one mode, one per pair of regions and singularity, or turn of a joint."""
    edges = graph.edges
    a, b = numbers[edges.first], numbers[edges.second]
    apart = np.flatnonzero((a != b) & (a > 0) & (b > 0) & np.isin(edges.between, APART))
    groups: dict[tuple[int, int, int], list[int]] = {}
    for k in apart:
        key = (min(int(a[k]), int(b[k])), max(int(a[k]), int(b[k])), int(edges.between[k]))
        groups.setdefault(key, []).append(int(k))
    found = []
    for (first, second, code), members in sorted(groups.items()):
        middle = members[len(members) // 2]
        place = graph.points(edges.first[[middle]])[0]
        found.append(Touch(first, second, graph.measures.what(code), place, len(members)))
    return found


def touches_between(
    one: tuple[GridGraph, NDArray[np.int32]], other: tuple[GridGraph, NDArray[np.int32]]
) -> list[Touch]:
    """Touches of two modes where a limb is stretched or folded, one per pair of regions and limb; same nodes."""
    (graph, first), (second_graph, second) = one, other
    codes, second_codes = graph.nodes.codes, second_graph.nodes.codes
    groups: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for a, b, _ in graph.neighbours():
        for near, far in ((a, b), (b, a)):
            keep = (first[near] > 0) & (second[near] > 0) & (codes[far] != INSIDE) & (codes[far] == second_codes[far])
            for n, f in zip(near[keep], far[keep], strict=True):
                groups.setdefault((int(first[n]), int(second[n]), int(codes[f])), []).append((int(n), int(f)))
    found = []
    for (i, j, code), pairs in sorted(groups.items()):
        stop = graph.membership.stop(code)
        if stop.kind != "reach":
            continue
        chosen = np.array(pairs)[np.linspace(0, len(pairs) - 1, min(TRIED, len(pairs))).astype(int)]
        place = _meeting(graph, second_graph, chosen[:, 0], chosen[:, 1])
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
    b = other.membership.robot.evaluator.numbers(poses, wanted)
    apart = np.abs(a - b)
    apart[turning] = np.abs(np.mod(apart[turning] + np.pi, 2.0 * np.pi) - np.pi)
    meets = np.flatnonzero(apart.max(axis=0) < MEETING)
    return border[meets[0]] if 2 * len(meets) > len(border) else None  # fewer: a corner that other borders share
