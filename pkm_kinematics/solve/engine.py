# SPDX-License-Identifier: Apache-2.0
"""The solves behind `Kinematics` and `Dynamics`: plain arrays of rows in, plain arrays out; configurations from home.

Newton's method finds a solution of a limb near its start, but far from it may find another one, or none. A working
mode at a pose is therefore the end of a path: the platform goes straight from home to the pose, and the limbs follow in
steps short against their lengths. Where a joint moves farther than it should, or a limb does not reach, the step is
tried again at a part of its length. In a configuration-dependent motion space the platform cannot go straight: there
Newton's method starts from home, and where that fails, the limbs follow the straight way as near to it as they get.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics.batch import BATCH, over_cores
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import NEAREST, SOLVED, Choice, Solved, near, writeable
from pkm_kinematics.kernels.path.carry_on import (
    FAR,
    JUMP,
    LEFT,
    STEP,
    AtHome,
    StraightPath,
    carry_on,
    solve_near_home,
    stay_on_a_side,
)
from pkm_kinematics.kernels.position.closures import CLOSED
from pkm_kinematics.solve.coupler_curve import CouplerCurve, trace
from pkm_kinematics.solve.inputs import Inputs
from pkm_kinematics.solve.position_solver import PositionSolver
from pkm_kinematics.solve.possible_twists import PossibleTwists
from pkm_kinematics.solve.robot_constants import JointRanges, RobotConstants
from pkm_kinematics.status import closes
from pkm_runtime.kernels.binding import WithScratch


class Engine(RobotConstants):
    """Constant data of one robot, and its solves over rows by subject. Calls may run in several threads at once."""

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        self.inputs = Inputs(self)
        self.ranges = JointRanges(self)
        self.positions = PositionSolver(self)
        self.spaces = PossibleTwists(self, self.inputs, self.positions)
        self.from_home = FromHome(self, self.ranges, self.positions, self.spaces)


PASSAGES = 4  # of a curve by one pose that are tried
SHORTER = 0.25  # a step that fails is tried again at this part of its length
SHORTEST = 0.005  # where loops stay open even after this, the way is blocked
ROUND = 0.0005  # the same where loops close: joints that go round a singularity turn quickly


class FromHome:
    """Finds for one robot the configurations at poses that continue those at home."""

    def __init__(
        self, robot: RobotConstants, ranges: JointRanges, positions: PositionSolver, spaces: PossibleTwists
    ) -> None:
        self.robot, self.ranges, self.positions, self.spaces = robot, ranges, positions, spaces
        self._near_home: dict[int, tuple[Choice, None]] = {}  # for one pose, by branch
        self._starts: dict[tuple[int, bytes], AtHome | None] = {}  # by branch and joints
        self._curves: dict[bytes, CouplerCurve | None] = {}  # by where they begin

    def continued(self, poses: Array, joints: Array, branch: int = NEAREST) -> Choice:
        """The configurations at poses (n, 7) that continue `joints` (n_joints,) or (n, n_joints) at home, `branch`."""
        return self.found(poses, joints, branch)[0]

    def found(self, poses: Array, joints: Array, branch: int) -> tuple[Choice, Solved | None]:
        """`continued`, and what `PositionSolver.solve` finds there where it was solved on the way."""
        if not self.robot.iterated:
            if len(poses) != 1 or joints is not self.robot.home_joints:
                return _beginning(joints, len(poses), branch), None
            if branch not in self._near_home:
                self._near_home[branch] = _beginning(joints, 1, branch), None
            return self._near_home[branch]  # most calls: made once
        start = self._at_home(joints, branch) if len(poses) else None
        if start is None:
            return self._found_far(poses, joints, branch)
        n, poses = len(poses), np.ascontiguousarray(poses)
        solved = self.positions.unsolved(n)
        if n < BATCH:
            self._solve_near_home(self.robot.model, start, poses, branch, solved)
        else:
            over_cores(lambda at: self._solve_near_home(self.robot.model, start, poses[at], branch, solved.rows(at)), n)
        choice = near(solved.q, n, branch)._replace(from_home=start.from_home)
        if not np.count_nonzero(solved.status):  # most calls
            return choice, solved
        choice, left = choice._replace(seeds=solved.q.copy()), np.flatnonzero(solved.status == LEFT)
        if len(left):
            far, found = self._found_far(poses[left], joints, branch)
            assert found is not None  # but on the curve of a mechanism of one degree of freedom
            choice.seeds[left], choice.certain[left] = far.seeds, far.certain
            for rows, others in zip(solved, found, strict=True):
                rows[left] = others
        return choice, solved

    def _at_home(self, joints: Array, branch: int) -> AtHome | None:
        robot = self.robot
        if branch < 0 or joints.ndim > 1:
            return None
        key = branch, joints.tobytes()
        if key not in self._starts:
            alone = robot.gears or robot.mechanism.mobility.total == 1
            self._starts[key] = None if alone else self._leaving_home(joints)
        return self._starts[key]

    def _leaving_home(self, joints: Array) -> AtHome | None:
        robot, pairs = self.robot, [(r, c) for r in range(6) for c in range(r, 6)]
        twists = np.array([np.eye(6)[r] + (r != c) * np.eye(6)[c] for r, c in pairs])
        homes, here = np.repeat(robot.home_row, len(pairs), axis=0), near(joints, len(pairs), SOLVED)
        moved = self.positions.by_blocks(homes, here, twists, np.zeros((len(pairs), 6)))
        first, second = moved.qd.T, moved.qdd.T
        if not np.isfinite(first).all() or not moved.residual[0] < CLOSED * robot.size:
            return None
        own = np.array([pairs.index((r, r)) for r in range(6)])
        products = [second[:, k] - (r != c) * (second[:, own[r]] + second[:, own[c]]) for k, (r, c) in enumerate(pairs)]
        rates = np.vstack([first[:, own].T, 0.5 * np.array(products)]).T
        data, blocks = robot.data(joints), robot.tables.blocks
        sides = np.array([data.state["side"][b["start"]] if b["count"] else 0.0 for b in blocks])
        tall = data.work[blocks["side_at"][0] : blocks["scratch_at"][0]].copy() if len(blocks) else np.empty(0)
        exact = self.positions.exact if robot.divided else np.inf
        return AtHome(
            writeable(robot.home), writeable(joints), sides, tall, writeable(rates), exact, not robot.continues
        )

    @cached_property
    def _solve_near_home(self) -> WithScratch:
        row = np.empty(1)
        start = AtHome(row, row, row, row, np.empty((1, 27)), 0.0, False)
        example = start, np.empty((1, 7)), NEAREST, self.positions.unsolved(1)
        return WithScratch(solve_near_home, self.robot.data, self.robot.model, *example)

    def _found_far(self, poses: Array, joints: Array, branch: int) -> tuple[Choice, Solved | None]:
        if self.robot.continues and len(poses):
            return self._carried(poses, joints, branch)
        start = _beginning(joints, len(poses), branch)
        if not len(poses):
            return start, None
        curve = self.curve(joints) if joints.ndim == 1 else None
        if curve is not None:
            return self._on_curve(poses, curve, start, branch), None
        return self._from_home(poses, start, branch)

    def _from_home(self, poses: Array, start: Choice, branch: int) -> tuple[Choice, Solved]:
        """`found` in a configuration-dependent motion space: iterated from home, else tracked from there."""
        led = start._replace(seeds=self._led(poses, start.seeds_for(np.arange(len(poses))), branch))
        solved = self.positions.solve(poses, led)
        lost = np.flatnonzero(~closes(solved.status))
        seeds = solved.q.copy()
        seeds[lost] = start.seeds_for(lost)
        choice = start._replace(seeds=seeds)
        if len(lost):
            self.positions.solve_again(poses, choice, solved, lost)
        return choice, solved

    def _on_curve(self, poses: Array, curve: CouplerCurve, start: Choice, branch: int) -> Choice:
        """`continued` of a mechanism of one degree of freedom: what is on its curve, in the order reached from home."""
        # Cranks pass dead points on the way: closed forms take the nearest branch. Off a closed curve: NOT_CONNECTED.
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
            seeds[lost] = self._from_home(poses[lost], start.rows(lost), branch)[0].seeds
            arrived[lost] = True
        return Choice(NEAREST, seeds, arrived)

    def curve(self, joints: Array) -> CouplerCurve | None:
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
        t = self.robot.tables
        blocks = t.blocks[t.blocks["solver"] == records.NEWTON]
        bodies = np.concatenate([np.arange(b["start"], b["start"] + b["count"]) for b in blocks])
        return np.asarray(bodies[t.bodies["prismatic"][bodies] == 0], dtype=np.int64)

    def _carried(self, poses: Array, start: Array, branch: int) -> tuple[Choice, Solved]:
        """`found` from joints `start` at home on towards poses (n, 7), in a constant motion space."""
        solved, paths, lengths, done, blocked = self._in_whole_steps(poses, start, branch, False)
        arrived, joints = done == 1.0, solved.q
        if np.count_nonzero(solved.status):
            joints = joints.copy()
        if blocked:
            held_up = np.flatnonzero((done >= 0.0) & (done < 1.0))
            begun = start[held_up] if start.ndim > 1 else start[None]
            self._in_shorter_steps(held_up, paths[held_up], lengths[held_up], branch, begun, joints, done)
        choice = Choice(branch, joints, done == 1.0)
        self.positions.complete(poses, choice, solved, arrived)
        return choice, solved

    def _led(self, poses: Array, start: Array, branch: int) -> Array:
        """Joint positions (n, n_joints) to solve from at poses (n, 7), tracked from `start` (n, n_joints) at home."""
        return self._in_whole_steps(poses, start, branch, True)[0].q

    def _in_whole_steps(
        self, poses: Array, start: Array, branch: int, open_on_the_path: bool
    ) -> tuple[Solved, Array, Array, Array, int]:
        n = len(poses)
        solved = self.positions.unsolved(n)
        solved.q[:] = start
        paths, lengths, done = np.empty((n, 6)), np.empty(n), np.empty(n)
        poses, blocked = np.ascontiguousarray(poses), []

        def part(at: slice) -> None:
            rows = solved.rows(at), paths[at], lengths[at], done[at]
            blocked.append(self._carry_on(self.robot.model, self._path, poses[at], branch, open_on_the_path, *rows))

        over_cores(part, n)
        return solved, paths, lengths, done, sum(blocked)

    @cached_property
    def _path(self) -> StraightPath:
        return StraightPath(writeable(self.robot.home), self._iterated_turns, self.robot.size, STEP, JUMP)

    @cached_property
    def _carry_on(self) -> WithScratch:
        rows, numbers = np.empty((1, 7)), np.empty(1)
        example = self._path, rows, NEAREST, False, self.positions.unsolved(1), rows, numbers, numbers
        return WithScratch(carry_on, self.robot.data, self.robot.model, *example)

    @cached_property
    def _stay_on_a_side(self) -> WithScratch:
        rows, kept = np.empty((1, 7)), np.empty(1, dtype=bool)
        example = np.empty(7), rows, rows, rows, rows, NEAREST, self.positions.unsolved(1), kept
        return WithScratch(stay_on_a_side, self.robot.data, self.robot.model, *example)

    def _in_shorter_steps(
        self, going: NDArray[np.int64], paths: Array, lengths: Array, branch: int, start: Array, joints: Array,
        done: Array,
    ) -> None:  # fmt: skip
        """Advance the rows `going` of joints (n, n_joints) and done (n,) by steps as long as they can be."""
        # Beside a singularity of a limb only the shortest step may end beyond it: joints go round it in a longer one.
        columns = self.robot.body_column[self._iterated_turns]
        step = np.full(len(going), STEP * SHORTER)
        while len(going):
            end = np.minimum(done[going] + step / lengths, 1.0)
            poses = self._along(paths, end)
            solved = self.positions.solve(poses, near(joints[going], len(going), branch))
            closed = closes(solved.status)
            with np.errstate(invalid="ignore"):
                turned = np.abs(solved.q[:, columns] - joints[going][:, columns]).max(axis=1, initial=0.0)
            kept = np.empty(len(going), dtype=bool)
            before = joints[going], self._along(paths, done[going])
            self._stay_on_a_side(self.robot.model, self._path.home, start, *before, poses, branch, solved, kept)
            followed = closed & ~(turned > JUMP) & (kept | (step * SHORTER < ROUND))
            joints[going[followed]], done[going[followed]] = solved.q[followed], end[followed]
            step = np.where(followed, np.minimum(step / SHORTER, STEP), step * SHORTER)
            on = (done[going] < 1.0) & (step >= np.where(closed, ROUND, SHORTEST))
            going, paths, lengths, step = going[on], paths[on], lengths[on], step[on]
            start = start[on] if len(start) > 1 else start

    def _along(self, paths: Array, fraction: Array) -> Array:
        Rotation = scipy.spatial.transform.Rotation
        turned = Rotation.from_rotvec(fraction[:, None] * paths[:, 3:]) * Rotation.from_quat(self.robot.home[3:])
        return np.hstack([self.robot.home[:3] + fraction[:, None] * paths[:, :3], turned.as_quat().reshape(-1, 4)])


def _beginning(joints: Array, n: int, branch: int) -> Choice:
    return near(joints, n, branch)._replace(from_home=branch >= 0)


def far_away(poses: Array, home: Array, size: float) -> NDArray[np.bool_]:
    """Which poses (n, 7) are too far from home (7,) for limbs of a robot of `size` [m] to be tracked there."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.abs(poses[:, :3] - home[:3]).max(axis=1) > FAR * size)
