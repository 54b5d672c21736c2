# SPDX-License-Identifier: Apache-2.0
"""States of a tree at random, all loops closed: for simulators that reset many worlds and close no loop themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.tree_model import TreeModel
from pkm_kinematics.batch import ShapeError, as_rows, gpu_rows, over_cores
from pkm_kinematics.kernels.path.fixed_steps import SOLVED
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.linkage.linkage import Linkage
from pkm_kinematics.linkage.recorded_linkage import record_motion
from pkm_kinematics.status import Status
from pkm_runtime.codegen.c_code import GpuCode, cupy_with_gpu
from pkm_runtime.codegen.machine_code import LANES, VectorCode, empty_columns
from pkm_runtime.describable import listed
from pkm_runtime.errors import UsageError
from pkm_runtime.kernels.binding import empty_shareable, shareable

ROWS = 2048  # at once, so that they stay in a core's cache
GPU_ROWS = 1 << 18  # at once on a GPU, 100 to 1000 bytes each
NEAR = 1e-3  # a last correction below it, dimensionless: the next ones stay on the branch
DRAWS = 30  # rounds for what did not close
CONTRADICT = 1e-6  # m: more than a file's rounding
SAMPLES = 4  # for each coefficient of a fit


@dataclass(frozen=True, eq=False)
class ConsistentStates:
    """Arrays (n, names) of positions [m, rad], velocities and accelerations of all joints.

    NumPy's, of a GPU CuPy's: `torch.from_dlpack(states.position)` and `jax.dlpack.from_dlpack` share their memory.
    """

    names: tuple[str, ...]
    position: Any
    velocity: Any
    acceleration: Any


class LinkageStates:
    """One linkage at many positions of its inputs, started from a fitted parabola; with CuPy, on a GPU."""

    def __init__(self, linkage: Linkage, cupy: Any = None) -> None:
        self.linkage, self.system, self._cupy = linkage, linkage.system, cupy
        self._library = np if cupy is None else cupy
        self._empty: Callable[..., Any] = empty_columns if cupy is None else lambda *shape: cupy.empty(shape)
        n, dependent = len(linkage.inputs), self.system.dependent
        self._slides = [k for k, name in enumerate(dependent) if self.system.slides(name)]
        self._turns = [k for k, name in enumerate(dependent) if not self.system.slides(name)]
        self._n_terms = (n + 1) * (n + 2) // 2  # of a parabola
        self._home = self._library.asarray(linkage.home[n:, None])
        self._fitted: tuple[Any, Any] = None, None  # the last ends of inputs, and what `fit` found

    def fit(self, ends: Array) -> tuple[Any, Any, Any]:
        """Where `solve` starts for inputs within ends (n, 2): their middles, halves of their widths, coefficients.

        Raises `UsageError` where loops that agree at home contradict each other there.
        """
        if self._cupy is not None:
            middle, half, coefficients = map(self._cupy.asarray, self._beside.fit(ends))
            return middle, half, coefficients
        within, fitted = self._fitted
        if within == ends.tolist():
            return fitted
        low, high = ends.T[..., None]
        middle, half = 0.5 * (low + high), np.where(high > low, 0.5 * (high - low), 1.0)
        q = np.random.default_rng(0).uniform(low, high, (len(ends), SAMPLES * self._n_terms))
        solved = self.linkage.at(q.T)
        closed = solved.status == Status.CONVERGED
        if (gap := solved.gap.max(where=closed, initial=0.0)) > CONTRADICT:
            problem = f"loops of {', '.join(self.linkage.inputs)} contradict each other: they stay open by {gap:.2g} m"
            raise UsageError("ranges", problem, "give others, or leave out a loop or coupling")
        terms, ways = self._terms((q[:, closed] - middle) / half), self.halves(solved.q[closed, len(ends) :].T)
        fitted = middle, half, np.linalg.lstsq(terms.T, ways.T, rcond=None)[0].T
        self._fitted = ends.tolist(), fitted
        return fitted

    def _terms(self, u: Any) -> Any:
        n, at = len(u), 1 + len(u)
        terms = self._library.empty((self._n_terms, u.shape[1]))
        terms[0], terms[1:at] = 1.0, u
        for k in range(n):
            terms[at : at + n - k] = u[k] * u[k:]
            at += n - k
        return terms

    @cached_property
    def _code(self) -> VectorCode:
        return VectorCode(record_motion(self.system))

    @cached_property
    def _gpu_code(self) -> GpuCode:
        return GpuCode(record_motion(self.system), self._cupy)

    @cached_property
    def _beside(self) -> LinkageStates:
        return LinkageStates(self.linkage)  # on processors, for what a GPU cannot lead from home

    def solve(self, fit: tuple[Any, Any, Any], q: Any, v: Any, a: Any) -> tuple[Any, Any]:
        """Positions, speeds, accelerations (3, dependent, rows) for those of the inputs; which rows are good."""
        middle, half, coefficients = fit
        return self.solve_from(coefficients @ self._terms((q - middle) / half), q, v, a, to_folds=False)

    def halves(self, joints: Any) -> Any:
        """What `solve_from` starts at, from positions of the dependent joints (dependent, rows)."""
        way = 0.5 * (joints - self._home)
        way[self._turns] = self._library.tan(way[self._turns])
        way[self._slides] *= 2.0 / self.system.length
        return way

    def solve_from(self, way: Any, q: Any, v: Any, a: Any, *, to_folds: bool = True) -> tuple[Any, Any]:
        """`solve` from `halves` (dependent, rows); `to_folds` as in `Linkage.at`."""
        found, last, good = self._from(way, q, v, a)
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
        n, d, rows = len(q), len(self.system.dependent), q.shape[1]
        columns = self._empty(3 * n + d, rows)
        columns[:n], columns[n : 2 * n], columns[2 * n : 3 * n], columns[3 * n :] = q, v, a, way
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
) -> ConsistentStates:
    """`n` states, uniform over `ranges` [rad or m] of independent joints and of joints on no loop.

    Those of a cluster that have a range must determine it; else its `independent` joints are drawn, within their
    limits. Joints of no loop without range and limits stay at home. Speeds and accelerations of what is drawn are
    uniform up to `speed` and `acceleration` [rad/s or m/s, and per s]. What does not close is drawn again, as
    is some of what lies by a fold. With `gpu` they are made and stay on a GPU, others for the same seed.

    Raises `UsageError` where most random states do not close, loops contradict each other, or there is no GPU or CuPy.
    """
    names, given, library = tuple(tree.joint_named), dict(ranges or {}), _library(gpu)
    _check(tree, n, given, {"speed": speed, "acceleration": acceleration})
    column = {name: k for k, name in enumerate(names)}
    linkages = _drawn_linkages(tree, given, gpu)
    tied = {name for one in tree.clusters for name in one.joints}
    drawn = [*(k for part in linkages for k in part.linkage.inputs), *(name for name in names if name not in tied)]
    bounds = np.array([_range(tree, name, name in tied, given) for name in drawn]).reshape(-1, 2)
    (low, high), parts, first = bounds.T, [], 0
    for one in linkages:
        inputs = slice(first, first := first + len(one.linkage.inputs))
        parts.append((one, one.fit(bounds[inputs]) if n else None, inputs, [column[k] for k in one.system.dependent]))
    home = library.asarray([[tree.home.get(name, 0.0)] for name in names])
    still = sorted({*range(len(names))} - {column[name] for name in drawn}.union(*(others for *_, others in parts)))
    most = np.where(high > low, [[speed], [acceleration]], 0.0)  # what has one place only stays there
    lowest, width = (library.asarray(np.stack(rows)[..., None]) for rows in ((low, *-most), (high - low, *(2 * most))))
    result = _unfilled(library, n, len(names))

    def part(at: slice) -> None:
        rng = library.random.default_rng(seed) if gpu else np.random.Generator(np.random.SFC64([seed, at.start]))
        done, rows = at.start, min(GPU_ROWS if gpu else ROWS, -(-(at.stop - at.start) // LANES) * LANES)
        whole = library.empty((3, len(names), rows)) if gpu else empty_columns(3, len(names), rows)
        whole[0, still], whole[1:, still] = home[still], 0.0
        for _ in range(DRAWS * (1 + (at.stop - at.start) // rows)):
            if done == at.stop:
                return
            moves = rng.random((3, len(bounds), rows))
            moves *= width
            moves += lowest
            whole[:, [column[name] for name in drawn]] = moves
            good = library.ones(rows, dtype=bool)
            for one, fit, inputs, others in parts:
                whole[:, others], closes = one.solve(fit, *moves[:, inputs])
                good &= closes
            kept = slice(at.stop - done) if good.all() else library.flatnonzero(good)[: at.stop - done]
            for all_rows, some in zip(result, whole[:, :, kept], strict=True):
                all_rows[done : done + some.shape[1]] = some.T
            done += some.shape[1]
        raise UsageError("ranges", "most random states do not close", "give narrower ranges")

    part(slice(0, n)) if gpu else over_cores(part, n)
    return ConsistentStates(names, *result)


def _unfilled(library: Any, n: int, columns: int) -> list[Any]:
    # Three of one array: the system takes the room of smaller ones back at once, and gives it page by page.
    each = -(-n * columns // 8) * 8  # each begins at a line of the cache
    room = (empty_shareable if library is np else library.empty)((3, each))
    return [one[: n * columns].reshape(n, columns) for one in room]


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
    return ConsistentStates(names, *(given if gpu else map(shareable, given)))


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


def _range(tree: TreeModel, name: str, tied: bool, ranges: dict[str, tuple[float, float]]) -> tuple[float, float]:
    joint, home = tree.joint_named.get(name), tree.home.get(name, 0.0)
    if name in ranges:
        return ranges[name]
    if joint is not None and np.isfinite(joint.limits.upper - joint.limits.lower):
        return joint.limits.lower, joint.limits.upper
    if tied:
        raise UsageError(f"joint {name}", "it has no limits", f"give a range: ranges={{{name!r}: (-0.2, 0.2)}}")
    return home, home
