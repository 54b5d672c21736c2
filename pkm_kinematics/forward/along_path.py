# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics: the assembly mode that continues a motion.

What continues a pose `near` is the end of a path: from the configuration in which the limbs reach `near` the actuators
move straight to q. That configuration is the seed's; without `near`, home; else the one of the working mode nearest to
q. Where the path meets a singularity of type 2 nothing continues it, and the status says so; see
`kernels/path/follow.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.batch import BATCH, copied, integer, nans, over_cores
from pkm_kinematics.configuration import Configuration
from pkm_kinematics.explain import explain_forward, explain_nearest
from pkm_kinematics.forward.graph_tracker import coordinates_of
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.kernels.model_and_data import SEEDED, SOLVED, Solved, near, writeable
from pkm_kinematics.kernels.path.carry_on import LimbGroups, choose_nearest
from pkm_kinematics.kernels.path.follow import PoseRows, follow_poses, follow_row
from pkm_kinematics.kernels.position.solve_poses import UNIT
from pkm_kinematics.solve.engine import Engine, far_away
from pkm_kinematics.solve.working_modes import LimbColumns, WorkingModes
from pkm_kinematics.status import REASON, Codes, ExplainedSolution, JointNames, Status, closes, fast_init
from pkm_runtime.describable import SHOWN, Describable, vector
from pkm_runtime.errors import shortened
from pkm_runtime.kernels.binding import WithScratch

CLEARLY = 0.3  # a mode is nearer than home's only where its actuated joints are by so much nearer to those asked for
ARRIVED = 1e-9  # of the robot's size: how exactly redundant actuators agree
ROWS = 20_000  # tracked at once
EXACT, ROUNDED = 1e-13, 1e-6  # rad or m: drives that are off by more than the first, but by rounding, are corrected
BLOCKED = 10.0  # rad or m: what a mode that cannot be continued to the start counts as farther away


class Forward:
    """Forward kinematics of one robot near a pose: along the path on the pose alone, else on the whole graph.

    The first is fast, but its path ends at type 1 singularities; the second passes, and needs no constant motion space.
    """

    def __init__(self, engine: Engine, modes: WorkingModes) -> None:
        self.engine = engine
        self._modes = modes

    def near_one(self, q: Array, start: Array | None) -> tuple[Array, Array, Any, Any, Any] | None:
        """As `near` for one q (n_actuated,) and start (7,), in a third of the time; None if `near` has to answer.

        Without a start it is home, in home's mode.
        """
        if not self._quick:
            return None
        home, home_joints = self._home
        pose, joints = np.empty(7), np.empty(home_joints.shape)
        code, residual, iterations = self._follow_row(
            self.engine.model, home_joints, start is not None, q, home if start is None else start, True, pose, joints
        )
        if code:
            return None
        return pose, joints, integer(code), np.float64(residual), integer(iterations)

    @cached_property
    def _quick(self) -> bool:
        """True where limbs take the side of q by themselves, and are closed where the path ends."""
        e = self.engine
        return e.constant_space and not (e.redundant_names or e.iterated or e.divided or self._modes.hidden_branches)

    def near(self, q: Array, starts: Array | None, seed: Array | None = None) -> PoseRows:
        """The poses at q (n, n_actuated) that continue `starts` (1 or n, 7), near joints `seed` (1 or n, n_joints).

        Without starts that is home, in home's mode.
        """
        e = self.engine
        n = len(q)
        from_home = starts is None and seed is None and not e.redundant_names  # drives say where these begin
        starts = e.home_row if starts is None else starts
        seed = self._home[1][None] if from_home else seed
        found = copied(self._one_nothing) if n == 1 else _nothing(n, len(e.joint_names))
        if seed is not None and not from_home:
            bad = np.asarray(~e.inputs.usable(seed, e.joint_turning).all(axis=1))
            q = np.where(bad[:, None], np.nan, q) if bad.any() else q
        if e.constant_space and not e.redundant_names:
            left = self._on_the_pose(q, starts, self._at_starts(q, starts, seed), found)
            beside = self._rows_off_closed_form_branches(starts, None if from_home else seed, found)
            if not left and not len(beside):
                return found
            done = closes(found.status)
            done[beside] = False
            found.pose[~done] = np.nan
            found.joints[~done] = np.nan
            rest = np.flatnonzero(~done & (found.status != Status.INVALID_INPUT))
        else:
            usable = e.inputs.usable(q, e.actuated_turning).all(axis=1) & np.broadcast_to(usable_poses(starts), n)
            rest = self._by_whole_rows(q, starts, seed, np.flatnonzero(usable), found)
        for k in rest:
            start = starts[k if len(starts) > 1 else 0]
            own_seed = None if seed is None else seed[int(k) if len(seed) > 1 else 0][None]
            at = self._at_starts(q[k : k + 1], start[None], own_seed)
            self._by_whole(q[k], start, at[0], found, int(k))
        self._judge_limits(found)
        return found

    def continued(self, q: Array, pose: Array, joints: Array) -> PoseRows:
        """As `near` for one q (n_actuated,) and start, where the path on the pose alone has ended."""
        e = self.engine
        if not e.constant_space or e.redundant_names or e.divided:
            return self.near(q[None], pose[None], joints[None])
        found = copied(self._one_nothing)
        if e.inputs.usable(q[None], e.actuated_turning).all():
            self._by_whole(q, pose, joints, found, 0, some=False)
            self._judge_limits(found)
        return found

    def _judge_limits(self, found: PoseRows) -> None:
        beyond = self.engine.ranges.beyond(found.joints).any(axis=1)
        found.status[(found.status == Status.CONVERGED) & beyond] = Status.JOINT_LIMIT

    def _rows_off_closed_form_branches(self, starts: Array, seed: Array | None, found: PoseRows) -> NDArray[np.int64]:
        """Rows that begin on a side that closed forms do not take, whose paths therefore start elsewhere."""
        if seed is None:
            return np.empty(0, dtype=np.int64)
        n = len(found.status)
        if n == 1 and found.status.item() != Status.INVALID_INPUT:
            return self.engine.positions.rows_off_closed_form_branches(starts, near(seed, 1, SEEDED))
        rows = np.flatnonzero(found.status != Status.INVALID_INPUT)
        here, seeds = (np.ascontiguousarray(np.broadcast_to(x, (n, x.shape[1]))[rows]) for x in (starts, seed))
        return rows[self.engine.positions.rows_off_closed_form_branches(here, near(seeds, len(here), SEEDED))]

    def _on_the_pose(self, q: Array, starts: Array, seeds: Array, found: PoseRows) -> int:
        """`found` by the paths on the pose alone from `seeds` (n, n_joints); returns how many are not CONVERGED."""
        e = self.engine
        divided, n = e.divided, len(q)  # the limbs of divided robots need more than one try to close
        if n < BATCH:
            left = self._follow_poses(e.model, seeds, False, q, starts, not divided, found)
        else:
            lefts: list[int] = []

            def part(at: slice) -> None:
                rows = PoseRows(*(array[at] for array in found))
                here = starts[at] if len(starts) > 1 else starts
                lefts.append(self._follow_poses(e.model, seeds[at], False, q[at], here, not divided, rows))

            over_cores(part, n)
            left = sum(lefts)
        if not divided:
            return int(left)
        done = np.flatnonzero(found.status == Status.CONVERGED)
        missed = q[done] - self._closed(done, found)[:, e.actuated_column]
        missing = np.abs(missed).max(axis=1, initial=0.0)
        off = (missing > EXACT) & (missing < ROUNDED)  # false for NaN
        if off.any():  # beside a singularity of a block alone, the whole limb says where the drives are
            done, missed = done[off], missed[off]
            at = Configuration(
                e, found.pose[done], (len(done),), near(found.joints[done], len(done)), None, "", True, None, None
            )
            steps = np.einsum("nij,nj->ni", at.forward_jacobian, missed)
            regular = np.isfinite(steps).all(axis=1)
            for k, step in zip(done[regular], steps[regular], strict=True):
                found.pose[k] = displace(found.pose[k], step)
            self._closed(done[regular], found)
        return int(np.count_nonzero(found.status))

    def _closed(self, rows: NDArray[np.int64], found: PoseRows) -> Array:
        limbs = found.joints[rows]
        solved = self.engine.positions.solve(found.pose[rows], near(limbs, len(limbs)))
        found.joints[rows], found.status[rows] = solved.q, solved.status
        return solved.q

    @cached_property
    def _one_nothing(self) -> PoseRows:
        return _nothing(1, len(self.engine.joint_names))

    @cached_property
    def _follow_poses(self) -> WithScratch:
        e = self.engine
        rows = np.empty((1, 7))
        return WithScratch(
            follow_poses, e.data, e.model, rows, False, rows, rows, True, _nothing(1, len(e.joint_names))
        )

    @cached_property
    def _home(self) -> tuple[Array, Array]:
        return writeable(self.engine.home), writeable(self.engine.home_joints)

    @cached_property
    def _follow_row(self) -> WithScratch:
        e = self.engine
        (home, joints), q = self._home, np.empty(len(e.actuated_names))
        return WithScratch(follow_row, e.data, e.model, joints, True, q, home, True, home, joints)

    def _at_starts(self, q: Array, starts: Array, seed: Array | None) -> Array:
        """Joint positions (n, n_joints) near those of the limbs at the starts: `seed`, or the mode nearest to q.

        Limbs in closed form take the branch nearest to q when they are solved; where passive joints have branches of
        their own, or limbs are iterated, the mode continued from home with the actuated joints nearest to q.
        """
        e, n = self.engine, len(q)
        if seed is not None:
            return np.array(seed if len(seed) == n else np.broadcast_to(seed, (n, seed.shape[1])), order="C")
        seeds = np.empty((n, len(e.joint_names)))
        seeds[:] = e.home_joints
        if e.redundant_names:
            seeds[:, e.redundant_column] = e.inputs.redundant_at(starts)
        seeds[:, e.actuated_column] = q
        branches = self._modes.hidden_branches
        if branches:
            solved = [e.positions.solve(starts, near(e.home_joints, len(starts), branch)) for branch in branches]
            reached = np.stack([s.q for s in solved], 1)
            arrived = np.stack([closes(s.status) for s in solved], 1)
            choose_nearest(reached, arrived, self._hidden, CLEARLY, BLOCKED, q, seeds)
        if e.redundant_names and e.iterated:
            redundant = np.broadcast_to(seeds[:, e.redundant_column], (n, len(e.redundant_names)))
            return coordinates_of(e).led(np.broadcast_to(starts, (n, 7)), redundant, e.home_joints)[0]
        if not e.iterated:
            return seeds
        several = self._modes.starts
        at_once = max(1, ROWS // len(several))
        for first in range(0, len(starts), at_once):
            poses = starts[first : first + at_once]
            from_home = np.tile(several, (len(poses), 1))
            at = e.from_home.continued(np.repeat(poses, len(several), axis=0), from_home)
            part = slice(first, first + at_once) if len(starts) > 1 else slice(0, n)
            shape = (len(poses), len(several))
            reached, arrived = at.seeds.reshape(*shape, -1), at.certain.reshape(shape)
            choose_nearest(reached, arrived, self._searched, CLEARLY, BLOCKED, q[part], seeds[part])
        return seeds

    @cached_property
    def _searched(self) -> LimbGroups:
        return one_after_the_other(self._modes.searched, self.engine)

    @cached_property
    def _hidden(self) -> LimbGroups:
        return one_after_the_other(self._modes.hidden, self.engine)

    def nearest(self, pose: Array, seed: Array) -> PoseRows:
        """The configuration nearest to a pose (7,) that need not be reachable exactly, all joints free to move."""
        e = self.engine
        at = e.whole_graph.nearest(e.inputs.in_whole_graph_at(seed, pose), e.characteristic_length)
        return at._replace(joints=at.joints[:, e.in_whole])

    def _by_whole_rows(
        self, q: Array, starts: Array, seed: Array | None, rows: NDArray[np.int64], found: PoseRows
    ) -> NDArray[np.int64]:
        """Rows of `found` by the path on the whole graph; returns those that need more."""
        e = self.engine
        if not len(rows):
            return rows
        starts_here = starts[rows] if len(starts) > 1 else np.repeat(starts, len(rows), axis=0)
        own_seed = None if seed is None else seed[rows] if len(seed) > 1 else seed
        at = e.positions.solve(starts_here, near(self._at_starts(q[rows], starts_here, own_seed), len(rows), SEEDED))
        closed = closes(at.status)
        here = rows[closed]
        positions = e.inputs.in_whole_graph(at.q[closed], starts_here[closed])
        end = e.whole_graph.follow_many(positions, e.actuated_names, q[here], e.characteristic_length)
        self._take(end, found, here)
        again = end.status != Status.CONVERGED if q.shape[1] > e.freedoms else np.zeros(len(here), dtype=bool)
        return np.concatenate([rows[~closed], here[again]])

    def _take(self, end: PoseRows, found: PoseRows, rows: NDArray[np.int64]) -> None:
        found.status[rows], found.residual[rows], found.iterations[rows] = end.status, end.residual, end.iterations
        done = end.status == Status.CONVERGED
        found.pose[rows[done]], found.joints[rows[done]] = end.pose[done], end.joints[done][:, self.engine.in_whole]

    def _by_whole(self, q: Array, pose: Array, seed: Array, found: PoseRows, k: int, some: bool = True) -> None:
        """Row k of `found` by the path on the whole graph from a pose (7,), with joints near `seed` (n_joints,)."""
        e = self.engine
        size = e.characteristic_length
        at = e.positions.solve(pose[None], near(seed, 1, SEEDED))
        if closes(at.status[0]):
            start = e.inputs.in_whole_graph(at.q, pose[None])[0]
        else:
            beside = None if far_away(pose[None], e.home, e.size)[0] else self._beside(pose, seed, size)
            if beside is None or beside.status[0] != Status.CONVERGED:
                found.status[k] = Status.UNREACHABLE
                found.residual[k] = found.residual[k] if beside is None else beside.residual[0]
                return
            start = beside.joints[0]
        end = e.whole_graph.follow(start, e.actuated_names, q, size)
        if some and end.status[0] != Status.CONVERGED and len(q) > e.freedoms:
            end = self._by_some(q, start, size) or end
        self._take(end, found, np.array([k]))

    def _beside(self, pose: Array, seed: Array, size: float) -> PoseRows:
        """The configuration next to a pose (7,) that the limbs miss, from limbs stretched out to it or else `seed`."""
        e = self.engine
        stretched = np.array(seed)
        stretched[e.body_column[2:]] = e.placed(pose, seed).state["q"][2:]
        for joints in (stretched, seed):
            beside = e.whole_graph.nearest(e.inputs.in_whole_graph_at(joints, pose), size)
            if beside.status[0] == Status.CONVERGED:
                break
        return beside

    def _by_some(self, q: Array, start: Array, size: float) -> PoseRows | None:
        """The path on which some of the redundant actuators, which contradict each other, go straight to q."""
        e = self.engine
        for some in combinations(range(len(q)), e.mobility):
            end = e.whole_graph.follow(start, [e.actuated_names[a] for a in some], q[list(some)], size)
            if end.status[0] != Status.CONVERGED:
                continue
            joints = end.joints[0, e.in_whole]
            if self._arrived(joints, q, size):
                return end
            joints[e.actuated_column] = q  # where a limb was stretched out, it can have come back on either side
            joints = e.positions.solve(end.pose, near(joints, 1)).q[0]
            if self._arrived(joints, q, size):
                end.joints[0, e.in_whole] = joints
                return end
        return None

    def _arrived(self, joints: Array, q: Array, size: float) -> bool:
        e = self.engine
        difference = joints[e.actuated_column] - q
        difference = np.where(e.actuated_turning, size * np.angle(np.exp(1j * difference)), difference)
        return bool(np.abs(difference).max() < ARRIVED * size)


def _nothing(n: int, width: int) -> PoseRows:
    """Arrays for n answers, of `width` joints, to input that is not usable."""
    status = np.empty(n, dtype=np.int64)
    status.fill(Status.INVALID_INPUT)
    return PoseRows(nans(n, 7), nans(n, width), status, nans(n), np.zeros(n, dtype=np.int64))


def one_after_the_other(limbs: Sequence[LimbColumns], e: Engine) -> LimbGroups:
    """Limbs in a row, for kernels."""
    columns, actuators, driven = (np.concatenate([limb[k] for limb in limbs]) for k in range(3))
    last, last_driven = (np.cumsum([len(limb[k]) for limb in limbs]) for k in range(2))
    return LimbGroups(columns, actuators, driven, last, last_driven, e.actuated_turning, *e.ranges.limits)


def usable_poses(poses: Array) -> NDArray[np.bool_]:
    """Which poses (n, 7) are finite with unit quaternions, as in `kernels.position.solve_poses.check_pose`."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.isfinite(poses).all(axis=1) & (np.abs(np.linalg.norm(poses[:, 3:], axis=1) - 1.0) < UNIT)


@fast_init
@dataclass(frozen=True, eq=False, repr=False)
class ForwardSolution(ExplainedSolution):
    """Platform poses for actuated joint positions; NaN where the status is neither CONVERGED nor JOINT_LIMIT."""

    pose: Array  # (..., 7) x y z qx qy qz qw, base frame
    joints: Array  # (..., n_joints)
    status: Codes
    residual: Array  # (...,) largest error of an actuated joint, rad or m
    iterations: Codes
    label: str
    _engine: Engine
    _nearest: bool  # to a pose, all joints free to move

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration found, for all that follows from it."""
        shape = np.shape(self.status)
        status, iterations = np.ravel(self.status), np.ravel(self.iterations)
        residual, q = np.ravel(self.residual), self.joints.reshape(-1, self.joints.shape[-1])
        n = len(status)
        found = Solved(
            q, np.empty((n, 0)), np.empty((n, 0)), status, residual, iterations, residual, np.empty((n, 0, 6))
        )
        choice = near(q, n, SOLVED)
        return Configuration(self._engine, self.pose.reshape(n, 7), shape, choice, None, self.label, False, None, found)

    @cached_property
    def condition(self) -> Array:
        """Reciprocal condition (...,) of the drives' Jacobian."""
        return np.where(closes(self.status), np.nan_to_num(self.configuration.drive_condition), 0.0)

    @property
    def _names(self) -> JointNames:
        return self._engine.names

    def _explain(self, status: int, joints: Array, residual: float) -> str:
        explain = explain_nearest if self._nearest else explain_forward
        return explain(self._engine, status, joints, residual)

    def _summary(self) -> str:
        return f"({self.label}) {super()._summary()}"

    def _values(self) -> list[str]:
        return [] if np.isnan(self.pose).all() else [_pose(self.pose), *super()._values()]


class AssemblyModes(Describable, list[ForwardSolution]):
    """The assembly modes of one set of actuated joint positions, found by `method`, and how far to trust the list.

    `certified` where every real solution is listed, and none is a sample of a motion that locked actuators leave; else
    `caution` says why not.
    """

    def __init__(self, solutions: Iterable[ForwardSolution], method: str, certified: bool, caution: str) -> None:
        super().__init__(solutions)
        self.method = method
        self.certified = certified
        self.caution = caution

    def _summary(self) -> str:
        trust = "every real one" if self.certified else self.caution
        return f"{len(self)} by method '{self.method}': {trust}"

    def _details(self) -> list[str]:
        lines = []
        for one in self[:SHOWN]:
            status = "" if one.ok else f" {Status(int(one.status)).name}: {shortened(one.reason(), REASON)}"
            lines.append(f"{one.label}: {_pose(one.pose)}{status}")
        return [*lines, *([f"and {len(self) - SHOWN} more"] if len(self) > SHOWN else [])]


def _pose(pose: Array) -> str:
    return f"xyz {vector(pose[:3])} m, quaternion {vector(pose[3:])}"
