# SPDX-License-Identifier: Apache-2.0
"""States of a tree with loops at random, every loop closed in positions, velocities and accelerations.

For simulators that reset many worlds and cannot close a loop themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_description.tree_model import TreeModel
from pkm_kinematics.batch import ShapeError, as_rows, over_cores
from pkm_kinematics.kernels.path.fixed_steps import SOLVED
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.linkage.linkage import Linkage
from pkm_kinematics.linkage.recorded_linkage import record_motion
from pkm_runtime.codegen.machine_code import LANES, VectorCode
from pkm_runtime.describable import listed
from pkm_runtime.errors import UsageError
from pkm_runtime.kernels.binding import empty_shareable, shareable

ROWS = 1024  # at once, so that they stay in a core's cache
NEAR = 1e-3  # a last correction below it, dimensionless: the next ones stay on the branch
DRAWS = 30  # rounds for what did not close
CONTRADICT = 1e-6  # m: more than a file's rounding
STEP = 1e-4  # rad, and of the length: of the differences that second derivatives at home are


@dataclass(frozen=True, eq=False)
class ConsistentStates:
    """Arrays (n, names) of positions [m, rad], velocities and accelerations of all joints.

    They are NumPy's: `torch.from_dlpack(states.position)` and `jax.dlpack.from_dlpack` share their memory.
    """

    names: tuple[str, ...]
    position: Array
    velocity: Array
    acceleration: Array


class LinkageStates:
    """One linkage at many positions of its inputs, started from a parabola about home."""

    def __init__(self, linkage: Linkage) -> None:
        self.linkage, self.system = linkage, linkage.system
        n = len(linkage.inputs)
        home = linkage.home[None, :n]
        self._turns = np.array([not self.system.slides(name) for name in self.system.dependent])
        steps = STEP * np.diag([self.system.length if self.system.slides(name) else 1.0 for name in linkage.inputs])
        K = linkage.at(home).K[0, n:]
        H = [(linkage.at(home + h).K[0, n:] - linkage.at(home - h).K[0, n:]) / (2.0 * h.sum()) for h in steps]
        self._pairs = np.triu_indices(n)
        i, j = self._pairs
        curved = np.stack(H, axis=2)
        curved = 0.25 * (curved + np.swapaxes(curved, 1, 2))
        self._parabola = np.concatenate([K, np.where(i == j, 1.0, 2.0) * curved[:, i, j]], axis=1)

    @cached_property
    def _code(self) -> VectorCode:
        return VectorCode(record_motion(self.system))

    def solve(self, q: Array, v: Array, a: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Positions, speeds, accelerations (3, dependent, rows) for those of the inputs; which rows are good."""
        n = len(q)
        away = q - self.linkage.home[:n, None]
        i, j = self._pairs
        way = 0.5 * (self._parabola @ np.concatenate([away, away[i] * away[j]]))
        way[self._turns] *= 1.0 + way[self._turns] ** 2 / 3.0  # the tangent, but for its fifth power
        return self.solve_from(way, q, v, a)

    def halves(self, joints: Array) -> Array:
        """What `solve_from` starts at, from positions of the dependent joints (dependent, rows)."""
        way = 0.5 * (joints - self.linkage.home[len(self.linkage.inputs) :, None])
        way[self._turns] = np.tan(way[self._turns])
        return way

    def solve_from(self, way: Array, q: Array, v: Array, a: Array) -> tuple[Array, NDArray[np.bool_]]:
        """`solve` from tangents of half of the ways from home, or half of these (dependent, rows)."""
        found, last, good = self._from(way, q, v, a)
        for led in (False, True):  # what is near goes on; the rest is led from home, which takes far longer
            bad = np.flatnonzero(~good if led else ~good & (last < NEAR))
            if not len(bad):
                continue
            rows = np.resize(bad, -(-len(bad) // LANES) * LANES)
            joints = self.linkage.at(q[:, rows].T).q[:, len(q) :].T if led else found[0, :, rows].T
            found[:, :, rows], last[rows], good[rows] = self._from(
                self.halves(joints), q[:, rows], v[:, rows], a[:, rows]
            )
        return found, good

    def _from(self, way: Array, q: Array, v: Array, a: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        n, d, rows = len(q), len(self.system.dependent), q.shape[1]
        columns = np.empty((5 * n + d, rows))
        inputs, speeds, more, cosines, sines, starts = np.split(columns, n * np.arange(1, 6))
        inputs[:], speeds[:], more[:], starts[:] = q, v, a, way
        starts[~self._turns] *= 2.0 / self.system.length
        np.cos(q, out=cosines)
        np.sin(q, out=sines)
        out = np.empty((3 * d + 3, rows))
        code = self._code
        code(np.ascontiguousarray(columns[list(code.inputs)]), out)
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
) -> ConsistentStates:
    """`n` states, uniform over `ranges` [rad or m] of independent joints and of joints on no loop.

    Those of a cluster that have a range must determine it; else its `independent` joints are drawn, within their
    limits. Joints of no loop without range and limits stay at home. Speeds and accelerations of what is drawn are
    uniform up to `speed` and `acceleration` [rad/s or m/s, and per s]. What does not close is drawn again.

    Raises `UsageError` where most random states do not close, or loops contradict each other.
    """
    names, given = tuple(tree.joint_named), dict(ranges or {})
    _check(tree, n, given, {"speed": speed, "acceleration": acceleration})
    column = {name: k for k, name in enumerate(names)}
    linkages = []
    for one in tree.clusters:
        asked = tuple(name for name in given if name in one.joints)
        linkages.append(_states(tree, asked or one.independent, one.actuators))
    tied = {name for one in tree.clusters for name in one.joints}
    drawn = [*(k for part in linkages for k in part.linkage.inputs), *(name for name in names if name not in tied)]
    ends = np.array([_range(tree, name, name in tied, given) for name in drawn])
    home = np.array([tree.home.get(name, 0.0) for name in names])
    result = [empty_shareable((n, len(names))) for _ in range(3)]

    def part(at: slice) -> None:
        rng = np.random.Generator(np.random.SFC64([seed, at.start]))
        done = at.start
        for _ in range(DRAWS * (1 + (at.stop - at.start) // ROWS)):
            if done == at.stop:
                return
            moves = rng.random((3, len(drawn), ROWS))
            moves[0] = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * moves[0]
            moves[1:] = (2.0 * moves[1:] - 1.0) * np.array([speed, acceleration])[:, None, None]
            moves[1:, ends[:, 0] == ends[:, 1]] = 0.0
            whole, good, first = np.zeros((3, len(names), ROWS)), np.ones(ROWS, dtype=bool), 0
            whole[0] = home[:, None]
            whole[:, [column[name] for name in drawn]] = moves
            for one in linkages:
                last = first + len(one.linkage.inputs)
                found, closes = one.solve(*moves[:, first:last])
                whole[:, [column[name] for name in one.system.dependent]] = found
                good &= closes
                first = last
            kept = slice(at.stop - done) if good.all() else np.flatnonzero(good)[: at.stop - done]
            for all_rows, some in zip(result, whole[:, :, kept], strict=True):
                all_rows[done : done + some.shape[1]] = some.T
            done += some.shape[1]
        raise UsageError("ranges", "most random states do not close", "give narrower ranges")

    over_cores(part, n)
    for linkage in (some.linkage for some in linkages if n):
        _refuse_contradictions(linkage, result[0][:LANES, [column[name] for name in linkage.inputs]])
    return ConsistentStates(names, *result)


def _refuse_contradictions(linkage: Linkage, inputs: Array) -> None:
    """What repeats at home may contradict elsewhere."""
    if (gap := linkage.at(inputs).gap.max()) > CONTRADICT:
        problem = f"loops of {', '.join(linkage.inputs)} contradict each other: they stay open by {gap:.2g} m"
        raise UsageError("ranges", problem, "give others, or leave out a loop or coupling")


def closed_states(tree: TreeModel, position: Array, velocity: Array, acceleration: Array) -> ConsistentStates:
    """States (n, joints), in the order of `tree.joint_named`, what depends on others corrected; else NaN."""
    names = tuple(tree.joint_named)
    called = {"position": position, "velocity": velocity, "acceleration": acceleration}
    rows = [as_rows(values, len(names), what)[0] for what, values in called.items()]
    if len({len(one) for one in rows}) > 1:
        raise ShapeError(f"positions, velocities and accelerations: {', '.join(str(len(one)) for one in rows)} rows")
    given = np.array(rows)
    n = given.shape[1]
    padded = np.resize(np.arange(n), -(-n // LANES) * LANES)
    for one in tree.clusters:
        part = _states(tree, one.independent, one.actuators)
        inputs, others = ([names.index(name) for name in some] for some in (part.linkage.inputs, part.system.dependent))
        columns = np.swapaxes(given[:, padded], 1, 2)
        found, good = part.solve_from(part.halves(columns[0, others]), *columns[:, inputs])
        found[:, :, ~good] = np.nan
        given[:, :, others] = np.swapaxes(found, 1, 2)[:, :n]
        given[0][:, [names.index(name) for name in part.linkage.idle]] = [
            part.system.home[k] for k in part.linkage.idle
        ]
        given[1:, :, [names.index(name) for name in part.linkage.idle]] = 0.0
    return ConsistentStates(names, *map(shareable, given))


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


@lru_cache(maxsize=16)
def _states(tree: TreeModel, inputs: tuple[str, ...], seen: tuple[str, ...]) -> LinkageStates:
    """Kept: its code takes seconds to compile."""
    return LinkageStates(Linkage(tree, inputs, seen))


def _range(tree: TreeModel, name: str, tied: bool, ranges: dict[str, tuple[float, float]]) -> tuple[float, float]:
    joint, home = tree.joint_named.get(name), tree.home.get(name, 0.0)
    if name in ranges:
        return ranges[name]
    if joint is not None and np.isfinite(joint.limits.upper - joint.limits.lower):
        return joint.limits.lower, joint.limits.upper
    if tied:
        raise UsageError(f"joint {name}", "it has no limits", f"give a range: ranges={{{name!r}: (-0.2, 0.2)}}")
    return home, home
