# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics: the assembly mode that continues a motion, and all of them.

What continues a pose `near` is the end of a path: from the configuration in which the limbs reach `near`, in the
working mode nearest to the asked joint positions q or to a seed, the actuators move straight to q. Where the path meets
a singularity of type 2 nothing continues it, and the status says so; see `kernels/follow.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.assembly_search import SearchedPoses, passive_positions, search_graph
from pkm_kinematics.batch import over_cores
from pkm_kinematics.engine import CLOSES, Engine
from pkm_kinematics.kernels.continuing import choose_nearest
from pkm_kinematics.kernels.follow import follow_poses
from pkm_kinematics.kernels.solve import UNIT
from pkm_kinematics.status import Status
from pkm_kinematics.whole import Followed, WholeGraph
from pkm_kinematics.working_modes import LimbColumns, WorkingModes

CLEARLY = 0.3  # a mode is nearer than home's only where its actuated joints are by so much nearer to those asked for
ARRIVED = 1e-9  # of the robot's size: how exactly redundant actuators agree
ROWS = 20_000  # carried on at once
BLOCKED = 10.0  # rad or m: what a mode that cannot be continued to the start counts as farther away


@dataclass(frozen=True, eq=False)
class Found:
    """Poses of n sets of joint positions; NaN where the status says that there is no pose."""

    pose: Array  # (n, 7)
    joints: Array  # (n, n_joints)
    status: NDArray[np.int64]  # (n,)
    residual: Array  # (n,) largest error of an actuated joint, rad or m
    iterations: NDArray[np.int64]  # (n,)


class Forward:
    """Forward kinematics of one robot near a pose: along the path on the pose alone, else on the whole graph.

    The first is fast, but its path ends where a limb is stretched or folded (type 1); the second passes through there,
    and serves motion spaces that turn with the pose.
    """

    def __init__(self, engine: Engine, modes: WorkingModes) -> None:
        self.engine = engine
        self._modes = modes

    @cached_property
    def _whole(self) -> WholeGraph:
        e = self.engine
        return WholeGraph(e.mechanism, e.task, e.home_by_name, e.home)

    def near(self, q: Array, starts: Array, seed: Array | None = None) -> Found:
        """The poses with actuated joints at q (n, n_actuated) that continue `starts` (1 or n, 7).

        `seed` (1 or n, n_joints) are joint positions near those at the starts, for limbs solved by iteration.
        """
        e, t = self.engine, self.engine.tables
        n = len(q)
        found = Found(
            np.full((n, 7), np.nan),
            np.full((n, len(e.joint_names)), np.nan),
            np.full(n, int(Status.INVALID_INPUT)),
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
        )
        if e.constant_space:
            seeds = self._at_starts(q, starts, seed)
            bodies = np.ascontiguousarray(seeds[:, np.maximum(e.body_column, 0)])
            limbs = np.zeros((n, len(t.bodies)))

            def part(at: slice) -> None:
                follow_poses(
                    t.bodies, t.closures, t.blocks, *t.workspace(), e.task.subspace, e.characteristic_length,
                    bodies[at], q[at], starts[at] if len(starts) > 1 else starts,
                    found.pose[at], limbs[at], found.status[at], found.residual[at], found.iterations[at],
                )  # fmt: skip

            over_cores(part, n)
            seeds[:, e.body_column[2:]] = limbs[:, 2:]
            done = found.status == Status.CONVERGED
            found.joints[done] = e.solve(found.pose[done], seeds[done]).q
            found.pose[~done] = np.nan
            rest = np.flatnonzero(~done & (found.status != Status.INVALID_INPUT))
        else:
            usable = np.isfinite(q).all(axis=1) & np.broadcast_to(usable_poses(starts), n)
            rest = self._by_whole_rows(q, starts, seed, np.flatnonzero(usable), found)
        for k in rest:
            start = starts[k if len(starts) > 1 else 0]
            mine = None if seed is None else seed[int(k) if len(seed) > 1 else 0][None]
            at = self._at_starts(q[k : k + 1], start[None], mine)
            self._by_whole(q[k], start, at[0], found, int(k))
        return found

    def _at_starts(self, q: Array, starts: Array, seed: Array | None) -> Array:
        """Joint positions (n, n_joints) near those of the limbs at the starts: `seed`, or the mode nearest to q.

        Limbs in closed form take the branch nearest to q when they are solved. Those whose passive joints have branches
        of their own take the one in which the actuated joints are nearest to q, and so do limbs solved by iteration,
        among the modes continued from home.
        """
        e, n = self.engine, len(q)
        if seed is not None:
            return np.array(np.broadcast_to(seed, (n, seed.shape[1])))
        seeds = np.tile(e.home_joints, (n, 1))
        seeds[:, e.actuated_column] = q
        branches = self._modes.hidden_branches
        if branches:
            solved = [e.solve(starts, e.home_joints[None], branch) for branch in branches]
            choose_nearest(
                np.stack([s.q for s in solved], 1), np.stack([np.isin(s.status, CLOSES) for s in solved], 1),
                *self._hidden, e.actuated_turning, CLEARLY, BLOCKED, q, seeds,
            )  # fmt: skip
        if not e.iterated:
            return seeds
        several = self._modes.starts
        at_once = max(1, ROWS // len(several))
        limbs = self._searched
        for first in range(0, len(starts), at_once):
            poses = starts[first : first + at_once]
            from_home = np.tile(several, (len(poses), 1))
            reached, arrived = e.continued(np.repeat(poses, len(several), axis=0), from_home)
            mine = slice(first, first + at_once) if len(starts) > 1 else slice(0, n)
            shape = (len(poses), len(several))
            choose_nearest(
                reached.reshape(*shape, -1), arrived.reshape(shape), *limbs, e.actuated_turning, CLEARLY, BLOCKED,
                q[mine], seeds[mine],
            )  # fmt: skip
        return seeds

    @cached_property
    def _searched(self) -> tuple[NDArray[np.int64], ...]:
        return one_after_the_other(self._modes.searched)

    @cached_property
    def _hidden(self) -> tuple[NDArray[np.int64], ...]:
        return one_after_the_other(self._modes.hidden)

    def nearest(self, pose: Array, seed: Array) -> Found:
        """The configuration nearest to a pose (7,) that need not be reachable exactly, all joints free to move."""
        e = self.engine
        positions = dict(zip(e.joint_names, seed, strict=True))
        positions.update(e.branch_at(pose))
        at = self._whole.nearest(positions, e.characteristic_length)
        return Found(
            np.full((1, 7), np.nan) if at.pose is None else at.pose[None],
            np.full((1, len(e.joint_names)), np.nan) if at.pose is None else self._row(at)[None],
            np.array([int(at.status)]),
            np.array([at.residual]),
            np.array([at.iterations]),
        )

    def search(self, q: Array) -> SearchedPoses:
        """Assembly modes for actuated joints at q (n_actuated,), by search over the whole graph from home."""
        e = self.engine
        positions = dict(zip(e.joint_names, (float(x) for x in e.home_joints), strict=True))
        positions.update(e.branch_at(e.home))
        positions.update(zip(e.actuated_names, (float(x) for x in q), strict=True))
        return search_graph(self._whole, e.actuated_names, q, positions)

    def joints_at(self, q: Array, pose: Array) -> Array | None:
        """Joint positions (n_joints,) at a pose (7,) with the actuated joints at q; None if none is found."""
        e = self.engine
        seed = dict(zip(e.joint_names, (float(x) for x in e.home_joints), strict=True))
        held = e.branch_at(pose)
        found = passive_positions(self._whole, e.actuated_names, q, held, seed)
        return None if found is None else np.array([found[name] for name in e.joint_names])

    def _by_whole_rows(
        self, q: Array, starts: Array, seed: Array | None, rows: NDArray[np.int64], found: Found
    ) -> NDArray[np.int64]:
        """Rows of `found` by the path on the whole graph; returns those that need more than that."""
        e = self.engine
        if not len(rows):
            return rows
        near = starts[rows] if len(starts) > 1 else np.repeat(starts, len(rows), axis=0)
        mine = None if seed is None else seed[rows] if len(seed) > 1 else seed
        at = e.solve(near, self._at_starts(q[rows], near, mine))
        closed = np.isin(at.status, CLOSES)
        here = rows[closed]
        columns, names = self._whole_columns, self._whole.names
        positions = np.where(columns >= 0, at.q[closed][:, columns], self._whole.tables.bodies["home"])
        for name, values in e.stand_in(near[closed]).items():
            positions[:, names.index(name)] = values
        end = self._whole.follow_many(positions, e.actuated_names, q[here], e.characteristic_length)
        found.status[here], found.residual[here], found.iterations[here] = end.status, end.residual, end.iterations
        done = end.status == Status.CONVERGED
        found.pose[here[done]] = end.poses[done]
        found.joints[here[done]] = end.positions[done][:, [names.index(name) for name in e.joint_names]]
        again = ~done if q.shape[1] > e.mobility else np.zeros(len(here), dtype=bool)
        return np.concatenate([rows[~closed], here[again]])

    @cached_property
    def _whole_columns(self) -> NDArray[np.int64]:
        """For each body of the whole graph the column of its joint, -1 where it has none."""
        column = {name: k for k, name in enumerate(self.engine.joint_names)}
        return np.array([column.get(name, -1) for name in self._whole.names])

    def _by_whole(self, q: Array, near: Array, seed: Array, found: Found, k: int) -> None:
        """Row k of `found` by the path on the whole graph; `seed` (n_joints,) are joints near those at `near`."""
        e = self.engine
        size = e.characteristic_length
        at = e.solve(near[None], seed[None])
        if at.status[0] in CLOSES:
            start = dict(zip(e.joint_names, at.q[0], strict=True))
            start.update(e.branch_at(near))
        else:
            beside = self._beside(near, seed, size)
            if beside.pose is None:
                found.status[k], found.residual[k] = Status.UNREACHABLE, beside.residual
                return
            start = beside.positions
        end = self._whole.follow(start, e.actuated_names, q, size)
        if end.pose is None and len(q) > e.mobility:
            end = self._by_some(q, start, size) or end
        found.status[k], found.residual[k], found.iterations[k] = end.status, end.residual, end.iterations
        if end.pose is not None:
            found.pose[k], found.joints[k] = end.pose, self._row(end)

    def _beside(self, pose: Array, seed: Array, size: float) -> Followed:
        """The configuration next to a pose (7,) that the limbs miss, to stand for it.

        Looked for with the limbs stretched out towards the pose, or else as they are in `seed`.
        """
        e = self.engine
        stretched = np.array(seed)
        stretched[e.body_column[2:]] = e.placed(pose, seed).state["q"][2:]
        for joints in (stretched, seed):
            start = dict(zip(e.joint_names, joints, strict=True))
            start.update(e.branch_at(pose))
            beside = self._whole.nearest(start, size)
            if beside.pose is not None:
                break
        return beside

    def _by_some(self, q: Array, start: dict[str, float], size: float) -> Followed | None:
        """The path on which some of redundant actuators go straight to q, and the others, carried along, get there too.

        All of them cannot go straight: between two configurations their positions contradict each other.
        """
        e = self.engine
        for some in combinations(range(len(q)), e.mobility):
            end = self._whole.follow(start, [e.actuated_names[a] for a in some], q[list(some)], size)
            if end.pose is None:
                continue
            joints = self._row(end)
            joints[e.actuated_column] = q  # where a limb was stretched out, it can have come back on either side
            joints = e.solve(end.pose[None], joints[None]).q[0]
            difference = joints[e.actuated_column] - q
            difference = np.where(e.actuated_turning, np.angle(np.exp(1j * difference)), difference)
            if np.abs(difference).max() < ARRIVED * size:
                return replace(end, positions={**end.positions, **dict(zip(e.joint_names, joints, strict=True))})
        return None

    def _row(self, at: Followed) -> Array:
        return np.array([at.positions[name] for name in self.engine.joint_names])


def one_after_the_other(limbs: Sequence[LimbColumns]) -> tuple[NDArray[np.int64], ...]:
    """Of limbs one after the other: columns of joints, actuators, columns of these, and the ends of each limb."""
    parts = [np.concatenate([limb[k] for limb in limbs]) for k in range(3)]
    ends = [np.cumsum([len(limb[k]) for limb in limbs]) for k in range(2)]
    return (*parts, *ends)


def usable_poses(poses: Array) -> NDArray[np.bool_]:
    """Which poses (n, 7) are finite with unit quaternions, as `kernels.solve.check_pose` has it."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.isfinite(poses).all(axis=1) & (np.abs(np.linalg.norm(poses[:, 3:], axis=1) - 1.0) < UNIT)
