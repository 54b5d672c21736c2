# SPDX-License-Identifier: Apache-2.0
"""Which equations of a cluster determine which joints, given the positions of some: its blocks, in solving order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_description.joint_geometry import freedoms
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, Coupling
from pkm_description.tree_model import Motions, TreeModel
from pkm_kinematics.linkage.loop_terms import Position, Row, loop_rows
from pkm_runtime.codegen.tape import Number
from pkm_runtime.errors import PkmError

STRONG = (1e-2, 1e-4, 1e-6)  # what an equation must add to those before it, tried in this order
OPEN = 0.1  # rad, and of the length: how far loops are opened to see what moves their equations
STRUCTURAL = 1e-9  # of dimensionless derivatives: a joint moves an equation


class LinkageError(PkmError):
    """Joints that do not determine the others, with those that would."""


@dataclass(frozen=True)
class Block:
    """Equations (loop, number of its row) that determine as many joints once the blocks before are solved."""

    equations: tuple[tuple[int, int], ...]
    joints: tuple[str, ...]

    @property
    def loops(self) -> tuple[int, ...]:
        """Its loops."""
        return tuple(dict.fromkeys(loop for loop, _ in self.equations))


class LoopSystem:
    """The clusters of some joints, solved for `inputs`; other joints are `dependent`, or `idle` and stand at home.

    Motions that move neither the inputs nor the joints `seen` are idle. `length` [m] is the unit of the equations.
    """

    def __init__(self, tree: TreeModel, inputs: Sequence[str], seen: Collection[str] = ()) -> None:
        tied = tree.tied_to([*inputs, *seen])
        self.tree, self.inputs = tree, tuple(inputs)
        self.ties = tuple(one for _, ties in tied for one in ties)
        self.model = tree.closures(set().union(*(members for members, _ in tied)), self.ties)
        self.freedoms = {f.name: f for joint in self.model.free for f in freedoms(joint)}
        self.names = tuple(self.freedoms)
        self.length = self.model.length
        self.home = dict(zip(self.names, map(float, tree.home_of(self.model)), strict=True))
        self.near: dict[str, float] = {}  # in general position
        idle: list[str] = []
        for members, ties in tied:  # each by itself: they are small
            part = tree.closures(members, ties)
            idle += self._determined(part, {*inputs, *seen} & members)
        self.idle = tuple(idle)
        self.dependent = tuple(n for n in self.names if n not in {*inputs, *idle})

    def _determined(self, part: ClosureModel, seen: Collection[str]) -> tuple[str, ...]:
        """Idle joints of a cluster; `LinkageError` where the inputs do not determine the others."""
        motions = Motions.of(part, self.tree.home_of(part))
        row = motions.rates
        self.near |= motions.near
        mine = [name for name in self.inputs if name in seen]
        for name in mine:
            if name not in row:
                raise LinkageError(f"{name!r} follows another joint (<mimic>): name the other joint")
        seen = {name for name in seen if name in row}
        found, idle = motions.independent([*mine, *(n for n in row if n not in mine)], seen)
        if set(found) != set(mine):
            extra = [f"{name} depends on the others" for name in mine if name not in found]
            better = [n for one in self.tree.clusters if set(one.joints) & set(row) for n in one.independent]
            remedy = f"name {len(found)}, such as {', '.join(better if len(better) == len(found) else found)}"
            if len(better) != len(found):  # what rods do beside it counts as soon as a rod's joint is named
                remedy += ", or in a robot with one platform the coordinates that lead to it"
            raise LinkageError(f"{', '.join(mine)} do not determine the linkage: {'; '.join([*extra, remedy])}")
        return idle

    def slides(self, name: str) -> bool:
        """Whether a coordinate is a length."""
        return self.freedoms[name].slides

    def numbers_at(self, positions: Mapping[str, float]) -> Position:
        """Plain numbers at positions [m, rad] by name."""

        def position(name: str, factor: float, offset: float) -> tuple[float, float]:
            value = factor * positions[name] + offset
            return (value / self.length, 0.0) if self.slides(name) else (float(np.cos(value)), float(np.sin(value)))

        return position

    def jacobian(self, positions: Mapping[str, float]) -> tuple[list[tuple[int, int]], Array]:
        """All equations, and their dimensionless derivatives (m, dependent joints) at positions."""
        at, found, rows = self.numbers_at(positions), [], []
        for k in range(len(self.ties)):
            for n, one in enumerate(self.rows_of(k, at, positions.__getitem__)):
                found.append((k, n))
                rows.append([float(one.rates.get(name, 0.0)) for name in self.dependent])
        return found, np.array(rows).reshape(len(found), len(self.dependent))

    def rows_of(self, k: int, position: Position, angle: Callable[[str], Number]) -> list[Row]:
        """The equations of a loop, or that of a coupling, which takes positions [m, rad] of joints."""
        one = self.ties[k]
        if isinstance(one, Coupling):
            return [Row(*one.at(angle, self._unit))]
        return loop_rows(self.model, one, position)

    @cached_property
    def _moves(self) -> NDArray[np.bool_]:
        """Which joints (m, dependent joints) move an equation, also where loops are open, as on Newton's way."""
        steps = OPEN * np.sin(1.0 + np.arange(len(self.near)))
        opened = {name: x + step * self._unit(name) for (name, x), step in zip(self.near.items(), steps, strict=True)}
        return np.asarray((np.abs(self.jacobian(self.near)[1]) + np.abs(self.jacobian(opened)[1])) > STRUCTURAL)

    def _unit(self, name: str) -> float:
        return self.length if name in self.freedoms and self.slides(name) else 1.0

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks in solving order; equations that repeat others (planar loops in space) are in none."""
        equations, J = self.jacobian(self.near)
        for strong in STRONG:
            chosen = _independent(J, strong)
            if len(chosen) == len(self.dependent):
                break
        else:
            raise LinkageError(f"the loops leave {len(self.dependent) - len(chosen)} joint(s) undetermined")
        return tuple(
            Block(tuple(equations[chosen[r]] for r in rows), tuple(self.dependent[c] for c in columns))
            for rows, columns in _triangular(self._moves[chosen])
        )

    def blocks_for(self, names: Collection[str]) -> tuple[Block, ...]:
        """The blocks that some joints depend on, in solving order."""
        wanted, found = set(names), []
        equations = self.jacobian(self.near)[0]
        for block in reversed(self.blocks):
            if wanted & set(block.joints):
                found.append(block)
                rows = self._moves[[equations.index(one) for one in block.equations]]
                wanted |= {name for name, column in zip(self.dependent, rows.T, strict=True) if column.any()}
        return tuple(reversed(found))


def _independent(J: Array, strong: float) -> list[int]:
    """Rows that add something to those before."""
    basis: list[Array] = []
    chosen = []
    for k, row in enumerate(J):
        rest = row - sum((b * (b @ row) for b in basis), np.zeros_like(row))
        if np.linalg.norm(rest) > strong:
            basis.append(rest / np.linalg.norm(rest))
            chosen.append(k)
    return chosen


def _triangular(pattern: NDArray[np.bool_]) -> Iterator[tuple[list[int], list[int]]]:
    """Square blocks (rows, columns) of a regular matrix, those first on which others depend."""
    from scipy.sparse import csr_array  # late: a third of this package's import
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    column_of = maximum_bipartite_matching(csr_array(pattern), perm_type="column")
    ordered = pattern[np.argsort(column_of)]  # row k determines column k
    _, label = connected_components(csr_array(ordered), directed=True, connection="strong")
    row_of = np.argsort(column_of)
    waiting = list(dict.fromkeys(label.tolist()))
    done: set[int] = set()
    while waiting:
        for one in waiting:
            mine = np.flatnonzero(label == one)
            if set(label[ordered[mine].any(axis=0)].tolist()) <= done | {one}:
                yield row_of[mine].tolist(), mine.tolist()
                done.add(one)
                waiting.remove(one)
                break
