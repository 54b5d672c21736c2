# SPDX-License-Identifier: Apache-2.0
"""Nodes of a grid; neighbours are connected unless a singularity or a condition is measured between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import check_resolution, nodes_of
from pkm_analysis.kernels.pose_quantities import HOLD, REACH, REGULARITY, TYPE2, UNLIMITED, WIDTH
from pkm_analysis.requirements.conditions import INSIDE, Membership, OverDomain
from pkm_analysis.requirements.grammar import shown
from pkm_description.mechanism import Array
from pkm_runtime.chunks import slices

NUMBERS = (REACH, TYPE2, HOLD, REGULARITY)
UNSIGNED = {HOLD: "the limbs lose a constraint", REGULARITY: "a singularity inside a limb"}
CONSTRAINT, LIMB, TURN, TYPE_2, JUMP = range(-1, -6, -1)  # between two points inside, beside codes of conditions
BETWEEN = {
    TYPE_2: "type 2",
    CONSTRAINT: UNSIGNED[HOLD],
    LIMB: UNSIGNED[REGULARITY],
    TURN: "a turn that a joint cannot make for its limits",
    JUMP: "a jump of the coordinates that follow",
}
NOTHING = 1e-7  # of the margin of type 2: rounding below
BEND = 0.3  # of the way between two poses: how far a smooth way is from its chord halfway, at most
ZERO = 1e-5  # of a margin at the ends of a line: what its least value along it is below where it passes a zero
ROUNDS = 22  # of the search for that value


NODES = {1: 2001, 2: 301, 3: 61, 4: 21, 5: 11, 6: 8}  # along each coordinate
SLOW_NODES = {1: 201, 2: 41, 3: 15, 4: 8, 5: 6, 6: 5}  # the same where poses are solved by iteration
ROWS = 1 << 18  # pairs of neighbours per batch
MOST = 20_000_000  # nodes
ASIDE = 0.01 * np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])  # of a step: an asymmetric offset
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Measured:
    """Points (n, d) [m, rad] and what is known of them.

    `codes` (n,) are those of conditions, or TYPE_2; `sign` (n,) that of the direct determinant relative to home's, 0
    where unknown; `margins` (n, 2) of the constraints and inside limbs, not negative; `turns` (n, t) positions [rad] of
    revolute joints with limits; `poses` (n, 7) where coordinates follow, in characteristic lengths, else (n, 0).
    """

    points: Array
    codes: NDArray[np.int32]
    sign: NDArray[np.int8]
    margins: Array
    turns: NDArray[np.float32]
    poses: Array

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Where all conditions hold."""
        return np.asarray(self.codes == INSIDE)


class Measures:
    """Measures points of the domain of its conditions."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        kinematics = membership.robot.kinematics
        self.signed = len(kinematics.actuated_names) == kinematics.mobility
        lower, upper = kinematics.engine.ranges.limits
        columns = [int(c) for c in kinematics.engine.body_column[2:] if c >= 0]
        turning = [c for c in columns if kinematics.engine.names.units[kinematics.joint_names[c]] == "rad"]
        limited = [c for c in turning if np.isfinite(lower[c]) or np.isfinite(upper[c])]
        self._follows = not kinematics.engine.constant_space
        self._joints = tuple(WIDTH + c for c in limited) if membership.joint_limits else ()

    def of(self, points: Array) -> Measured:
        """Measure points (n, d) [m, rad]."""
        codes = self.membership.codes(points)
        n, inside = len(points), codes == INSIDE
        sign, margins = np.zeros(n, dtype=np.int8), np.full((n, 2), UNLIMITED)
        turns = np.zeros((n, len(self._joints)), dtype=np.float32)
        at = np.zeros((n, 7 if self._follows else 0))
        if inside.any():
            poses, _ = self.membership.domain.poses(points[inside])
            numbers = self.membership.robot.numbers(poses, (*NUMBERS, *self._joints))
            if self.signed:
                type2 = np.nan_to_num(numbers[1])
                sign[inside] = np.where(np.abs(type2) > NOTHING, np.sign(type2), 0.0)
            margins[inside] = np.nan_to_num(numbers[2:4].T)
            turns[inside] = numbers[4:].T
            if self._follows:
                at[inside] = poses
                at[:, :3] /= self.membership.robot.kinematics.characteristic_length
            if self.signed:
                codes[inside] = np.where(sign[inside] == 0, TYPE_2, INSIDE)
        return Measured(points, codes, sign, margins, turns, at)

    def between(self, a: Measured, b: Measured, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.int32]:
        """What separates pairs of points inside, a[i] and b[j] (m,): 0 for nothing, else a code.

        Tested at their ends, halfway, and where margins dip to zero. A code is that of a condition that fails halfway,
        or one of `BETWEEN`.
        """
        found = np.zeros(len(i), dtype=np.int32)
        middle = self.of(0.5 * (a.points[i] + b.points[j]))
        for k, what in enumerate((CONSTRAINT, LIMB)):
            p, q, m = a.margins[i, k], b.margins[j, k], middle.margins[:, k]
            dips = np.flatnonzero((m < 0.5 * (p + q) - 0.4 * np.minimum(p, q)) & (p < UNLIMITED / 2.0) & middle.inside)
            if len(dips):
                least = self._least(a.points[i[dips]], b.points[j[dips]], k)
                found[dips[least < ZERO * np.maximum(p, q)[dips]]] = what
        if self._joints:
            found[(np.abs(a.turns[i] - b.turns[j]) > np.pi).any(axis=1)] = TURN
        found = np.where(middle.codes != INSIDE, middle.codes, found)
        if self.signed:
            found[(a.sign[i] != b.sign[j]) | (middle.inside & (middle.sign != a.sign[i]))] = TYPE_2
        if self._follows:
            found[middle.inside & _jumps(a.poses[i], middle.poses, b.poses[j])] = JUMP
        return found.astype(np.int32)

    def _least(self, a: Array, b: Array, which: int) -> Array:
        """Least margins (n,) on the lines from `a` to `b`, by golden section search."""
        ratio = 0.5 * (np.sqrt(5.0) - 1.0)
        low, high = np.zeros(len(a)), np.ones(len(a))
        domain, robot = self.membership.domain, self.membership.robot
        number = (HOLD, REGULARITY)[which]

        def at(t: Array) -> Array:
            poses, _ = domain.poses(a + t[:, None] * (b - a))
            reach, values = robot.numbers(poses, (REACH, number))
            return np.where(reach >= 0.0, np.nan_to_num(values), np.inf)

        inner, outer = high - ratio * (high - low), low + ratio * (high - low)
        one, two = at(inner), at(outer)
        for _ in range(ROUNDS):
            left = one < two
            low, high = np.where(left, low, inner), np.where(left, outer, high)
            fresh = np.where(left, high - ratio * (high - low), low + ratio * (high - low))
            values = at(fresh)
            inner, outer = np.where(left, fresh, outer), np.where(left, inner, fresh)
            one, two = np.where(left, values, two), np.where(left, one, values)
        return np.minimum(one, two)

    def what(self, code: int) -> str:
        """What separates two points, in words."""
        return BETWEEN[code] if code in BETWEEN else self.membership.stop(code).text


def _jumps(a: Array, middle: Array, b: Array) -> NDArray[np.bool_]:
    """Whether intermediate poses (n, 7) are off a smooth way from those before to those after."""
    ends = []
    for end in (a, b):
        side = np.where((end * middle)[:, 3:].sum(axis=1) < 0.0, -1.0, 1.0)  # q and -q are the same rotation
        ends.append(np.hstack([end[:, :3], side[:, None] * end[:, 3:]]))
    a, b = ends
    return np.asarray(np.linalg.norm(middle - 0.5 * (a + b), axis=1) > BEND * np.linalg.norm(b - a, axis=1))


@dataclass(frozen=True, eq=False)
class Edges:
    """Neighbours inside: indices of nodes, and what separates them (0 where nothing)."""

    first: Indices
    second: Indices
    between: NDArray[np.int32]

    @property
    def joined(self) -> NDArray[np.bool_]:
        """Pairs that nothing separates."""
        return np.asarray(self.between == 0)


class GridGraph:
    """A measured grid over a domain, periodic along angles with a whole turn; `AnalysisError` where it is too large."""

    def __init__(self, membership: Membership, resolution: int | None = None) -> None:
        domain = membership.domain
        if domain.dimension > max(NODES):
            raise AnalysisError("regions", f"it has {domain.dimension} coordinates", "hold some of them")
        check_resolution("regions", resolution, domain.dimension)
        self.wraps = domain.closes
        ranges = {
            c.name: (c.home - np.pi, c.home + np.pi) if wraps else (low, high)
            for c, wraps, low, high in zip(domain.coordinates, self.wraps, domain.lower, domain.upper, strict=True)
        }
        self.domain = domain.within(ranges)
        self.membership = membership.over(self.domain)
        self.measures = Measures(self.membership)
        self.scale = self.domain.scale
        nodes = (NODES if membership.quick else SLOW_NODES)[domain.dimension]
        counts = self.domain.nodes(resolution or nodes, 5)
        if np.prod(counts.astype(float)) > MOST:
            raise AnalysisError("regions", f"the grid would have {np.prod(counts):,} nodes", "lower the resolution")
        self.shape = tuple(int(n) for n in counts)
        self.axes = [
            np.linspace(low, high, n, endpoint=not wraps)
            for low, high, n, wraps in zip(self.domain.lower, self.domain.upper, self.shape, self.wraps, strict=True)
        ]
        self.steps = np.array([axis[1] - axis[0] for axis in self.axes])

    @property
    def pitch(self) -> float:
        """Largest step of the grid [m], angles at the characteristic length."""
        return float((self.steps * self.scale).max())

    def points(self, nodes: Indices) -> Array:
        """Coordinates (n, d) of nodes (n,)."""
        index = np.unravel_index(nodes, self.shape)
        return np.stack([axis[i] for axis, i in zip(self.axes, index, strict=True)], axis=1)

    @cached_property
    def nodes(self) -> Measured:
        """All nodes, measured."""
        total = int(np.prod(self.shape))
        parts = [self.measures.of(self.points(np.arange(at.start, at.stop))) for at in slices(total, ROWS)]
        found = Measured(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))
        on = np.flatnonzero(found.codes == TYPE_2)  # by symmetry: what stands for the cell is a point beside
        inwards = np.where(found.points[on] > self.domain.lower + 0.5 * self.steps, -1.0, 1.0)
        beside = self.measures.of(found.points[on] + inwards * ASIDE[: len(self.shape)] * self.steps)
        for values, others in zip(vars(found).values(), vars(beside).values(), strict=True):
            values[on] = others
        return found

    def neighbours(self) -> Iterator[tuple[Indices, Indices, Array]]:
        """For each axis the pairs of neighbouring nodes, and the step (d,) from the first to the second."""
        number = np.arange(int(np.prod(self.shape)), dtype=np.int64).reshape(self.shape)
        for k in range(len(self.shape)):
            step = np.zeros(len(self.shape))
            step[k] = self.steps[k]
            first, second = np.moveaxis(number, k, 0)[:-1], np.moveaxis(number, k, 0)[1:]
            yield first.ravel(), second.ravel(), step
            if self.wraps[k]:
                yield np.moveaxis(number, k, 0)[-1].ravel(), np.moveaxis(number, k, 0)[0].ravel(), step

    @cached_property
    def edges(self) -> Edges:
        """All pairs of neighbours that are both inside."""
        inside = self.nodes.inside
        firsts, seconds, between = [], [], []
        for first, second, step in self.neighbours():
            keep = np.flatnonzero(inside[first] & inside[second])
            a, b = first[keep], second[keep]
            for at in slices(len(a), ROWS):
                i, j = a[at], b[at]
                there = Measured(*(values[j] for values in vars(self.nodes).values()))
                there.points[:] = self.nodes.points[i] + step  # of the second, also past the end of a periodic angle
                between.append(self.measures.between(self.nodes, there, i, np.arange(len(j))))
            firsts.append(a)
            seconds.append(b)
        none = np.empty(0, dtype=np.int32)
        return Edges(np.concatenate(firsts), np.concatenate(seconds), np.concatenate([none, *between]))

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """Number of the connected component of each node, the largest 1; 0 outside."""
        _, labels = self.parts(self.edges.joined)
        inside = self.nodes.inside
        _, compact, counts = np.unique(labels[inside], return_inverse=True, return_counts=True)
        rank = np.empty(len(counts), dtype=np.int32)
        rank[np.argsort(-counts, kind="stable")] = np.arange(1, len(counts) + 1, dtype=np.int32)
        numbers = np.zeros(len(inside), dtype=np.int32)
        numbers[inside] = rank[compact]
        return numbers

    def parts(self, keep: NDArray[np.bool_]) -> tuple[int, NDArray[np.int32]]:
        """How many parts some edges join the nodes to, and the part of each node."""
        total = int(np.prod(self.shape))
        ends = self.edges.first[keep], self.edges.second[keep]
        graph = scipy.sparse.coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), (total, total))
        count, labels = scipy.sparse.csgraph.connected_components(graph, directed=False)
        return int(count), labels

    def within(self, points: Array) -> Array:
        """Points (n, d) with periodic angles wrapped into their range."""
        moved = np.array(points, dtype=np.float64)
        for k, wraps in enumerate(self.wraps):
            if wraps:
                low = self.domain.lower[k]
                moved[:, k] = low + np.mod(moved[:, k] - low, 2.0 * np.pi)
        return moved

    def nearest_turn(self, points: Array, point: Array) -> Array:
        """Points (..., d) with periodic angles in the turn nearest to another point (d,)."""
        return np.where(self.wraps, points + 2.0 * np.pi * np.round((point - points) / (2.0 * np.pi)), points)

    def around(self, point: Array) -> Indices:
        """Nodes at the corners of the cell that contains a point (d,), the nearest first."""
        cell = (self.within(point[None])[0] - self.domain.lower) / self.steps
        index = np.floor(cell).astype(np.int64) + nodes_of([np.arange(2)] * len(cell))
        away = np.linalg.norm((index - cell) * self.steps * self.scale, axis=1)
        keep = np.ones(len(index), dtype=bool)
        for k, (n, wraps) in enumerate(zip(self.shape, self.wraps, strict=True)):
            if wraps:
                index[:, k] %= n
            keep &= (index[:, k] >= 0) & (index[:, k] < n)
        order = np.argsort(away[keep], kind="stable")
        return np.asarray(np.ravel_multi_index(tuple(index[keep][order].T), self.shape), dtype=np.int64)


class OverGrid(OverDomain):
    """A result on a grid."""

    graph: GridGraph

    @property
    def membership(self) -> Membership:  # type: ignore[override]
        """The conditions."""
        return self.graph.membership

    @property
    def asked(self) -> dict[str, Any]:
        """Robot, domain, requirements and grid, for JSON."""
        return {**super().asked, "nodes": list(self.graph.shape), "pitch": self.graph.pitch}

    @property
    def _grid(self) -> list[str]:
        return [self.domain.in_words(), f"grid of {shown(self.graph.pitch, 'm', 2)}"]
