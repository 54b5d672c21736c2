# SPDX-License-Identifier: Apache-2.0
"""The solves behind `Kinematics` and `Dynamics`: plain arrays of rows in, plain arrays out.

One engine holds what is constant of a robot: the tables, the platform's task, names and their columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array, JointType, Mechanism
from pkm_description.mobility import beside_home, check_gears
from pkm_kinematics.batch import ShapeError, over_cores, rows_for
from pkm_kinematics.blocks import build_tables, build_undivided
from pkm_kinematics.constraints import scaling
from pkm_kinematics.continuing import continue_joints, led_joints
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.chain import place_chains, read_chain
from pkm_kinematics.kernels.jacobians import inverse_jacobians
from pkm_kinematics.kernels.motion_space import allowed_twists, motion_space, motion_spaces, off_space
from pkm_kinematics.kernels.positions import CLOSED
from pkm_kinematics.kernels.solve import INSIDE, solve_many, solve_pose
from pkm_kinematics.pose import pose_of, transform_of
from pkm_kinematics.status import Status
from pkm_kinematics.tables import Tables
from pkm_kinematics.task import Task, build_task, chain_state
from pkm_kinematics.whole import FREE

NO_RATES = np.empty((0, 6))
EXACT = 1e-14  # m, and 1 for directions: limbs that are closed less exactly are closed again as a whole
FOLDED = 0.02  # of the robot's size: limbs that are open by less are tried again as a whole
OPEN = (Status.UNREACHABLE, Status.DIVERGED)  # statuses of a pose at which a loop stays open
CLOSES = (Status.CONVERGED, Status.JOINT_LIMIT)  # statuses that come with a configuration


@dataclass(frozen=True, eq=False)
class Solved:
    """Rows of a solve; NaN where there is no configuration."""

    q: Array  # (n, n_joints)
    qd: Array
    qdd: Array
    status: NDArray[np.int64]  # (n,)
    residual: Array
    iterations: NDArray[np.int64]
    regularity: Array


@dataclass(frozen=True, eq=False)
class Placed:
    """A workspace with every body in place at one pose."""

    state: NDArray[Any]
    rows: NDArray[Any]
    work: Array
    status: int

    @property
    def closed(self) -> bool:
        """True where there is a configuration."""
        return self.status in CLOSES


class Engine:
    """Constant data of one robot, and solves over rows. Calls may run in several threads at once."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.home_by_name = home_by_name(mechanism)
        self.task: Task = build_task(mechanism, self.home_by_name)
        self.home: Array = pose_of(mechanism.home)
        check_gears(mechanism)
        generic = None
        if mechanism.mobility.singular_home:
            beside = beside_home(mechanism)
            generic = pose_of(beside.home), home_by_name(beside)
        self.tables = build_tables(mechanism, self.home, self.home_by_name, generic)
        self.joint_names: tuple[str, ...] = tuple(self.home_by_name)
        self.actuated_names: tuple[str, ...] = mechanism.actuated_joints
        column = {name: k for k, name in enumerate(self.joint_names)}
        self.body_column = np.array([column.get(name, -1) for name in self.tables.names])
        self.chain_column = np.array([-1] + [column[name] for name in self.task.names])
        self.actuated_column = np.array([column[name] for name in self.actuated_names])
        self.home_joints: Array = np.array([self.home_by_name[name] for name in self.joint_names])
        self.home_joints[self.body_column[2:]] = self.tables.bodies["home"][2:]
        slides = dict(zip(self.tables.names, self.tables.bodies["prismatic"] == 1, strict=True))
        self.actuated_turning = np.array([not slides[name] for name in self.actuated_names])
        for array in (self.home, self.home_joints):
            array.setflags(write=False)
        self._generic = generic

    @property
    def mobility(self) -> int:
        """Number of freedoms of the platform."""
        return self.mechanism.mobility.platform

    @cached_property
    def constant_space(self) -> bool:
        """True where the platform's possible twists are the same at every pose."""
        return self.task.constant and self.task.subspace.shape[1] == self.mobility

    @cached_property
    def characteristic_length(self) -> float:
        """Length [m] that makes rotations comparable with translations: mean distance of the platform's joints."""
        c = self.tables.closures
        points = np.vstack(
            [
                c["successor_point"][c["successor"] == records.PLATFORM],
                c["predecessor_point"][c["predecessor"] == records.PLATFORM],
            ]
        )
        if not len(points):  # limbs that the tree leads to from the platform
            points = self.tables.bodies["translation"][self.tables.bodies["parent"] == records.PLATFORM]
        length = float(np.linalg.norm(points, axis=1).mean()) if len(points) else 0.0
        return length if length > 1e-9 else 1.0

    @cached_property
    def size(self) -> float:
        """Size of the robot [m]: greatest distance of a limb's joint from the platform at home."""
        at = self.placed(self.home, self.home_joints)
        return float(np.linalg.norm(at.state["p"][2:] - self.home[:3], axis=1).max(initial=0.0)) or 1.0

    # -- input ------------------------------------------------------------------------------------------------------

    def poses(self, pose: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """Rows (n, 7) and leading axes of poses (..., 7) or of task coordinates. Raises `ShapeError`."""
        array = np.ascontiguousarray(pose, dtype=np.float64)
        if array.ndim and array.shape[-1] == 7:
            return array.reshape(-1, 7), array.shape[:-1]
        if array.ndim and array.shape[-1] == len(self.task.names) > 0:
            coordinates = array.reshape(-1, array.shape[-1])
            return self.poses_at(coordinates), array.shape[:-1]
        wanted = f"(..., {len(self.task.names)}) or " if self.task.names else ""
        raise ShapeError(f"pose: expected {wanted}(..., 7), got {array.shape}")

    def poses_at(self, coordinates: Array) -> Array:
        """Poses (n, 7) at task coordinates (n, k); NaN where they are not finite."""
        n, task = len(coordinates), self.task
        poses = np.full((n, 7), np.nan)
        usable = np.asarray(np.isfinite(coordinates).all(axis=1))
        R, p = np.empty((n, 3, 3)), np.empty((n, 3))
        known = np.where(usable[:, None], coordinates, 0.0)
        place_chains(task.chain, task.tail, task.tail_point, chain_state(task), known, R, p)
        if n:
            poses[usable, :3] = p[usable]
            poses[usable, 3:] = Rotation.from_matrix(R).as_quat(canonical=True)[usable]
        return poses

    def branch_at(self, pose: Array) -> dict[str, float]:
        """Positions of the platform's branch at a pose (7,), or of the six joints that stand for it, by name."""
        if self.task.names:
            return dict(zip(self.task.names, (float(q) for q in self._read_chain(pose)["q"][1:]), strict=True))
        return {name: float(values[0]) for name, values in self.stand_in(pose[None]).items()}

    def stand_in(self, poses: Array) -> dict[str, Array]:
        """Positions (n,) by name, at poses (n, 7), of the six joints that stand for a branch where there is none."""
        if self.task.names or not len(poses):
            return {}
        home = Rotation.from_quat(self.home[3:])
        away = home.inv().apply(poses[:, :3] - self.home[:3])
        angles = (home.inv() * Rotation.from_quat(poses[:, 3:])).as_euler("ZYX")
        return {f"platform/{name}": values for name, values in zip(FREE, np.hstack([away, angles]).T, strict=True)}

    def _read_chain(self, pose: Array) -> NDArray[Any]:
        """State of the platform's branch at a pose (7,)."""
        state, task = chain_state(self.task), self.task
        R = np.ascontiguousarray(transform_of(pose)[:3, :3])
        read_chain(task.chain, task.sliding, task.spread, task.tail, task.tail_point, state, R, pose[:3])
        return state

    def rates(self, twist: ArrayLike, acceleration: ArrayLike | None, n: int) -> tuple[Array, Array]:
        """Twists and accelerations as (n, 6) rows. Raises `ShapeError`."""
        pair = (("twist", twist), ("acceleration", np.zeros(6) if acceleration is None else acceleration))
        # copies: what is broadcast is read-only, and would have kernels compiled once more for it
        twists, accelerations = (np.array(np.broadcast_to(rows_for(v, 6, n, what), (n, 6))) for what, v in pair)
        return twists, accelerations

    def seeds(self, seed: ArrayLike | None, poses: Array) -> Array:
        """Joint positions (1 or n, n_joints) to start from for poses (n, 7); continued from home where none are given.

        Raises `ShapeError`.
        """
        if seed is None:
            return self.continued(poses, self.home_joints)[0]
        return rows_for(seed, len(self.joint_names), len(poses), "seed")

    @cached_property
    def iterated(self) -> bool:
        """True where a limb's positions are found by iteration, so that they depend on where it starts."""
        return bool((self.tables.blocks["solver"] == records.NEWTON).any())

    @cached_property
    def iterated_turns(self) -> NDArray[np.int64]:
        """Bodies whose joints turn and are found by iteration."""
        t = self.tables
        blocks = t.blocks[t.blocks["solver"] == records.NEWTON]
        bodies = np.concatenate([np.arange(b["start"], b["start"] + b["count"]) for b in blocks])
        return np.asarray(bodies[t.bodies["prismatic"][bodies] == 0], dtype=np.int64)

    @property
    def continues(self) -> bool:
        """True where limbs are iterated and the platform can go a straight way from home, to carry them on."""
        return self.iterated and self.constant_space

    def continued(self, poses: Array, joints: Array, mode: int = -1) -> tuple[Array, NDArray[np.bool_]]:
        """Joint positions (1 or n, n_joints) to start from for poses (n, 7), and whether they belong to `joints` (n,).

        Those are positions (n_joints,) or (n, n_joints) at home, which limbs solved by iteration carry on.
        """
        if self.continues and len(poses):
            return continue_joints(self, poses, joints, mode)
        seeds, known = np.atleast_2d(joints), np.ones(len(poses), dtype=bool)
        if not self.iterated or not len(poses):
            return seeds, known
        solved = self.solve(poses, seeds, mode)
        found = np.isin(solved.status, CLOSES)
        seeds = np.where(found[:, None], solved.q, seeds)
        if not found.all():
            seeds[~found] = led_joints(self, poses[~found], seeds[~found], mode)
        return seeds, known

    # -- solves -----------------------------------------------------------------------------------------------------

    def solve(
        self, poses: Array, seeds: Array, mode: int = -1, twists: Array = NO_RATES, accelerations: Array = NO_RATES
    ) -> Solved:
        """Positions of all joints at poses (n, 7), and their rates where twists are given; on all cores if it pays."""
        solved = self._solve_blocks(poses, seeds, mode, twists, accelerations)
        if self.divided:
            # Where nothing carries limbs from home to the pose, a branch may have been left far from its crossing.
            near = np.flatnonzero(
                np.isin(solved.status, OPEN) & ((solved.residual < FOLDED * self.size) | (not self.continues))
            )
            lost = [k for k in near if self._folded(poses[k], seeds[k if len(seeds) > 1 else 0], mode)]
            blunt = np.flatnonzero(np.isin(solved.status, CLOSES) & (solved.residual > EXACT))
            if lost or len(blunt):
                mine = np.vstack([seeds[lost] if len(seeds) > 1 else np.repeat(seeds, len(lost), 0), solved.q[blunt]])
                lost += list(blunt)
                v, a = (x[lost] if len(x) else x for x in (twists, accelerations))
                again = self._solve_blocks(poses[lost], self._undivided_joints(poses[lost], mine), mode, v, a)
                found = np.isin(again.status, CLOSES) & (again.residual < solved.residual[lost])
                for rows, better in zip(vars(solved).values(), vars(again).values(), strict=True):
                    rows[np.array(lost)[found]] = better[found]
        return solved

    @cached_property
    def divided(self) -> bool:
        """True where a limb has blocks solved by iteration, and after them one with more equations than joints.

        In a singularity of the first block, which the robot as a whole need not notice, its branches cross: a rod pair
        that hangs in a plane with the axis of its plate folds over. Then it is the later equations that stay open.
        """
        blocks = self.tables.blocks
        return any(
            bool((blocks["solver"][a:b] == records.NEWTON).any() & (blocks["rows"] > blocks["count"])[a + 1 : b].any())
            for a, b in self.tables.limbs
        )

    def _folded(self, pose: Array, seed: Array, mode: int) -> bool:
        """True where only blocks with more equations than joints stay open."""
        at, blocks = self.placed(pose, seed, mode), self.tables.blocks
        gaps = np.abs(at.rows["gap"])
        still_open = [not gaps[b["rows_at"] : b["rows_at"] + b["rows"]].max(initial=0.0) < CLOSED for b in blocks]
        return any(still_open) and not (still_open & (blocks["rows"] <= blocks["count"])).any()

    @cached_property
    def _undivided(self) -> tuple[Tables, NDArray[np.int64]]:
        """The robot with each limb as one block, and the columns of its bodies' joints."""
        closed = dict(zip(self.joint_names, map(float, self.home_joints), strict=True))
        tables = build_undivided(self.mechanism, closed, *(self._generic or (self.home, closed)))
        column = {name: k for k, name in enumerate(self.joint_names)}
        return tables, np.array([column.get(name, -1) for name in tables.names])

    def _undivided_joints(self, poses: Array, seeds: Array) -> Array:
        """Joint positions (n, n_joints) at poses (n, 7) near `seeds` (1 or n, n_joints), limbs solved as a whole."""
        tables, columns = self._undivided
        found = self._solve_blocks(poses, seeds, by=(tables, columns))
        return np.where(np.isin(found.status, CLOSES)[:, None], found.q, seeds)

    def _solve_blocks(
        self,
        poses: Array,
        seeds: Array,
        mode: int = -1,
        twists: Array = NO_RATES,
        accelerations: Array = NO_RATES,
        by: tuple[Tables, NDArray[np.int64]] | None = None,
    ) -> Solved:
        """`solve`, block after block; `by` other tables of the same robot and the columns of their bodies' joints."""
        n, width = len(poses), len(self.joint_names)
        t, body_column = by or (self.tables, self.body_column)
        q, qd, qdd = np.full((n, width), np.nan), np.full((n, width), np.nan), np.full((n, width), np.nan)
        status, iterations = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        residual, regularity = np.zeros(n), np.zeros(n)

        def part(at: slice) -> None:
            task = self.task
            rates = at if len(twists) else slice(0, 0)
            solve_many(
                t.bodies, t.closures, t.blocks, *t.workspace(),
                task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task),
                body_column, self.chain_column,
                poses[at], twists[rates], accelerations[rates], seeds[at] if len(seeds) > 1 else seeds, mode,
                q[at], qd[at], qdd[at], status[at], residual[at], iterations[at], regularity[at],
            )  # fmt: skip

        over_cores(part, n)
        return Solved(q, qd, qdd, status, residual, iterations, regularity)

    def placed(self, pose: Array, seed: Array, mode: int = -1) -> Placed:
        """All bodies in place at one pose (7,), from joint positions `seed` (n_joints,), or in a working mode."""
        t, task = self.tables, self.task
        state, rows, work = t.workspace()
        state["q"][2:] = seed[self.body_column[2:]]
        state["c"], state["s"] = np.cos(state["q"]), np.sin(state["q"])
        status, _, _ = solve_pose(
            t.bodies, t.closures, t.blocks, state, rows, work,
            task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task), pose, mode,
        )  # fmt: skip
        return Placed(state, rows, work, int(status))

    def inverse_jacobians(self, poses: Array, seeds: Array) -> Array:
        """Actuated joint rates per platform twist (n, n_actuated, 6) at poses (n, 7); NaN where there are none."""
        out = np.full((len(poses), len(self.actuated_names), 6), np.nan)
        t, task = self.tables, self.task

        def part(at: slice) -> None:
            inverse_jacobians(
                t.bodies, t.closures, t.blocks, *t.workspace(),
                task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task),
                self.body_column, self.chain_column, poses[at], seeds[at] if len(seeds) > 1 else seeds, out[at],
            )  # fmt: skip

        over_cores(part, len(poses))
        return out

    # -- motion space -----------------------------------------------------------------------------------------------

    def space_at(self, pose: Array, seed: Array, twist: Array | None = None) -> tuple[Array, Array]:
        """Motion space S (6, mobility) at one pose (7,), and the acceleration (6,) that `twist` imposes through it.

        NaN where the pose has no regular configuration.
        """
        spaces, biases = self.spaces_at(pose[None], seed[None], None if twist is None else twist[None])
        return spaces[0], biases[0]

    def spaces_at(self, poses: Array, seeds: Array, twists: Array | None = None) -> tuple[Array, Array]:
        """Motion spaces (n, 6, mobility) and bias accelerations (n, 6) at poses (n, 7), as `space_at`."""
        n, t, task = len(poses), self.tables, self.task
        if self.constant_space:
            return np.broadcast_to(task.subspace, (n, *task.subspace.shape)), np.zeros((n, 6))
        spaces, biases = np.empty((n, 6, self.mobility)), np.empty((n, 6))
        motion_spaces(
            t.bodies, t.closures, t.blocks, self._limb_blocks, *t.workspace(),
            task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task),
            self.body_column, self.chain_column, task.constant, np.ascontiguousarray(task.subspace),
            self.characteristic_length, np.ascontiguousarray(poses), np.ascontiguousarray(seeds),
            np.zeros((n, 6)) if twists is None else np.ascontiguousarray(twists), spaces, biases,
        )  # fmt: skip
        return spaces, biases

    def space_in(self, workspace: tuple[NDArray[Any], ...], pose: Array, twist: Array) -> tuple[Array, Array]:
        """As `space_at`, at the positions that stand in a workspace, its blocks inverted."""
        t = self.tables
        space, bias = np.empty((6, self.mobility)), np.empty(6)
        motion_space(
            t.bodies, t.closures, t.blocks, self._limb_blocks, *workspace,
            np.ascontiguousarray(self.allowed_at(pose)), self.characteristic_length, twist, space, bias,
        )  # fmt: skip
        return space, bias

    @cached_property
    def _limb_blocks(self) -> NDArray[np.int64]:
        """First and last block (k, 2) of each limb."""
        return np.array(self.tables.limbs, dtype=np.int64).reshape(-1, 2)

    def allowed_at(self, pose: Array) -> Array:
        """Twists (6, c) that the platform's own branch allows at a pose."""
        if self.task.constant:
            return self.task.subspace
        return np.asarray(allowed_twists(self.task.chain, self._read_chain(pose), pose))

    def outside(self, poses: Array, rates: Array, seeds: Array) -> NDArray[np.bool_]:
        """Which of the twists or accelerations (n, 6) at poses (n, 7) the platform cannot have."""
        if self.constant_space and self.mobility == 6:
            return np.zeros(len(rates), dtype=bool)
        scale = scaling(self.characteristic_length)
        if self.constant_space:
            off = np.empty(len(rates), dtype=np.bool_)
            off_space(np.ascontiguousarray(rates), scale, self._onto_space, INSIDE, off)
            return off
        scaled = rates * scale
        allowance = INSIDE * (1.0 + np.linalg.norm(scaled, axis=1))
        spaces = self.spaces_at(poses, seeds)[0]
        Q = np.linalg.qr(np.nan_to_num(spaces) * scale[:, None])[0]
        left = scaled - np.einsum("nik,njk,nj->ni", Q, Q, scaled)
        return np.asarray((np.linalg.norm(left, axis=1) > allowance) & np.isfinite(spaces).all(axis=(1, 2)))

    @cached_property
    def _onto_space(self) -> Array:
        """Orthogonal projector (6, 6) onto the constant motion space, rotations at the characteristic length."""
        Q = np.linalg.qr(self.task.subspace * scaling(self.characteristic_length)[:, None])[0]
        projector: Array = Q @ Q.T
        return projector


def home_by_name(mechanism: Mechanism) -> dict[str, float]:
    """Home position of every one-freedom joint, by name, in the order of the description."""
    values: dict[str, float] = {}
    at = 0
    suffixes = {JointType.PLANAR: ("x", "y", "angle"), JointType.FLOATING: ("x", "y", "z", "yaw", "pitch", "roll")}
    for name in mechanism.moving_joints:
        joint = mechanism.joint_named[name]
        names: Iterable[str] = (f"{name}/{s}" for s in suffixes[joint.type]) if joint.type in suffixes else (name,)
        for part in names:
            values[part] = float(mechanism.home_joints[at])
            at += 1
    return values
