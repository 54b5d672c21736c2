# SPDX-License-Identifier: Apache-2.0
"""Where a question is asked: which task coordinates vary, over which ranges, where the others are held.

Task coordinates are those of the description (`task.names`), called by the last part of their names: x y z of a Delta,
with yaw pitch roll of a Gough-Stewart platform. A platform without a branch of its own has x y z [m] and yaw pitch
roll [rad] relative to home, in its axes there.

In a configuration-dependent motion space the named coordinates vary and the others follow along the way from home.
Nearby points share most of that way: it leads through the centres of cells of a lattice about home, each reached once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import ArrayLike, NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.pose_quantities import branch_positions
from pkm_analysis.requirements.grammar import by_default, label_of, read_number, shown, spread
from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.solve.engine import Engine
from pkm_runtime.describable import listed

TURN = 0.2  # rad: side of a cell along an angle
SLIDE = 0.1  # of the robot's size: along a length

Cell = tuple[int, ...]
Range = tuple[float, float]
Indices = NDArray[np.int64]
Value = TypeVar("Value")
UNLIMITED = 1e12  # rad or m
SLACK = 1e-9  # rad, and of the robot's size, beyond a limit: rounding
MOST_NODES = 50_000_000  # of a grid
INDEPENDENT = 1e-6  # of unit velocities: smaller singular values are zero


class Lattice:
    """Configurations at the centres of cells, found on demand. Thread-safe.

    A cell is reached from the one before it on the straight line from home, and a point from the centre of its cell,
    or, where that has no configuration, of the one before: results do not depend on earlier queries.
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
        here = self._reached[cell]
        return here if here is not None or not any(cell) else self._reached[_before(cell)]

    def _reach(self, cells: Iterable[Cell]) -> None:
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
    far = _far(cell)
    return tuple(int(np.rint(k * (far - 1) / far)) for k in cell)


@dataclass(frozen=True)
class Coordinate:
    """A task coordinate."""

    name: str  # in the robot's description
    label: str  # its last part: x, yaw
    unit: str  # m or rad
    home: float
    lower: float  # limits of the platform, -inf and inf without
    upper: float
    slack: float  # beyond a limit: rounding


class TaskCoordinates:
    """The task coordinates of a robot, and poses at them."""

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self._lattices: dict[tuple[str, ...], Lattice] = {}
        engine, task = kinematics.engine, kinematics.task
        at_home = engine.inputs.branch_at(engine.home)
        if task.names:
            chain = task.chain[1:]
            slides, lower, upper = chain["prismatic"] == 1, chain["lower"], chain["upper"]
        else:
            slides, lower, upper = np.arange(6) < 3, np.full(6, -np.inf), np.full(6, np.inf)
        self.all = tuple(
            Coordinate(
                name,
                label_of(name),
                "m" if slide else "rad",
                float(home),
                float(low) if low > -UNLIMITED else -np.inf,
                float(high) if high < UNLIMITED else np.inf,
                SLACK * (engine.size if slide else 1.0),
            )
            for (name, home), slide, low, high in zip(at_home.items(), slides, lower, upper, strict=True)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies recompute what was cached."""
        return TaskCoordinates, (self.kinematics,)

    def lattice(self, names: tuple[str, ...]) -> Lattice:
        """The lattice along which poses are followed from home for given coordinates; one for all callers."""
        if names not in self._lattices:
            self._lattices.setdefault(names, Lattice(self.kinematics.engine, names))
        return self._lattices[names]

    @property
    def labels(self) -> tuple[str, ...]:
        """Short names, in order."""
        return tuple(c.label for c in self.all)

    @property
    def frame(self) -> str:
        """Where the coordinates count from, if not from the base: without a branch, no joints say what they are."""
        return "" if self.kinematics.task.names else "counted from the platform at home, along its axes there"

    def find(self, name: str) -> Coordinate:
        """A coordinate by its name or its label, such as x; `AnalysisError` for an unknown one."""
        for coordinate in self.all:
            if name in (coordinate.name, coordinate.label):
                return coordinate
        known = listed(self.labels) if self.all else "none"
        raise AnalysisError(f"coordinate {name}", "the robot has none of that name", f"choose one of: {known}")

    def point(self, values: Mapping[str, float]) -> Array:
        """All coordinates (c,) [m, rad] where some have values, by name; the others have home's."""
        named = self.named(values)
        return np.array([named.get(c.name, c.home) for c in self.all])

    def named(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The same values by the full names of their coordinates."""
        return {self.find(name).name: value for name, value in values.items()}

    def read_value(self, word: str) -> tuple[Coordinate, float]:
        """A coordinate and its value [m, rad], from NAME=VALUE such as yaw=10deg; `AnalysisError` where implausible."""
        c, (low, high) = self.read_range(word, optional=True)
        if low != high:
            raise AnalysisError(f"value '{word}'", "a range is not a value", "give each coordinate one")
        return c, low

    def read_range(self, word: str, optional: bool = False) -> tuple[Coordinate, Range]:
        """A coordinate and its range [m, rad], from NAME=LOWER:UPPER, `optional` NAME=VALUE. Errors as `read_value`."""
        about = f"range '{word}'"
        name, equals, text = word.partition("=")
        ends = [end.strip() for end in text.split(":")]
        if not equals or not all(ends) or len(ends) > 2 or (len(ends) == 1 and not optional):
            written = "NAME=VALUE or NAME=LOWER:UPPER" if optional else "NAME=LOWER:UPPER"
            raise AnalysisError(about, "it cannot be read", f"write {written}, such as x=-0.1:0.1 or yaw=-10:10deg")
        c = self.find(name.strip())
        found = [read_number(end, about) for end in ends]
        size = self.kinematics.engine.size
        values = [by_default(number, unit or found[-1][1], c.unit, size, about) for number, unit in found]
        if values[0] > values[-1]:
            raise AnalysisError(about, "it is empty", "give the lower end first")
        return c, (values[0], values[-1])

    @cached_property
    def free(self) -> tuple[Coordinate, ...]:
        """As many coordinates as the robot has degrees of freedom; they determine the others."""
        mobility = self.kinematics.mobility
        if self.kinematics.task.names and len(self.all) == mobility:
            return self.all
        if len(self.all) != 6:
            problem = f"the platform's branch has {len(self.all)} joints for {mobility} degrees of freedom"
            raise AnalysisError("domain", problem, "name the coordinates that vary")
        space = np.nan_to_num(self.kinematics.subspace(self.kinematics.home))
        unit = space / np.maximum(np.linalg.norm(space, axis=0), 1e-300)
        turn = scipy.spatial.transform.Rotation.from_quat(self.kinematics.engine.home[3:]).as_matrix().T
        rates = np.vstack([turn @ unit[:3], (turn @ unit[3:])[::-1]])  # of x y z, yaw pitch roll
        chosen: list[int] = []
        for k in sorted(range(6), key=lambda k: -np.linalg.norm(rates[k])):
            independent = np.linalg.svd(rates[[*chosen, k]], compute_uv=False)[-1] > INDEPENDENT
            chosen += [k] if independent and len(chosen) < mobility else []
        return tuple(self.all[k] for k in sorted(chosen))

    def poses(self, values: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Poses (n, 7) at all task coordinates (n, k), in order; and where they are known: everywhere."""
        if self.kinematics.task.names:
            return self.kinematics.engine.inputs.poses_at(values), np.ones(len(values), dtype=bool)
        Rotation = scipy.spatial.transform.Rotation
        home = Rotation.from_quat(self.kinematics.engine.home[3:])
        poses = np.empty((len(values), 7))
        poses[:, :3] = self.kinematics.engine.home[:3] + home.apply(values[:, :3])
        poses[:, 3:] = (home * Rotation.from_euler("ZYX", values[:, 3:])).as_quat()
        return poses, np.ones(len(values), dtype=bool)

    def read(self, poses: Array) -> Array:
        """All task coordinates (n, k) of poses (n, 7) in the motion space; angles within half a turn of home."""
        engine = self.kinematics.engine
        if not self.kinematics.task.names:
            return np.stack(list(engine.inputs.stand_in(poses).values()), axis=1) if len(poses) else np.empty((0, 6))
        found = np.empty((len(poses), len(self.all)))
        if len(poses):
            R = scipy.spatial.transform.Rotation.from_quat(poses[:, 3:]).as_matrix()
            home = np.array([c.home for c in self.all])
            branch_positions(engine.model, engine.data(), R, np.ascontiguousarray(poses[:, :3]), home, found)
        return found


def check_resolution(about: str, resolution: int | None, dimension: int) -> None:
    """Raise `AnalysisError` for a grid with too few or too many nodes per coordinate; None passes."""
    if resolution is not None and resolution < 2:
        raise AnalysisError(about, f"{resolution} nodes along a coordinate are not a grid", "give two at least")
    if resolution is not None and float(resolution) ** dimension > MOST_NODES:
        problem = f"the grid would have {float(resolution) ** dimension:.3g} nodes"
        raise AnalysisError(about, problem, "lower the resolution")


@dataclass(frozen=True, eq=False)
class Domain:
    """Where a question is asked: task coordinates `origin + directions @ point`, for points (d,) between two ends.

    Of a box the directions are those of coordinates, what does not vary is held, or follows and is NaN; a path has one.
    """

    task: TaskCoordinates
    origin: Array  # (c,) [m, rad]
    directions: Array  # (c, d)
    lower: Array  # (d,)
    upper: Array
    coordinates: tuple[Coordinate, ...] = ()  # that vary, each by itself; of a path none
    held: Mapping[str, float] = field(default_factory=dict)  # [m, rad], by full name

    @classmethod
    def of_ranges(cls, task: TaskCoordinates, ranges: Mapping[str, Range], held: Mapping[str, float] | None) -> Domain:
        """Ranges [m, rad] of coordinates that vary and values of others, home's by default, by name or label."""
        given = {name: float(value) for name, value in task.named(held or {}).items()}
        vary = [task.find(name) for name in ranges]
        for c, (low, high) in zip(vary, ranges.values(), strict=True):
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise AnalysisError(f"range of {c.label}", f"{low:g} to {high:g} is empty", "give the lower end first")
            if c.name in given:
                raise AnalysisError(f"coordinate {c.label}", "it is to vary and to be held", "choose one of these")
        if not vary:
            raise AnalysisError("domain", "no coordinate varies", "name one")
        rest = [c for c in task.all if c not in vary and c.name not in given]
        if not task.kinematics.engine.constant_space:  # as many as degrees of freedom are given, the others follow
            mobility, taken = task.kinematics.mobility, len(vary) + len(given)
            if taken > mobility:
                problem = f"{taken} coordinates are given, and the platform has {mobility} degrees of freedom"
                raise AnalysisError("domain", problem, f"vary or hold {listed(c.label for c in task.free)}")
            rest = [c for c in task.free if c in rest][: mobility - taken]
        return cls._along(task, ranges, {**given, **{c.name: c.home for c in rest}})

    @classmethod
    def _along(cls, task: TaskCoordinates, ranges: Mapping[str, Range], held: Mapping[str, float]) -> Domain:
        vary = [task.find(name) for name in ranges]
        origin = np.array([0.0 if c in vary else held.get(c.name, np.nan) for c in task.all])
        directions = np.eye(len(task.all))[:, [task.all.index(c) for c in vary]]
        lower, upper = np.array(list(ranges.values()), dtype=float).reshape(-1, 2).T
        return cls(task, origin, directions, lower, upper, tuple(vary), held)

    @classmethod
    def of_box(cls, task: TaskCoordinates, bounds: ArrayLike) -> Domain:
        """Bounds (c, 2) [m, rad] of all coordinates; those with equal ones are held."""
        ends = dict(zip((c.name for c in task.all), np.asarray(bounds, dtype=float).tolist(), strict=True))
        ranges = {name: (low, high) for name, (low, high) in ends.items() if low != high}
        return cls._along(task, ranges, {name: low for name, (low, high) in ends.items() if low == high})

    @classmethod
    def of_path(cls, task: TaskCoordinates, start: ArrayLike, end: ArrayLike) -> Domain:
        """A straight path between coordinates (c,) [m, rad]."""
        first = np.asarray(start, dtype=float)
        return cls(task, first, (np.asarray(end, dtype=float) - first)[:, None], np.zeros(1), np.ones(1))

    def check_held(self) -> None:
        """Raise `AnalysisError` where a coordinate is held outside the platform's limits."""
        for name, value in self.held.items():
            c = self.task.find(name)
            if not c.lower - c.slack <= value <= c.upper + c.slack:
                allowed = spread(c.lower, c.upper, c.unit)
                problem = f"it is held at {shown(value, c.unit)}, and the description allows {allowed}"
                raise AnalysisError(f"coordinate {c.label}", problem, "hold it within, or do without platform limits")

    @property
    def box(self) -> Array:
        """Ends (d, 2) of the points."""
        return np.stack([self.lower, self.upper], axis=-1)

    @property
    def ranges(self) -> dict[str, Range]:
        """Ends of the coordinates that vary, by full name."""
        return {c.name: (float(a), float(b)) for c, (a, b) in zip(self.coordinates, self.box, strict=True)}

    @property
    def labels(self) -> tuple[str, ...]:
        """Short names of the coordinates that vary."""
        return tuple(c.label for c in self.coordinates)

    @property
    def units(self) -> tuple[str, ...]:
        """m or rad, of the coordinates that vary."""
        return tuple(c.unit for c in self.coordinates)

    @cached_property
    def scale(self) -> Array:
        """Factors (d,) that turn coordinates into lengths: angles by the characteristic length."""
        length = self.task.kinematics.characteristic_length
        return np.array([1.0 if unit == "m" else length for unit in self.units])

    @property
    def dimension(self) -> int:
        """Number of coordinates that vary."""
        return len(self.lower)

    @cached_property
    def closes(self) -> tuple[bool, ...]:
        """Which coordinates are periodic: angles whose range is a whole turn, back to the same pose."""
        length, whole = self.task.kinematics.engine.size, self.upper - self.lower > 2.0 * np.pi - SLACK
        middle, found = 0.5 * (self.lower + self.upper), []
        for k, unit in enumerate(self.units):
            periodic = unit == "rad" and whole[k] and self.task.kinematics.engine.constant_space
            if periodic:
                a, b = self.poses(middle + np.outer([0.0, 2.0 * np.pi], np.arange(len(middle)) == k))[0]
                periodic = pose_distance(a, b, length) < 1e-6 * length
            found.append(bool(periodic))
        return tuple(found)

    def within(self, ranges: Mapping[str, Range], held: Mapping[str, float] | None = None) -> Domain:
        """A part of the domain: other ranges [m, rad], and some coordinates held."""
        vary = self.task.named(ranges)
        kept = {name: value for name, value in self.held.items() if name not in vary}
        return Domain.of_ranges(self.task, ranges, {**kept, **self.task.named(held or {})})

    def check_surface(self) -> None:
        """Raise `AnalysisError` unless three coordinates vary: only then a border is a surface."""
        if self.dimension != 3:
            raise AnalysisError("mesh", f"the border is not a surface in {self.dimension} coordinates", "vary three")

    def nodes(self, number: float, fewest: int) -> Indices:
        """How many nodes (d,) a grid has along each coordinate, for cubic cells, `number` along the middle one."""
        span = self.scale * (self.upper - self.lower)
        side = float(np.prod(span)) ** (1.0 / len(span))
        return np.maximum(np.ceil(number * (span / side)).astype(int), fewest)

    def grid(self, shape: Iterable[int]) -> list[Array]:
        """Values of each coordinate at the nodes of a grid."""
        return [np.linspace(a, b, n) for a, b, n in zip(self.lower, self.upper, shape, strict=True)]

    def inside(self, points: Array) -> NDArray[np.bool_]:
        """Which points (n, d) are within the ranges, up to rounding."""
        slack = 1e-12 * (self.upper - self.lower)
        return np.asarray(((points >= self.lower - slack) & (points <= self.upper + slack)).all(axis=1))

    def values(self, points: Array) -> Array:
        """All task coordinates (..., c) at points (..., d); NaN for those that follow."""
        return np.asarray(self.origin + points @ self.directions.T)

    def bounds(self, boxes: Array) -> Array:
        """Bounds (n, c, 2) of the task coordinates over boxes of points (n, d, 2)."""
        ends = self.directions * boxes[:, None, :, 0], self.directions * boxes[:, None, :, 1]
        sums = [np.minimum(*ends).sum(axis=-1), np.maximum(*ends).sum(axis=-1)]
        return self.origin[:, None] + np.stack(sums, axis=-1)

    def poses(self, points: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Poses (n, 7) of points (n, d) [m, rad], home where none exists; and which exist."""
        if self.task.kinematics.engine.constant_space:
            if self.coordinates and all(unit == "m" for unit in self.units):
                start, along = self._straight
                poses = np.empty((len(points), 7))
                np.matmul(points, along, out=poses[:, :3])
                poses[:, :3] += start[:3]
                poses[:, 3:] = start[3:]
                return poses, np.ones(len(points), dtype=bool)
            return self.task.poses(self.values(points))
        names = (*(c.name for c in self.coordinates), *self.held)
        column = {c.name: k for k, c in enumerate(self.task.all)}
        return self.task.lattice(names).poses(self.values(points)[:, [column[name] for name in names]])

    @cached_property
    def _straight(self) -> tuple[Array, Array]:
        """For prismatic coordinates alone: the pose (7,) with all at zero, and their directions (d, 3)."""
        poses, _ = self.task.poses(self.values(np.vstack([np.zeros(self.dimension), np.eye(self.dimension)])))
        return poses[0], poses[1:, :3] - poses[0, :3]

    def place(self, point: Array, digits: int = 6) -> str:
        """Names and values of a point (d,) [m, rad]."""
        return ", ".join(f"{c.label} {shown(v, c.unit, digits)}" for c, v in zip(self.coordinates, point, strict=True))

    def in_words(self, but: Iterable[Coordinate] = ()) -> str:
        """Names, ranges and values of what varies and what is held, with units, except for `but`."""
        vary = ", ".join(
            f"{c.label} {spread(low, high, c.unit)}" for c, (low, high) in zip(self.coordinates, self.box, strict=True)
        )
        held = [(self.task.find(name), value) for name, value in self.held.items()]
        positions = ", ".join(f"{c.label} {shown(value, c.unit)}" for c, value in held if c not in but)
        return vary + f" ({self.task.frame})" * bool(self.task.frame) + (f"; held: {positions}" if positions else "")


def through(coordinate: Coordinate, low: float, high: float) -> float:
    """Where a range is cut to be drawn: at home if that is inside, else in the middle."""
    return coordinate.home if low < coordinate.home < high else 0.5 * (low + high)


def size_unit(domain: Domain) -> str:
    """Unit of a size, such as m^2 rad."""
    lengths, angles = domain.units.count("m"), domain.units.count("rad")
    return " ".join([f"{unit}^{n}" if n > 1 else unit for unit, n in (("m", lengths), ("rad", angles)) if n])


def corners(boxes: Array) -> Array:
    """Corners (n, 2^d, d) of boxes (n, d, 2)."""
    d = boxes.shape[1]
    return np.stack([boxes[:, np.arange(d), list(ends)] for ends in itertools.product((0, 1), repeat=d)], axis=1)


def nodes_of(axes: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """All nodes (n, d) of a grid, the last coordinate fastest."""
    return np.stack([values.ravel() for values in np.meshgrid(*axes, indexing="ij")], axis=1)
