# SPDX-License-Identifier: Apache-2.0
"""States of a tree at random, all loops closed: for simulators that reset many worlds and close no loop themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from pkm_description.mechanism import Array, Mimic
from pkm_description.tree_model import TreeModel
from pkm_kinematics.batch import ShapeError, as_rows, gpu_rows, over_cores
from pkm_kinematics.kernels.path.fixed_steps import SOLVED, begin_at_random, write_states
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.linkage.linkage import Linkage
from pkm_kinematics.linkage.recorded_linkage import record_motion
from pkm_kinematics.status import Status
from pkm_runtime.codegen.c_code import GpuCode, cupy_with_gpu
from pkm_runtime.codegen.machine_code import LANES, VectorCode, empty_columns
from pkm_runtime.describable import listed
from pkm_runtime.errors import UsageError
from pkm_runtime.kernels.binding import empty_shareable, shareable

# At once, so that they stay in a core's cache: an odd number of its lines, as `empty_columns` has them, so that columns
# are contiguous, which kernels are vectorised for.
ROWS = 1032
GPU_ROWS = 1 << 18  # at once on a GPU, 100 to 1000 bytes each
NEAR = 1e-3  # a last correction below it, dimensionless: the next ones stay on the branch
DRAWS = 30  # rounds for what did not close
CONTRADICT = 1e-6  # m: more than a file's rounding
SAMPLES = 4  # for each coefficient of a fit
CUBIC = 7  # inputs up to which a fit has terms of the third degree
SLIGHT = 1e-3  # dimensionless: of a fit, what Newton's steps make up for


@dataclass(frozen=True, eq=False)
class ConsistentStates:
    """Arrays (n, names) of positions [m, rad], velocities and accelerations: NumPy's or CuPy's, for DLPack to share."""

    names: tuple[str, ...]
    position: Any
    velocity: Any
    acceleration: Any


class LinkageStates:
    """One linkage at many positions of its inputs, started from a fitted polynomial; with CuPy, on a GPU."""

    def __init__(self, linkage: Linkage, cupy: Any = None) -> None:
        self.linkage, self.system, self._cupy = linkage, linkage.system, cupy
        self._library = np if cupy is None else cupy
        self._empty: Callable[..., Any] = empty_columns if cupy is None else lambda *shape: cupy.empty(shape)
        n, dependent = len(linkage.inputs), self.system.dependent
        self._straight = [k for k, name in enumerate(dependent) if self.system.straight(name)]
        self._turns = [k for k, name in enumerate(dependent) if not self.system.straight(name)]
        self._units = self._library.asarray([[self.system.unit(dependent[k])] for k in self._straight])
        degrees = range(4 if n <= CUBIC else 3)
        terms = [some for k in degrees for some in combinations_with_replacement(range(n), k)]
        self._terms = np.array([[*some, *[-1] * (3 - len(some))] for some in terms])  # which inputs each multiplies
        self._home = self._library.asarray(linkage.home[n:, None])
        self._fitted: tuple[Any, Any] = None, None  # the last ends of inputs, and what `fit` found

    def fit(self, ends: Array, gap: float = CONTRADICT) -> tuple[Any, Any, Any]:
        """Where Newton's method starts for inputs within ends (n, 2): middles, halves of widths, coefficients.

        Raises `UsageError` where loops stay open by more than `gap` [m] there, or home is a fold.
        """
        if self._cupy is not None:
            middle, half, coefficients = map(self._cupy.asarray, self._beside.fit(ends, gap))
            return middle, half, coefficients
        within, fitted = self._fitted
        if within == (gap, *ends.ravel()):
            return fitted
        low, high = ends.T[..., None]
        middle, half = 0.5 * (low + high), np.where(high > low, 0.5 * (high - low), 1.0)
        q = np.random.default_rng(0).uniform(low, high, (len(ends), SAMPLES * len(self._terms)))
        solved = self.linkage.at(q.T)
        closed = solved.status == Status.CONVERGED
        if self.linkage.folded:
            problem, remedy = "it is a fold, from where they go on in several ways", "give another, in MJCF a <key>"
            raise UsageError(f"home of {', '.join(self.linkage.inputs)}", problem, remedy)
        if (found := solved.gap.max(where=closed, initial=0.0)) > gap:
            name, inputs = self.linkage.widest(solved)[0], ", ".join(self.linkage.inputs)
            problem = f"loops of {inputs} contradict each other: {name} stays open by {found:.2g} m"
            remedy = f"give others, leave out a loop or coupling, or allow it: gap={2.0 * found:.1g}"
            raise UsageError("ranges", problem, remedy)
        terms, ways = self._values((q[:, closed] - middle) / half), self.halves(solved.q[closed, len(ends) :].T)
        coefficients = np.linalg.lstsq(terms.T, ways.T, rcond=None)[0].T
        fitted = middle, half, np.where(np.abs(coefficients) < SLIGHT, 0.0, coefficients)
        self._fitted = (gap, *ends.ravel()), fitted
        return fitted

    def _values(self, u: Any) -> Any:
        # of each term, at inputs scaled to -1 to 1 (n, rows)
        ones = self._library.ones((1, u.shape[1]))
        return self._library.concatenate([u, ones])[self._terms].prod(axis=1)

    @cached_property
    def _code(self) -> VectorCode:
        return VectorCode(record_motion(self.system))

    @cached_property
    def _gpu_code(self) -> GpuCode:
        return GpuCode(record_motion(self.system), self._cupy)

    @cached_property
    def _beside(self) -> LinkageStates:
        return LinkageStates(self.linkage)  # on processors, for what a GPU cannot lead from home

    def draw(self, fit: tuple[Any, Any, Any], bounds: Any, rng: Any, rows: int) -> tuple[Any, Any, Any]:
        """Positions, speeds, accelerations at random of inputs (3, n, rows) and dependents; which rows are good."""
        middle, half, coefficients = fit
        lowest, width = bounds  # (3 n,) each, of positions, speeds, accelerations
        numbers = rng.random((len(lowest), rows))
        if self._cupy is not None:
            q, v, a = moves = (lowest[:, None] + width[:, None] * numbers).reshape(3, -1, rows)
            way = coefficients @ self._values((q - middle) / half)
            return moves, *self.solve_from(way, q, v, a, to_folds=False)
        columns = self._empty(len(lowest) + len(self.system.dependent), rows)
        begin_at_random(numbers, lowest, width, self._terms, coefficients, np.empty(rows), columns)
        moves = columns[: len(lowest)].reshape(3, -1, rows)
        return moves, *self._mended(*self._run(columns), columns[len(lowest) :], *moves, to_folds=False)

    def halves(self, joints: Any) -> Any:
        """What `solve_from` starts at, from positions of the dependent joints (dependent, rows)."""
        way = 0.5 * (joints - self._home)
        way[self._turns] = self._library.tan(way[self._turns])
        if self._straight:
            way[self._straight] *= 2.0 / self._units
        return way

    def solve_from(self, way: Any, q: Any, v: Any, a: Any, *, to_folds: bool = True) -> tuple[Any, Any]:
        """Dependents (3, dependent, rows) of inputs, from `halves`; which are good; `to_folds` as in `Linkage.at`."""
        return self._mended(*self._from(way, q, v, a), way, q, v, a, to_folds=to_folds)

    def _mended(
        self, found: Any, last: Any, good: Any, way: Any, q: Any, v: Any, a: Any, *, to_folds: bool
    ) -> tuple[Any, Any]:
        if self._cupy is not None:
            return self._with_processors(to_folds, found, good, way, q, v, a)
        if good.all():
            return found, good
        for led in (False, True):  # what is near goes on; the rest is led from home, which takes far longer
            bad = np.flatnonzero(~good if led else ~good & (last < NEAR))
            if not len(bad):
                continue
            rows = np.resize(bad, -(-len(bad) // LANES) * LANES)
            near = self.linkage.at(q[:, rows].T, to_folds=to_folds).q[:, len(q) :] if led else found[0, :, rows]
            found[:, :, rows], last[rows], good[rows] = self._from(
                self.halves(near.T), q[:, rows], v[:, rows], a[:, rows]
            )
        return found, good

    def _with_processors(self, to_folds: bool, found: Any, good: Any, *given: Any) -> tuple[Any, Any]:
        cupy = self._cupy
        bad = cupy.flatnonzero(~good)
        if not len(bad):
            return found, good
        padded = np.resize(np.arange(len(bad)), -(-len(bad) // LANES) * LANES)
        again, closes = self._beside.solve_from(
            *(cupy.asnumpy(one[:, bad])[:, padded] for one in given), to_folds=to_folds
        )
        found[:, :, bad], good[bad] = cupy.asarray(again[:, :, : len(bad)]), cupy.asarray(closes[: len(bad)])
        return found, good

    def _from(self, way: Any, q: Any, v: Any, a: Any) -> tuple[Any, Any, Any]:
        n = len(q)
        columns = self._empty(3 * n + len(way), q.shape[1])
        columns[:n], columns[n : 2 * n], columns[2 * n : 3 * n], columns[3 * n :] = q, v, a, way
        return self._run(columns)

    def _run(self, columns: Any) -> tuple[Any, Any, Any]:
        d, rows = len(self.system.dependent), columns.shape[1]
        inputs = (self._code if self._cupy is None else self._gpu_code).inputs
        if len(inputs) < len(columns):
            every, columns = columns, self._empty(len(inputs), rows)
            columns[:] = every[list(inputs)]
        if self._cupy is None:
            out = self._empty(3 * d + 3, rows)
            self._code(columns, out)
        else:
            out = self._gpu_code.there(columns)
        good = (out[-1] == 1.0) & (out[-3] < SOLVED) & is_regular.py_func(out[-2])
        return out[:-3].reshape(3, d, rows), out[-3], good


def consistent_states(
    tree: TreeModel,
    n: int,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    *,
    speed: float = 1.0,
    acceleration: float = 10.0,
    seed: int = 0,
    gpu: bool = False,
    gap: float = CONTRADICT,
) -> ConsistentStates:
    """`n` states, uniform over `ranges` [rad or m] of independent joints and of joints on no loop.

    Joints of a cluster that have a range must determine it; else its `independent` ones are drawn, within their limits.
    Joints of no loop without range and limits stay at home. Speeds and accelerations are uniform up to `speed` and
    `acceleration` [rad/s or m/s, and per s]. What does not close is drawn again, as is some of what lies by a fold.
    With `gpu` they stay on a GPU, and are others for the same seed. Loops that contradict each other stay open.

    Raises `UsageError` where that is more than `gap` [m], most states do not close, or there is no GPU or CuPy.
    """
    names, given, library = tuple(tree.joint_named), dict(ranges or {}), _library(gpu)
    _check(tree, n, given, {"speed": speed, "acceleration": acceleration, "gap": gap})
    linkages = _drawn_linkages(tree, given, gpu)
    drawn: tuple[str, ...] = sum((one.linkage.inputs for one in linkages), ())
    tied, idle = {*drawn}, {name for one in linkages for name in one.linkage.idle}  # idle ones stay at home
    follows = {*drawn}.union(_geared(tree), *(one.system.dependent for one in linkages))
    drawn += tuple(name for name in names if name not in follows)
    found = [_range(tree, name, given, needed=name in tied, stays=name in idle) for name in drawn]
    low, high = bounds = np.array(found).reshape(-1, 2).T
    most = np.where(high > low, [[speed], [acceleration]], 0.0)  # what has one place only stays there
    ends = library.asarray([[low, *-most], [high - low, *(2.0 * most)]])  # (2, 3, drawn): lowest, and how far it ranges
    parts, first = [], 0
    for one in linkages:
        own = slice(first, first := first + len(one.linkage.inputs))
        columns = [np.array([*map(names.index, some)], dtype=int) for some in (drawn[own], one.system.dependent)]
        parts.append((one, one.fit(bounds[:, own].T, gap) if n else None, ends[:, :, own].reshape(2, -1), columns))
    free = ends[..., first:, None], np.array([*map(names.index, drawn[first:])], dtype=int)
    states = (empty_shareable if library is np else library.empty)((3, -(-n // 8) * 8, len(names)))[:, :n]

    def part(at: slice) -> None:
        rng = library.random.default_rng(seed) if gpu else np.random.Generator(np.random.SFC64([seed, at.start]))
        done, rows = at.start, min(GPU_ROWS if gpu else ROWS, 8 * (-(-(at.stop - at.start) // 8) | 1))  # see ROWS
        for _ in range(DRAWS * (1 + (at.stop - at.start) // rows)):
            if done == at.stop:
                return
            filled, good = _rows_at_random(library, rng, rows, parts, free)
            kept = library.flatnonzero(good)[: at.stop - done]
            to = slice(done, done := done + len(kept))
            for joints, places in filled:
                if gpu:
                    states[:, to, places] = joints[:, :, kept].swapaxes(1, 2)
                else:
                    write_states(joints, kept, places, to.start, states)
        raise UsageError("ranges", "most random states do not close", "give narrower ranges")

    part(slice(0, n)) if gpu else over_cores(part, n)
    _follow(tree, states)
    return ConsistentStates(names, *states)


def _rows_at_random(library: Any, rng: Any, rows: int, parts: Any, free: Any) -> tuple[list[tuple[Any, Array]], Any]:
    # joints (3, k, rows) and their columns, of linkages and of no loop; which rows are good
    (lowest, width), places = free
    moves = lowest + (width * rng.random((*width.shape[:2], rows)) if width.any() else library.zeros(rows))
    good, filled = library.ones(rows, dtype=bool), [(moves, places)]
    for one, fit, bounds, columns in parts:
        *joints, closes = one.draw(fit, bounds, rng, rows)
        filled += zip(joints, columns, strict=True)
        good &= closes
    return filled, good


def _drawn_linkages(tree: TreeModel, given: Collection[str], gpu: bool) -> list[Any]:
    # one per cluster: its inputs are its given joints, else its independent ones
    asked = [tuple(name for name in given if name in one.joints) or one.independent for one in tree.clusters]
    return [_states(tree, names, one.actuators, gpu) for one, names in zip(tree.clusters, asked, strict=True)]


def closed_states(
    tree: TreeModel,
    position: Any,
    velocity: Any,
    acceleration: Any,
    *,
    held: Collection[str] = (),
    gpu: bool = False,
) -> ConsistentStates:
    """States (n, joints), in the order of `tree.joint_named`, what depends on others corrected; else NaN.

    What stays are `held` joints, such as the motors, which must determine their cluster; else its `independent` ones.
    With `gpu` on a GPU, where arrays of CuPy, torch and JAX are read where they are, and the results stay. Raises
    `ShapeError` where the arrays do not have the same rows, or a column for each joint.
    """
    names, library = tuple(tree.joint_named), _library(gpu)
    called = {"position": position, "velocity": velocity, "acceleration": acceleration}
    if gpu:
        rows = [gpu_rows(library, values, (len(names),), what) for what, values in called.items()]
    else:
        rows = [as_rows(values, len(names), what)[0] for what, values in called.items()]
    if len({len(one) for one in rows}) > 1:
        raise ShapeError(f"positions, velocities and accelerations: {', '.join(str(len(one)) for one in rows)} rows")
    tree.tied_to(held)  # refuses what is no joint
    given = library.stack(rows)
    n = given.shape[1]
    padded = np.resize(np.arange(n), -(-n // LANES) * LANES)
    for part in _drawn_linkages(tree, held, gpu):
        inputs, others = ([names.index(name) for name in some] for some in (part.linkage.inputs, part.system.dependent))
        columns = given[:, padded].swapaxes(1, 2)
        found, good = part.solve_from(part.halves(columns[0, others]), *columns[:, inputs])
        found = library.where(good, found, np.nan)
        given[:, :, others] = found.swapaxes(1, 2)[:, :n]
        given[0][:, [names.index(name) for name in part.linkage.idle]] = library.asarray(
            [part.system.home[k] for k in part.linkage.idle]
        )
        given[1:, :, [names.index(name) for name in part.linkage.idle]] = 0.0
    _follow(tree, given)
    return ConsistentStates(names, *(given if gpu else map(shareable, given)))


def _geared(tree: TreeModel) -> dict[str, Mimic]:
    return {name: joint.mimic for name, joint in tree.joint_named.items() if joint.mimic is not None}


def _follow(tree: TreeModel, states: Any) -> None:
    """Set geared joints of states (3, n, joints) by those that they follow."""
    names = tuple(tree.joint_named)
    for name, mimic in _geared(tree).items():
        states[..., names.index(name)] = mimic.multiplier * states[..., names.index(mimic.joint)]
        states[0, :, names.index(name)] += mimic.offset


def _check(tree: TreeModel, n: int, ranges: Mapping[str, tuple[float, float]], bounds: Mapping[str, float]) -> None:
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise UsageError(f"n {n}", "no number of states", "give an integer, zero or more")
    for name, value in bounds.items():
        if not 0.0 <= value < np.inf:
            raise UsageError(f"{name} {value}", "no bound of random numbers", "give a finite number, zero or more")
    for name, (low, high) in ranges.items():
        about = f"range of {name}, {low} to {high}"
        if name not in tree.joint_named:
            raise UsageError(about, "no such joint", f"it has {listed(tree.joint_named)}")
        if not -np.inf < low <= high < np.inf:
            raise UsageError(about, "it is empty or endless", "give two finite numbers, the lower first")


def _library(gpu: bool) -> Any:
    return cupy_with_gpu("states on GPUs") if gpu else np


@lru_cache(maxsize=16)
def _states(tree: TreeModel, inputs: tuple[str, ...], seen: tuple[str, ...], gpu: bool) -> LinkageStates:
    # kept: its code takes seconds to compile
    return LinkageStates(Linkage(tree, inputs, seen), _library(gpu) if gpu else None)


def _range(
    tree: TreeModel, name: str, given: Mapping[str, tuple[float, float]], *, needed: bool, stays: bool
) -> tuple[float, float]:
    home = tree.home.get(name, 0.0)
    if stays:
        return home, home
    if name in given:
        return given[name]
    ends = [(tree.joint_named[name].limits, 1.0, 0.0)]  # its own, and those of what follows it
    ends += [(tree.joint_named[k].limits, m.multiplier, m.offset) for k, m in _geared(tree).items() if m.joint == name]
    both = [np.sort((np.array([one.lower, one.upper]) - offset) / factor) for one, factor, offset in ends if factor]
    lower, upper = float(max(one[0] for one in both)), float(min(one[1] for one in both))
    if np.isfinite(upper - lower) and lower <= upper:
        return lower, upper
    if needed:
        raise UsageError(f"joint {name}", "it has no limits", f"give a range: ranges={{{name!r}: (-0.2, 0.2)}}")
    return home, home
