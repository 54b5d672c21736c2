# SPDX-License-Identifier: Apache-2.0
"""Nodes of a grid; neighbours are connected unless something was found that separates them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import check_resolution
from pkm_analysis.regions.measures import TYPE_2, Measured, Measures
from pkm_analysis.requirements.membership import Membership
from pkm_analysis.sweeps.chunks import slices
from pkm_analysis.workspace.workspace import scales
from pkm_description.mechanism import Array

NODES = {1: 2001, 2: 301, 3: 61, 4: 21, 5: 11, 6: 8}  # along each coordinate
SLOW_NODES = {1: 201, 2: 41, 3: 15, 4: 8, 5: 6, 6: 5}  # the same where poses are solved by iteration
ROWS = 1 << 18  # pairs of neighbours per batch
MOST = 20_000_000  # nodes
ASIDE = 0.01 * np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])  # of a step: an asymmetric offset
Indices = NDArray[np.int64]


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
        self.scale = scales(self.domain)
        span = self.scale * (self.domain.upper - self.domain.lower)
        quick = membership.robot.evaluator.quick
        nodes = resolution or (NODES if quick else SLOW_NODES)[domain.dimension]
        counts = np.maximum(np.ceil(nodes * (span / np.prod(span) ** (1.0 / len(span)))).astype(int), 5)
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
        names = ("points", "codes", "sign", "margins", "turns", "poses")
        found = Measured(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        on = np.flatnonzero(found.codes == TYPE_2)  # by symmetry: what stands for the cell is a point beside
        inwards = np.where(found.points[on] > self.domain.lower + 0.5 * self.steps, -1.0, 1.0)
        beside = self.measures.of(found.points[on] + inwards * ASIDE[: len(self.shape)] * self.steps)
        for name in names:
            getattr(found, name)[on] = getattr(beside, name)
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
                beyond = self.nodes.points[i] + step  # position of the second, also past the end of a periodic angle
                all_of = self.nodes
                there = Measured(
                    beyond, all_of.codes[j], all_of.sign[j], all_of.margins[j], all_of.turns[j], all_of.poses[j]
                )
                between.append(self.measures.between(self.nodes, there, i, np.arange(len(j))))
            firsts.append(a)
            seconds.append(b)
        none = np.empty(0, dtype=np.int32)
        return Edges(np.concatenate(firsts), np.concatenate(seconds), np.concatenate([none, *between]))

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """Number of the connected component of each node, the largest 1; 0 outside."""
        total = int(np.prod(self.shape))
        edges = self.edges
        keep = edges.joined
        graph = scipy.sparse.coo_array(
            (np.ones(int(keep.sum()), dtype=np.int8), (edges.first[keep], edges.second[keep])), (total, total)
        )
        _, labels = scipy.sparse.csgraph.connected_components(graph, directed=False)
        inside = self.nodes.inside
        _, compact, counts = np.unique(labels[inside], return_inverse=True, return_counts=True)
        rank = np.empty(len(counts), dtype=np.int32)
        rank[np.argsort(-counts, kind="stable")] = np.arange(1, len(counts) + 1, dtype=np.int32)
        numbers = np.zeros(total, dtype=np.int32)
        numbers[inside] = rank[compact]
        return numbers

    def within(self, points: Array) -> Array:
        """Points (n, d) with periodic angles wrapped into their range."""
        moved = np.array(points, dtype=np.float64)
        for k, wraps in enumerate(self.wraps):
            if wraps:
                low = self.domain.lower[k]
                moved[:, k] = low + np.mod(moved[:, k] - low, 2.0 * np.pi)
        return moved

    def around(self, point: Array) -> Indices:
        """Nodes at the corners of the cell that contains a point (d,), the nearest first."""
        cell = (self.within(point[None])[0] - self.domain.lower) / self.steps
        corners = np.stack(np.meshgrid(*([0, 1],) * len(cell), indexing="ij"), axis=-1).reshape(-1, len(cell))
        index = np.floor(cell).astype(np.int64) + corners
        away = np.linalg.norm((index - cell) * self.steps * self.scale, axis=1)
        keep = np.ones(len(index), dtype=bool)
        for k, (n, wraps) in enumerate(zip(self.shape, self.wraps, strict=True)):
            if wraps:
                index[:, k] %= n
            keep &= (index[:, k] >= 0) & (index[:, k] < n)
        order = np.argsort(away[keep], kind="stable")
        return np.asarray(np.ravel_multi_index(tuple(index[keep][order].T), self.shape), dtype=np.int64)
