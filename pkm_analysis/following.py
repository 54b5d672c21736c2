# SPDX-License-Identifier: Apache-2.0
"""Poses in a configuration-dependent motion space, followed from home through the cells of a lattice.

Some task coordinates are given, the others follow along the way from home. Nearby points share most of that way:
it leads through the centres of cells of a lattice about home, each of which is reached once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics import Status
from pkm_kinematics.solve.engine import Engine

TURN = 0.2  # rad: side of a cell along an angle
SLIDE = 0.1  # of the robot's size: along a length

Cell = tuple[int, ...]


class Lattice:
    """Configurations at the centres of cells, found on demand. Thread-safe.

    Results do not depend on earlier queries: a cell is reached from the one before it on the straight line from home,
    and a point from the centre of its cell, or, where that has no configuration, of the one before.
    """

    def __init__(self, engine: Engine, names: Sequence[str]) -> None:
        self._engine, self._names = engine, list(names)
        graph = engine.whole_graph
        home = engine.inputs.in_whole_graph_at(engine.home_joints, engine.home)
        columns = [graph.names.index(name) for name in self._names]
        self._turns = graph.tables.bodies["prismatic"][columns] == 0
        self._origin = home[columns]
        self._steps = np.where(self._turns, TURN, SLIDE * engine.size)
        self._reached: dict[Cell, Array | None] = {(0,) * len(self._names): home}
        self._turn = threading.Lock()

    def poses(self, values: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Poses (n, 7) at values (n, k) [m, rad] of the named coordinates, home where none exists; and which exist."""
        away = values - self._origin
        away[:, self._turns] = np.angle(np.exp(1j * away[:, self._turns]))
        cells = np.rint(away / self._steps).astype(np.int64)
        found_cells, which = np.unique(cells, axis=0, return_inverse=True)
        chosen: list[Cell] = [tuple(cell) for cell in found_cells.tolist()]
        with self._turn:
            self._reach(chosen)
            starts = [self._start(cell) for cell in chosen]
        poses = np.tile(np.asarray(self._engine.home), (len(values), 1))
        known = np.array([start is not None for start in starts])[which.ravel()]
        rows = np.flatnonzero(known)
        if len(rows):
            begin = np.array([starts[k] for k in which.ravel()[rows]])
            engine = self._engine
            found = engine.whole_graph.follow_many(begin, self._names, values[rows], engine.size)
            ok = np.asarray(found.status == Status.CONVERGED) & np.isfinite(found.pose).all(axis=1)
            known[rows], poses[rows[ok]] = ok, found.pose[ok]
        return poses, known

    def _start(self, cell: Cell) -> Array | None:
        """Joint positions from which points of a cell are reached; None where it is out of reach."""
        here = self._reached[cell]
        return here if here is not None or not any(cell) else self._reached[_before(cell)]

    def _reach(self, cells: Iterable[Cell]) -> None:
        """Find the configurations of cells and of those before them, all at one distance from home together."""
        waiting: set[Cell] = set()
        for cell in cells:
            while cell not in self._reached and cell not in waiting:
                waiting.add(cell)
                cell = _before(cell)
        for _, ring in itertools.groupby(sorted(waiting, key=lambda cell: (_far(cell), cell)), _far):
            fresh = list(ring)
            begin = {cell: self._reached[_before(cell)] for cell in fresh}
            self._reached.update(dict.fromkeys(fresh))
            open_ = [cell for cell in fresh if begin[cell] is not None]
            if not open_:
                continue
            rows, ends = np.array([begin[cell] for cell in open_]), self._origin + self._steps * np.array(open_)
            found = self._engine.whole_graph.follow_many(rows, self._names, ends, self._engine.size)
            for k in np.flatnonzero(found.status == Status.CONVERGED):
                self._reached[open_[k]] = found.joints[k]


def _far(cell: Cell) -> int:
    return max(map(abs, cell))


def _before(cell: Cell) -> Cell:
    """The cell before this one on the straight line from home."""
    far = _far(cell)
    return tuple(int(np.rint(k * (far - 1) / far)) for k in cell)
