# SPDX-License-Identifier: Apache-2.0
"""The configurations that continue those at home: tracked along straight ways, or along the robot's one curve."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import NEAREST, Choice, near
from pkm_kinematics.kernels.path.carry_on import JUMP
from pkm_kinematics.solve.continuation import Continuation
from pkm_kinematics.solve.coupler_curve import CouplerCurve, trace
from pkm_kinematics.solve.joint_ranges import JointRanges
from pkm_kinematics.solve.position_solver import PositionSolver
from pkm_kinematics.solve.possible_twists import PossibleTwists
from pkm_kinematics.solve.robot_constants import RobotConstants
from pkm_kinematics.status import closes

PASSAGES = 4  # of a curve by one pose that are tried


class FromHome:
    """Finds for one robot the configurations at poses that continue those at home."""

    def __init__(
        self, robot: RobotConstants, ranges: JointRanges, positions: PositionSolver, spaces: PossibleTwists
    ) -> None:
        self.robot, self.ranges, self.positions, self.spaces = robot, ranges, positions, spaces
        self._near_home: dict[int, Choice] = {}  # for one pose, by branch
        self._curves: dict[bytes, CouplerCurve | None] = {}  # by where they begin

    def continued(self, poses: Array, joints: Array, branch: int = NEAREST) -> Choice:
        """The configurations at poses (n, 7) that continue `joints` (n_joints,) or (n, n_joints) at home, `branch`."""
        if self.robot.continues and len(poses):
            return Choice(branch, *self._continuation.carried(poses, joints, branch))
        if len(poses) == 1 and joints is self.robot.home_joints:  # most calls: made once
            if branch not in self._near_home:
                self._near_home[branch] = near(joints, 1, branch)._replace(from_home=branch >= 0)
            start = self._near_home[branch]
        else:
            start = near(joints, len(poses), branch)._replace(from_home=branch >= 0)
        if not self.robot.iterated or not len(poses):
            return start
        curve = self._curve(joints) if joints.ndim == 1 else None
        return self._from_home(poses, start, branch) if curve is None else self._on_curve(poses, curve, start, branch)

    def _from_home(self, poses: Array, start: Choice, branch: int) -> Choice:
        """`continued` in a configuration-dependent motion space: iterated from home, else tracked from there."""
        solved = self.positions.solve(poses, start)
        found = closes(solved.status)
        seeds = np.where(found[:, None], solved.q, start.seeds)
        if not found.all():
            seeds[~found] = self._continuation.led(poses[~found], seeds[~found], branch)
        return start._replace(seeds=seeds)

    def _on_curve(self, poses: Array, curve: CouplerCurve, start: Choice, branch: int) -> Choice:
        """`continued` of a mechanism of one degree of freedom: what is on its curve, in the order reached from home.

        Cranks pass dead points on the way: closed forms take the branch nearest by. Off a closed curve: NOT_CONNECTED.
        """
        seeds, arrived = np.array(start.seeds_for(np.arange(len(poses)))), np.zeros(len(poses), dtype=bool)
        turning = self.robot.body_column[self._iterated_turns]
        waiting = np.flatnonzero(np.isfinite(poses).all(axis=1))
        for rank in range(PASSAGES):
            positions, passes = curve.passages(poses[waiting], rank)
            waiting, joints = waiting[passes], positions[passes][:, self.robot.in_whole]
            if not len(waiting):
                break
            beside = near(joints, len(waiting))
            solved = self.positions.solve(self.spaces.into_space(poses[waiting], beside), beside)
            with np.errstate(invalid="ignore"):
                moved = np.abs(solved.q - joints)[:, turning].max(axis=1, initial=0.0)
            there = closes(solved.status) & (moved < JUMP)
            seeds[waiting[there]], arrived[waiting[there]] = solved.q[there], True
            waiting = waiting[~there]
        if not (curve.complete or arrived.all()):
            lost = np.flatnonzero(~arrived)
            seeds[lost] = self._from_home(poses[lost], start.rows(lost), branch).seeds
            arrived[lost] = True
        return Choice(NEAREST, seeds, arrived)

    def _curve(self, joints: Array) -> CouplerCurve | None:
        """The curve through a configuration (n_joints,) at home, of a mechanism of one degree of freedom; else None."""
        if self.robot.mechanism.mobility.total != 1:
            return None
        key = joints.tobytes()
        if key not in self._curves:
            whole = self.robot.whole_graph
            start = whole.tables.bodies["home"].copy()
            limits = np.full(len(start), -np.inf), np.full(len(start), np.inf)
            for values, here in zip((start, *limits), (joints, *self.ranges.limits), strict=True):
                values[self.robot.in_whole] = here
            drives = self.robot.in_whole[self.robot.actuated_column]
            self._curves[key] = trace(whole, start, drives, limits, self.robot.size)
        return self._curves[key]

    @cached_property
    def _iterated_turns(self) -> NDArray[np.int64]:
        """Bodies whose joints turn and are found by iteration."""
        t = self.robot.tables
        blocks = t.blocks[t.blocks["solver"] == records.NEWTON]
        bodies = np.concatenate([np.arange(b["start"], b["start"] + b["count"]) for b in blocks])
        return np.asarray(bodies[t.bodies["prismatic"][bodies] == 0], dtype=np.int64)

    @cached_property
    def _continuation(self) -> Continuation:
        return Continuation(
            self.robot.model,
            self.robot.data,
            self.positions.solve,
            self.robot.home,
            self._iterated_turns,
            self.robot.size,
        )
