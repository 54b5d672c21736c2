# SPDX-License-Identifier: Apache-2.0
"""The loop equations of a cluster, and which of them determine which joints, given the positions of some.

Equations are numbers that may be terms of a tape, each loop seen from where its two sides part. Lengths are over the
cluster's characteristic length; positions are cosines and sines of turning joints, and places of sliding ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.graph import path_from_base
from pkm_description.joint_geometry import Freedom, freedoms, transform_along
from pkm_description.loops.closure import ClosureModel, independent
from pkm_description.mechanism import Array, Coupling, Joint, Loop, LoopType
from pkm_description.rotations import inverse_transform, transform
from pkm_description.tree_model import Motions, TreeModel
from pkm_runtime.codegen.tape import Number
from pkm_runtime.errors import PkmError

NOTHING = 4e-15  # of an entry of a rotation or a length: rounding of a product of a file's frames
TURNED = (LoopType.FIXED, LoopType.PRISMATIC)  # these hold all of a rotation
Vector = Any  # (3,) of numbers, as an array of objects

Position = Callable[[str, float, float], tuple[Number, Number]]
"""Cosine and sine of `factor` times a coordinate plus `offset`, or position and 0 where it slides."""


@dataclass
class Row:
    """One equation: what is open, and its derivative by each coordinate by name."""

    gap: Number
    rates: dict[str, Number]


def loop_sides(model: ClosureModel, loop: Loop, position: Position) -> Iterator[PlacedSide]:
    """Both ends of a loop, their z along its axes, seen from the first joint of the link where its two sides part."""
    ways = [path_from_base(model.joints, link) for link in (loop.predecessor, loop.successor)]
    shared = next((n for n, (one, two) in enumerate(zip(*ways, strict=False)) if one is not two), min(map(len, ways)))
    axes = loop.axis, loop.axis if loop.type in TURNED else loop.axis2
    link = next((way[shared].parent for way in ways if way[shared:]), None)
    start = inverse_transform(next((_to_first(one) for one in model.joints if one.parent == link), np.eye(4)))
    for way, frame, axis in zip(ways, (loop.predecessor_frame, loop.successor_frame), axes, strict=True):
        found, frames = chain_of(way[shared:], frame @ transform_along(axis))
        yield chained(found, [start @ frames[0], *frames[1:]], position, model.length, loop.type)


def loop_rows(model: ClosureModel, loop: Loop, position: Position) -> list[Row]:
    """The equations of a loop, 6 - dof of the cut joint."""
    return rows_between(loop, *loop_sides(model, loop, position))


def rows_between(loop: Loop, one: Side, other: Side) -> list[Row]:
    """The equations of a loop whose sides move by some screws."""
    (R, p, before), (S, q, after) = one, other
    if loop.type is LoopType.SPHERICAL:
        return _rows(q - p, [(-1, before, p), (1, after, q)], np.eye(3).astype(object))
    back = R.T
    sides = [(-1, before, q), (1, after, q)]
    linear, angular = _rows(back @ (q - p), sides, back), _rows(np.zeros(3, dtype=object), sides, back, turning=True)
    if loop.type in TURNED:
        turn = back @ S
        for k, row in enumerate(angular):
            i, j = (k + 1) % 3, (k + 2) % 3
            row.gap = 0.5 * (turn[j, i] - turn[i, j])
        return [*linear[: 3 if loop.type is LoopType.FIXED else 2], *angular]
    x, y, z = back @ S[:, 2]
    if loop.type is LoopType.UNIVERSAL:
        return [*linear, _combined((y, -x), angular[:2], z)]
    angular[0].gap, angular[1].gap = -y, x
    rows = {LoopType.REVOLUTE: linear, LoopType.CYLINDRICAL: linear[:2], LoopType.PLANAR: linear[2:]}[loop.type]
    return [*rows, *angular[:2]]


@dataclass
class Screw:
    """What a coordinate does: it slides along or turns about an axis (3,) through a point (3,)."""

    name: str
    factor: float
    slides: bool
    axis: Vector
    point: Vector

    def turns(self) -> Vector:
        """Angular velocity (3,) at unit rate."""
        return np.zeros(3, dtype=object) if self.slides else self.axis

    def moves(self, point: Vector) -> Vector:
        """Velocity (3,) of a point (3,) at unit rate."""
        return self.axis if self.slides else np.cross(self.axis, point - self.point)


@dataclass
class Twist:
    """What all coordinates do to the end of a side together."""

    turning: Vector
    sliding: Vector
    name, factor = "", 1.0

    def turns(self) -> Vector:
        """Angular velocity (3,)."""
        return self.turning

    def moves(self, point: Vector) -> Vector:
        """Velocity (3,) of the end."""
        return self.sliding


Chain = tuple[list[tuple[Joint, Freedom]], list[Array]]
PlacedSide = tuple[Any, Vector, list[Screw]]
Side = tuple[Any, Vector, Sequence[Screw | Twist]]  # of a loop: rotation (3, 3) and point (3,) of its end, and screws


def chain_of(way: Sequence[Joint], end: Array) -> Chain:
    """The freedoms of a way, and constant frames (4, 4) [m] before, between and after them, their z along the axes."""
    found, frames, frame = [], [], np.eye(4)
    for joint in way:
        frame = frame @ joint.origin
        for freedom in freedoms(joint):
            turn = transform_along(freedom.axis)
            found.append((joint, freedom))
            frames.append(frame @ turn)
            frame = turn.T
    return found, [*frames, frame @ end]


def chained(
    found: Sequence[tuple[Joint, Freedom]],
    frames: Sequence[Array],
    position: Position,
    length: float,
    end: LoopType = LoopType.FIXED,
) -> PlacedSide:
    """Rotation (3, 3) and point (3,) of a chain's end, as far as a loop needs them, and the screws of its joints.

    Constant frames are parted into turns about both axes, which add to the joints', and a tilt (Denavit, Hartenberg).
    """
    R, p, screws = _clean(frames[0][:3, :3]), _clean(frames[0][:3, 3] / length), []
    pending = np.array([1.0, 0.0])
    for k, ((joint, freedom), frame) in enumerate(zip(found, frames[1:], strict=True)):
        name, factor, offset = freedom.name, 1.0, 0.0
        if joint.mimic is not None:
            name, factor, offset = joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset
        screws.append(Screw(name, factor, freedom.slides, R[:, 2], p))
        c, s = position(name, factor, offset)
        if freedom.slides:
            p, c, s = p + np.array([a * c for a in R[:, 2]], dtype=object), 1.0, 0.0
        if k == len(found) - 1 and end is LoopType.SPHERICAL:
            frame = transform(frame[:3, 3], np.eye(3))
        turn, tilt, left = _parted(frame)
        u, v = _clean(_turned(turn, pending))
        R = _turned_about(R, 2, c * u - s * v, s * u + c * v)
        p = p + R @ _clean(np.array([*_turned(frame[:2, 3], turn * [1.0, -1.0]), frame[2, 3]]) / length)
        R, pending = _turned_about(R, 0, *_clean(tilt)), left
    return (_turned_about(R, 2, *_clean(pending)) if end in TURNED else R), p, screws


def _parted(frame: Array) -> tuple[Array, Array, Array]:
    """Cosine and sine of the turn about z, the tilt about x and the turn about z that make the rotation of a frame."""
    E, (x, y) = frame[:3, :3], frame[:2, 2]
    sine = float(np.hypot(x, y))
    turn = np.array([-y, x]) / sine if sine > NOTHING else np.array([1.0, 0.0])
    tilt = np.array([E[2, 2], sine if sine > NOTHING else 0.0])
    column = np.array([*_turned(E[:2, 0], turn * [1.0, -1.0]), E[2, 0]])
    return turn, tilt, np.array([column[0], tilt[0] * column[1] + tilt[1] * column[2]])


def _turned(one: Array, by: Array) -> Array:
    return np.array([one[0] * by[0] - one[1] * by[1], one[0] * by[1] + one[1] * by[0]])


def _turned_about(R: Any, axis: int, c: Number, s: Number) -> Any:
    turn, i, j = np.eye(3).astype(object), (axis + 1) % 3, (axis + 2) % 3
    turn[i, i], turn[j, i], turn[i, j], turn[j, j] = c, s, -s, c
    return R @ turn


def _to_first(joint: Joint) -> Array:
    return joint.origin @ next((transform_along(one.axis) for one in freedoms(joint)), np.eye(4))


def moving(
    R: Any, p: Vector, screws: Sequence[Screw], speeds: Mapping[str, Number]
) -> tuple[Twist, list[tuple[Vector, Vector]]]:
    """The end's twist while joints move at `speeds`; axes, points and columns of R, and how fast they change."""
    turning, sliding, before = (np.zeros(3, dtype=object) for _ in range(3))
    changes = []
    for screw in screws:
        sliding = sliding + np.cross(turning, screw.point - before)
        before = screw.point
        changes += [(screw.axis, np.cross(turning, screw.axis)), (screw.point, sliding)]
        moved = np.array([screw.factor * speeds.get(screw.name, 0.0) * x for x in screw.axis], dtype=object)
        turning, sliding = (turning, sliding + moved) if screw.slides else (turning + moved, sliding)
    sliding = sliding + np.cross(turning, p - before)
    changes += [(p, sliding), *((column, np.cross(turning, column)) for column in R.T)]
    return Twist(turning, sliding), changes


def _clean(values: Array) -> Any:
    """As objects, without what is rounding alone: zeros and ones cost no operation."""
    rounded = np.round(values)
    return np.where(np.abs(values - rounded) < NOTHING, rounded, values).astype(object)


def _rows(
    gap: Vector, sides: list[tuple[int, Sequence[Screw | Twist], Vector]], back: Any, turning: bool = False
) -> list[Row]:
    """Three equations: `gap` (3,), and velocities of one side less the other turned `back`, of points or `turning`."""
    rows = [Row(one, {}) for one in gap]
    for sign, screws, point in sides:
        for screw in screws:
            moved = screw.turns() if turning else screw.moves(point)
            for row, value in zip(rows, back @ moved, strict=True):
                row.rates[screw.name] = row.rates.get(screw.name, 0.0) + sign * screw.factor * value
    return rows


def _combined(weights: Vector, rows: list[Row], gap: Number | None = None) -> Row:
    rates: dict[str, Number] = {}
    for weight, row in zip(weights, rows, strict=True):
        for name, value in row.rates.items():
            rates[name] = rates.get(name, 0.0) + weight * value
    return Row(dot(weights, [row.gap for row in rows]) if gap is None else gap, rates)


def dot(u: Any, v: Any) -> Number:
    """u . v of three numbers each."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


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
        inputs = [name for name in self.inputs if name in seen]
        for name in inputs:
            if name not in row:
                raise LinkageError(f"{name!r} follows another joint (<mimic>): name the other joint")
        seen = {name for name in seen if name in row}
        found, idle = motions.independent([*inputs, *(n for n in row if n not in inputs)], seen)
        if set(found) != set(inputs):
            extra = [f"{name} depends on the others" for name in inputs if name not in found]
            better = [n for one in self.tree.clusters if set(one.joints) & set(row) for n in one.independent]
            remedy = f"name {len(found)}, such as {', '.join(better if len(better) == len(found) else found)}"
            if len(better) != len(found):  # what rods do beside it counts as soon as a rod's joint is named
                remedy += ", or in a robot with one platform the coordinates that lead to it"
            raise LinkageError(f"the linkage is not determined by {', '.join(inputs)}: {'; '.join([*extra, remedy])}")
        return idle

    def slides(self, name: str) -> bool:
        """Whether a coordinate is a length."""
        return self.freedoms[name].slides

    def straight(self, name: str) -> bool:
        """Whether a coordinate is kept as its position: a length, or an angle in couplings alone, which may turn on."""
        return self.slides(name) or name not in self._in_loops

    @cached_property
    def _in_loops(self) -> set[str]:
        at = self.numbers_at(self.home)
        loops = [k for k, one in enumerate(self.ties) if not isinstance(one, Coupling)]
        return {name for k in loops for row in self.rows_of(k, at, self.home.__getitem__) for name in row.rates}

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
            return [Row(*one.at(angle, self.unit))]
        return loop_rows(self.model, one, position)

    @cached_property
    def _moves(self) -> NDArray[np.bool_]:
        """Which joints (m, dependent joints) move an equation, also where loops are open, as on Newton's way."""
        steps = OPEN * np.sin(1.0 + np.arange(len(self.near)))
        opened = {name: x + step * self.unit(name) for (name, x), step in zip(self.near.items(), steps, strict=True)}
        return np.asarray((np.abs(self.jacobian(self.near)[1]) + np.abs(self.jacobian(opened)[1])) > STRUCTURAL)

    def unit(self, name: str) -> float:
        """What a dimensionless step of a coordinate is [m, rad]."""
        return self.length if name in self.freedoms and self.slides(name) else 1.0

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks in solving order; equations that repeat others (planar loops in space) are in none.

        Equations are chosen that determine the joints at home too, where there are such: others may vanish there.
        """
        (equations, J), (_, drawn) = self.jacobian(self.near), self.jacobian(self.home)
        for rows, strong in [(np.stack((J, drawn)), STRONG[0]), *((J, one) for one in STRONG)]:
            chosen = independent(np.swapaxes(rows, -1, -2), strong)
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
            columns = np.flatnonzero(label == one)
            if set(label[ordered[columns].any(axis=0)].tolist()) <= done | {one}:
                yield row_of[columns].tolist(), columns.tolist()
                done.add(one)
                waiting.remove(one)
                break
