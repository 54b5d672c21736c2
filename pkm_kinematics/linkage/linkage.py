# SPDX-License-Identifier: Apache-2.0
"""A linkage solved for some of its joints: positions, rates and their rates, on the branch of home."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_description.tree_model import TreeModel, widest
from pkm_kinematics.batch import over_cores
from pkm_kinematics.kernels.path.fixed_steps import CORRECTIONS, LOST, SOLVED, to_outputs
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.linkage.loop_system import LoopSystem
from pkm_kinematics.linkage.recorded_linkage import record_inertia, record_lean, record_rates, record_solve, state_at
from pkm_kinematics.status import Status
from pkm_runtime.codegen.machine_code import LANES, MachineCode, VectorCode
from pkm_runtime.kernels.binding import bind

STRIDE = 0.15  # rad, and of the length: of one step along the way from where a linkage is known
FARTHEST = 32.0 * np.pi  # rad, and of the length: ways beyond would take seconds
FINEST = 2.0**-10  # of a piece of the way: the shortest step where the way is lost, as near a fold
FINER = 8  # times as many pieces where that is enough
ROUNDS = 16  # for each piece of such a way, and as many for its end


@dataclass(frozen=True, eq=False)
class Solved:
    """A linkage at n states: positions `q` [m, rad] of all joints (n, names), and what follows.

    `K` (n, names, inputs) has rates per rate of each input, `changes` their rates, None where no speeds were given.
    `margin` (n,): 1 at best, through zero where it folds; `gap` (n,) [m]: what stays open.
    """

    q: Array
    K: Array
    changes: Array | None
    margin: Array
    gap: Array
    status: NDArray[np.int64]


class Linkage:
    """Clusters of loops as functions of the `inputs`; `names` are these and what depends on them, not `idle` ones."""

    def __init__(self, tree: TreeModel, inputs: Sequence[str], seen: Collection[str] = ()) -> None:
        self.system = LoopSystem(tree, inputs, seen)
        self.inputs, self.idle = self.system.inputs, self.system.idle
        self.names = (*self.system.inputs, *self.system.dependent)
        self.home = np.array([self.system.home[name] for name in self.names])
        self._start = state_at(self.system, self.system.home)
        self._units = np.array([self.system.unit(n) for n in self.inputs])

    @cached_property
    def folded(self) -> bool:
        """Whether it is singular at home, from where it can go on in several ways: answers are not to be had then."""
        return bool(self.at(self.home[None, : len(self.inputs)]).status[0] != Status.CONVERGED)

    def widest(self, solved: Solved) -> tuple[str, float]:
        """The element of the loop that is open the most in any of these states, and by how much [m or rad]."""
        if np.isnan(solved.gap).all():  # none is solved
            return "", np.nan
        worst = solved.q[int(np.nanargmax(solved.gap))]
        at = self.system.home | dict(zip(self.names, map(float, worst), strict=True))
        return widest(self.system.model, np.array([at[name] for name in self.system.names]))

    @cached_property
    def _solve(self) -> VectorCode:
        return VectorCode(record_solve(self.system))

    @cached_property
    def _rates(self) -> VectorCode:
        return VectorCode(record_rates(self.system, changing=False))

    @cached_property
    def _both(self) -> VectorCode:
        return VectorCode(record_rates(self.system, changing=True))

    def at(self, q: Array, speeds: Array | None = None, *, near: Array | None = None, to_folds: bool = True) -> Solved:
        """Solve for positions (n, inputs) and, for `changes`, speeds (n, inputs) of the inputs.

        Each row is led to from home, or from the joints `near` (names,), straight in the inputs, over no fold; unless
        `to_folds` in no step below `STRIDE` / `FINER`. Inputs farther than `FARTHEST` are refused (INVALID_INPUT).
        """
        m, n = len(self.inputs), len(q)
        if not self.system.dependent:  # joints without a linkage
            still = None if speeds is None else np.zeros((n, m, m))
            ones = np.tile(np.eye(m), (n, 1, 1))
            return Solved(np.array(q), ones, still, np.ones(n), np.zeros(n), np.zeros(n, dtype=np.int64))
        base = self.home if near is None else np.asarray(near, dtype=np.float64)
        if np.isfinite(base).all():
            usable: NDArray[np.bool_] = np.asarray((np.abs(q - base[:m]) <= FARTHEST * self._units).all(axis=1))
        else:
            base, usable = self.home, np.zeros(n, dtype=bool)
        named = self.system.home | dict(zip(self.names, map(float, base), strict=True))
        columns = np.empty((m + len(self._start), -(-n // LANES) * LANES))
        status = np.zeros(columns.shape[1], dtype=np.int64)

        def part(at: slice) -> None:
            here = slice(at.start * LANES, at.stop * LANES)
            goal = np.empty((m, here.stop - here.start))
            goal[:] = base[:m, None]
            goal[:, : min(here.stop, n) - here.start] = np.where(usable[here, None], q[here], base[:m]).T
            columns[m:, here], status[here] = self._led(base[:m], state_at(self.system, named), goal, to_folds)
            columns[:m, here] = goal

        over_cores(part, columns.shape[1] // LANES)
        return self._answer(columns, n, np.where(usable, status[:n], int(Status.INVALID_INPUT)), speeds)

    def inertia_code(self, bodies: Mapping[str, Inertial]) -> VectorCode:
        """Code of `inertia` for some bodies by link; to compile it takes longer than to run it."""
        return VectorCode(record_inertia(self.system, bodies))

    def inertia(self, q: Array, code: VectorCode) -> Array:
        """Inertia (n, inputs, inputs) felt at the inputs, of the bodies of `code`, at solved positions (n, names)."""
        m, n = len(self.inputs), len(q)
        upper = np.empty((m * (m + 1) // 2 + 1, -(-n // LANES) * LANES))
        padded = np.resize(q, (upper.shape[1], q.shape[1])).T
        dependent = self.system.dependent
        turning = np.array([not self.system.straight(name) for name in dependent])[:, None]
        units = np.array([self.system.unit(name) for name in dependent])[:, None]
        states = np.empty((2 * len(turning), upper.shape[1]))
        states[::2] = np.where(turning, np.cos(padded[m:]), padded[m:] / units)
        states[1::2] = np.where(turning, np.sin(padded[m:]), 0.0)
        columns = np.concatenate([padded[:m], states])
        code(np.ascontiguousarray(columns[list(code.inputs)]), upper)
        M = np.empty((n, m, m))
        for k, (i, j) in enumerate(combinations_with_replacement(range(m), 2)):
            M[:, i, j] = M[:, j, i] = upper[k, :n]
        return M

    def _led(self, start: Array, state: Array, goal: Array, to_folds: bool) -> tuple[Array, NDArray[np.int64]]:
        """States (2 dependent, n) at `goal` (inputs, n) from one `state` at `start` (inputs,), and statuses."""
        n = goal.shape[1]
        span = goal - start[:, None]
        farthest = np.abs(span / self._units[:, None]).max(axis=0, initial=0.0)
        pieces = np.maximum(1, np.ceil(farthest / STRIDE)).astype(np.int64)
        states = np.empty((len(state), n))
        status = np.full(n, int(Status.UNREACHABLE))
        open_ = np.argsort(-pieces, kind="stable")  # those that go farthest first: others are left out on the way
        for follow, finer in ((self._walk, 1), (self._creep, 1) if to_folds else (self._walk, FINER)):
            padded = np.resize(open_, -(-len(open_) // LANES) * LANES)
            found, lost = follow(start, state, span[:, padded], finer * pieces[padded])
            solved = ~lost[: len(open_)]
            states[:, open_] = found[:, : len(open_)]
            status[open_[solved]] = int(Status.CONVERGED)
            open_ = open_[~solved]
            if not len(open_):
                break
        return states, status

    def _creep(
        self, start: Array, state: Array, span: Array, pieces: NDArray[np.int64]
    ) -> tuple[Array, NDArray[np.bool_]]:
        # as `_walk`, by steps that are halved where one is lost, and doubled up to a piece where one is not
        m, n = len(self.inputs), span.shape[1]
        states, done, step = np.repeat(state[:, None], n, axis=1), np.zeros(n), 1.0 / pieces
        for _ in range(ROUNDS * (int(pieces.max()) + 1)):
            under_way = np.flatnonzero((done < 1.0) & (step * pieces >= FINEST))
            if not len(under_way):
                break
            aim = np.minimum(1.0, done[under_way] + step[under_way])
            columns = np.concatenate([start[:, None] + aim * span[:, under_way], states[:, under_way]])
            arrived, left = np.zeros(len(under_way), dtype=bool), np.arange(len(under_way))
            for _ in range(CORRECTIONS):
                some = np.resize(left, -(-len(left) // LANES) * LANES)
                out = np.empty((len(state) + 2, len(some)))
                self._solve(np.ascontiguousarray(columns[list(self._solve.inputs)][:, some]), out)
                columns[m:, some], last = out[:-2], out[-2, : len(left)]
                arrived[left] = last < SOLVED
                left = left[(last < LOST) & ~(last < SOLVED)]
                if not len(left):
                    break
            step[under_way] = np.where(
                arrived, np.minimum(2.0 * step[under_way], 1.0 / pieces[under_way]), 0.5 * step[under_way]
            )
            there = under_way[arrived]
            done[there], states[:, there] = aim[arrived], columns[m:, arrived]
        return states, done < 1.0

    def _walk(
        self, start: Array, state: Array, span: Array, pieces: NDArray[np.int64]
    ) -> tuple[Array, NDArray[np.bool_]]:
        """States after so many equal pieces (n,) of each way, and where a step was too long or found no end."""
        m, n = len(self.inputs), span.shape[1]
        columns = np.empty((m + len(state), n))
        columns[m:] = state[:, None]
        done, lost = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        code = self._solve
        for piece in range(1, int(pieces.max()) + CORRECTIONS + 1):
            under_way = np.flatnonzero(~(done | lost))
            if not len(under_way):
                break
            width = -(-(under_way[-1] + 1) // LANES) * LANES
            columns[:m, :width] = start[:, None] + np.minimum(1.0, piece / pieces[:width]) * span[:, :width]
            out = np.empty((len(state) + 2, width))
            given = columns[list(code.inputs), :width] if len(code.inputs) < len(columns) else columns[:, :width]
            code(np.ascontiguousarray(given), out)
            last = out[-2]
            columns[m:, under_way] = out[:-2, under_way]
            lost[under_way] = ~(last[under_way] < LOST)
            done[under_way] = (piece >= pieces[under_way]) & (last[under_way] < SOLVED)
        return columns[m:], ~done | lost

    def _answer(self, columns: Array, n: int, status: NDArray[np.int64], speeds: Array | None) -> Solved:
        m, d = len(self.inputs), len(self.system.dependent)
        code = self._rates if speeds is None else self._both
        if speeds is not None:
            more = np.zeros((m, columns.shape[1]))
            more[:, :n] = speeds.T
            columns = np.concatenate([columns, more])
        out = np.empty((d + d * m * (1 if speeds is None else 2) + 4, columns.shape[1]))
        code(np.ascontiguousarray(columns[list(code.inputs)]), out)
        out = out[:, :n]
        margin = np.where(status == Status.CONVERGED, out[-2], np.nan)
        status = np.where((status == Status.CONVERGED) & ~(out[-4] < SOLVED), int(Status.DIVERGED), status)
        status = np.where((status == Status.CONVERGED) & ~is_regular.py_func(margin), int(Status.SINGULAR), status)
        out[:, status != Status.CONVERGED] = np.nan
        q = np.concatenate([columns[:m, :n], out[:d]]).T
        K = np.empty((n, m + d, m))
        K[:, :m] = np.eye(m)
        K[:, m:] = out[d : d + d * m].T.reshape(n, d, m)
        changes = None
        if speeds is not None:
            changes = np.zeros((n, m + d, m))
            changes[:, m:] = out[d + d * m : d + 2 * d * m].T.reshape(n, d, m)
        return Solved(q, K, changes, margin, out[-3] * self.system.length, status)


def lean_outputs(
    linkage: Linkage, outputs: Sequence[str], start: Array | None = None
) -> Callable[[Array, Array, Array, Array], tuple[int, float]]:
    """`call(q, effort, position, output_effort)`, see `to_outputs`; the first starts at home or `start` (names,)."""
    system = linkage.system
    recording, names = record_lean(system, outputs)
    code, n, m = MachineCode(recording), len(system.inputs), len(outputs)
    states, rates = (2 + n) * len(names), np.zeros(n * len(names))  # none are known yet
    at = linkage.home if start is None else start
    positions = system.home | dict(zip(linkage.names, map(float, at), strict=True))
    inputs = np.concatenate([at[:n], state_at(system, positions, names), rates, np.zeros(2 * n)])
    home = np.concatenate([linkage.home[:n], state_at(system, system.home, names), rates])
    begins = np.stack((inputs[: n + states], home))
    fixed = code.address, states, begins, np.empty(states), inputs, np.empty(states + 2 + 2 * m)
    call = bind(to_outputs, fixed, (inputs[:n].copy(), np.zeros(n), np.zeros(m), np.zeros(m)))
    vars(call)["code"] = code  # alive as long as the call
    return call
