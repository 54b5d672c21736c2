# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics: the assembly mode that continues a motion, and all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.assembly_search import SearchedPoses, passive_positions, search_graph
from pkm_kinematics.engine import CLOSES, Engine
from pkm_kinematics.kernels.forward import forward_newton
from pkm_kinematics.kernels.solve import check_pose
from pkm_kinematics.status import Status
from pkm_kinematics.whole import WholeGraph


@dataclass(frozen=True, eq=False)
class Found:
    """One pose; NaN where the status is not CONVERGED."""

    pose: Array  # (7,)
    joints: Array  # (n_joints,)
    status: Status
    residual: float  # largest error of an actuated joint, rad or m
    iterations: int


class Forward:
    """Forward kinematics of one robot near a pose: Newton's method on the pose, then on the whole graph.

    The first is fast and exact where every pose on the way can be reached by all limbs; the second needs no pose that
    closes the loops, and serves motion spaces that turn with the pose.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @cached_property
    def _whole(self) -> WholeGraph:
        e = self.engine
        return WholeGraph(e.mechanism, e.task, e.home_by_name, e.home)

    def near(self, q: Array, start: Array) -> Found:
        """The pose with actuated joints at q (n_actuated,) that continues `start` (7,)."""
        clean = np.empty(7)
        if not np.isfinite(q).all() or not check_pose(start, clean):
            return self._nothing(Status.INVALID_INPUT, 0.0, 0)
        if self.engine.constant_space:
            found = self._by_pose(q, clean)
            if found.status == Status.CONVERGED:
                return found
            whole = self._by_whole(q, start)
            return whole if whole.status == Status.CONVERGED else found
        return self._by_whole(q, start)

    def nearest(self, pose: Array, seed: Array) -> Found:
        """A configuration near a pose (7,) that need not be reachable exactly, all joints free to move."""
        positions = dict(zip(self.engine.joint_names, seed, strict=True))
        positions.update(self.engine.branch_at(pose))
        return self._solve_whole(positions, False)

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

    def _by_pose(self, q: Array, pose: Array) -> Found:
        e, t = self.engine, self.engine.tables
        m, f = len(q), e.mobility
        state, rows, work = t.workspace()
        scratch = (np.empty(7), np.empty((m, 6)), np.empty((f, f)), np.empty(max(m, f)), np.empty(6))
        status, residual, iterations = forward_newton(
            t.bodies, t.closures, t.blocks, state, rows, work, e.task.subspace, *scratch, q, pose
        )
        if status != Status.CONVERGED:
            return self._nothing(Status(status), residual, iterations)
        seed = e.home_joints.copy()
        turning = t.bodies["prismatic"] == 0
        seed[e.body_column[2:]] = np.where(turning, np.arctan2(state["s"], state["c"]), state["q"])[2:]
        joints = e.solve(pose[None], seed[None]).q[0]
        return Found(pose, joints, Status.CONVERGED, float(residual), int(iterations))

    def _by_whole(self, q: Array, near: Array) -> Found:
        e = self.engine
        at = e.solve(near[None], e.home_joints[None])
        seed = at.q[0] if at.status[0] in CLOSES else e.home_joints
        positions = dict(zip(e.joint_names, seed, strict=True))
        positions.update(e.branch_at(near))
        positions.update(zip(e.actuated_names, (float(x) for x in q), strict=True))
        return self._solve_whole(positions, True)

    def _solve_whole(self, positions: dict[str, float], hold_actuators: bool) -> Found:
        pose, found, residual, iterations = self._whole.solve(positions, hold_actuators)
        if pose is None:
            return self._nothing(Status.DIVERGED, residual, iterations)
        joints = np.array([found[name] for name in self.engine.joint_names])
        return Found(pose, joints, Status.CONVERGED, residual, iterations)

    def _nothing(self, status: Status, residual: float, iterations: int) -> Found:
        width = len(self.engine.joint_names)
        return Found(np.full(7, np.nan), np.full(width, np.nan), status, float(residual), int(iterations))
