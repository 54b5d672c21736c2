# SPDX-License-Identifier: Apache-2.0
"""Positions of all joints at given poses: block after block, then where blocks are singular limb by limb."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.batch import BATCH, nans, over_cores
from pkm_kinematics.kernels.model_and_data import SEEDED, SOLVED, Choice, Data, Model, Solved, near
from pkm_kinematics.kernels.position.closures import block_residual, closed
from pkm_kinematics.kernels.position.solve_poses import keep_seeds, solve_many
from pkm_kinematics.model.blocks import build_undivided
from pkm_kinematics.model.tables import chain_state
from pkm_kinematics.solve.robot_constants import RobotConstants
from pkm_kinematics.status import Status, closes, stays_open
from pkm_runtime.kernels.binding import WithScratch

NO_RATES = np.empty((0, 6))
EXACT = 1e-14  # of the robot's size: limbs that are closed less exactly are closed again as a whole
AS_AT_HOME = 10.0  # times what errors leave open at home, where there are more equations than joints
FOLDED = 0.02  # of the robot's size: limbs that are open by less are tried again as a whole
TORN = 1e-6  # rad, and of the robot's size: a mimic joint farther than this from what its leader says is torn off it


class PositionSolver:
    """Solves rows of poses of one robot. Calls may run in several threads at once."""

    def __init__(self, robot: RobotConstants) -> None:
        self.robot = robot

    def rows_off_closed_form_branches(self, poses: Array, choice: Choice) -> NDArray[np.int64]:
        """Rows whose seeds are configurations on a side that no closed form takes."""
        if choice.branch != SEEDED or not len(poses):
            return np.empty(0, dtype=np.int64)
        solved = self._solve(poses, choice, NO_RATES, NO_RATES, False)
        solved.iterations.fill(-1)
        self._keep(poses, choice, solved)
        return np.flatnonzero(solved.iterations == 0)

    def over_rows(self, poses: Array, choice: Choice, kernel: Callable[[Model, Data, Choice, slice], None]) -> None:
        """Call `kernel` for slices of the poses (n, 7) on all cores."""
        robot = self.robot
        if choice.branch == SEEDED:
            choice = near(self.solve(poses, choice).q, len(poses), SOLVED)
        over_cores(lambda at: kernel(robot.model, robot.data(), choice.rows(at), at), len(poses))

    def _keep(self, poses: Array, choice: Choice, solved: Solved) -> None:
        """Put seeds that close the loops in the place of other solutions: closed forms take home's sides alone."""
        poses, model = np.ascontiguousarray(poses), self.robot.model
        if len(poses) < BATCH:
            self._keep_seeds(model, choice, poses, solved)
            return
        over_cores(lambda at: self._keep_seeds(model, choice.rows(at), poses[at], solved.rows(at)), len(poses))

    @cached_property
    def _keep_seeds(self) -> WithScratch:
        robot = self.robot
        example = robot.any_choice, np.empty((1, 7)), self._unsolved(1, True, True)
        return WithScratch(keep_seeds, robot.data, robot.model, *example)

    def solve(
        self,
        poses: Array,
        choice: Choice,
        twists: Array = NO_RATES,
        accelerations: Array = NO_RATES,
        jacobian: bool = False,
    ) -> Solved:
        """Positions of all joints at poses (n, 7), their rates for twists and accelerations (n, 6), the Jacobian.

        The status is that of the positions, SINGULAR at seeds that a limb could leave on its own. Without twists, rates
        have no columns, and without `jacobian` it has no rows.
        """
        if choice.branch == SEEDED and (jacobian or twists is not NO_RATES):
            return self.more(poses, self.solve(poses, choice), twists, accelerations, jacobian)
        solved = self._solve(poses, choice, twists, accelerations, jacobian)
        if choice.branch == SEEDED:
            self._keep(poses, choice, solved)
        if self.robot.gears:  # seeds, too
            self._keep_ratios(solved)
        return solved

    def solve_again(self, poses: Array, choice: Choice, solved: Solved, at: NDArray[np.int64]) -> None:
        """Solve some rows of `solved`, by number, once more, without rates."""
        if len(at):
            for rows, again in zip(solved, self.solve(poses[at], choice.rows(at)), strict=True):
                rows[at] = again

    def complete(self, poses: Array, choice: Choice, solved: Solved, known: NDArray[np.bool_]) -> None:
        """Make `solved`, where only rows `known` (n,) are, and block after block, what `solve` gives."""
        if self.robot.divided:
            known = known & ~(solved.residual > self.exact)
        if not known.all():
            self.solve_again(poses, choice, solved, np.flatnonzero(~known))
        if self.robot.gears:
            self._keep_ratios(solved)

    def more(self, poses: Array, solved: Solved, twists: Array, accelerations: Array, jacobian: bool) -> Solved:
        """The same solutions with rates or the Jacobian, which are asked for as in `solve`; nothing is solved again."""
        choice = near(solved.q, len(poses), SOLVED)
        found = self.by_blocks(poses, choice, twists, accelerations, jacobian=jacobian)
        return solved._replace(qd=found.qd, qdd=found.qdd, regularity=found.regularity, jacobian=found.jacobian)

    def _solve(self, poses: Array, choice: Choice, twists: Array, accelerations: Array, jacobian: bool) -> Solved:
        solved = self.by_blocks(poses, choice, twists, accelerations, jacobian=jacobian)
        if self.robot.divided and (np.count_nonzero(solved.status) or (solved.residual > self.exact).any()):
            # Where nothing carries limbs from home to the pose, a branch may have been left far from its crossing.
            ajar = np.flatnonzero(
                stays_open(solved.status) & ((solved.residual < FOLDED * self.robot.size) | (not self.robot.continues))
            )
            lost = [k for k in ajar if self._folded(poses[k], choice.rows([k]))]
            blunt = np.flatnonzero(closes(solved.status) & (solved.residual > self.exact))
            if lost or len(blunt):
                starts = np.vstack([choice.seeds_for(lost), solved.q[blunt]])
                lost += list(blunt)
                v, a = (x[lost] if len(x) else x for x in (twists, accelerations))
                at = choice._replace(seeds=self._undivided_joints(poses[lost], starts), certain=choice.certain[lost])
                again = self.by_blocks(poses[lost], at, v, a, jacobian=jacobian)
                found = closes(again.status) & (again.residual < solved.residual[lost])
                for rows, better in zip(solved, again, strict=True):
                    rows[np.array(lost)[found]] = better[found]
        return solved

    @cached_property
    def exact(self) -> float:
        """Gap [m] that no other order of solving closes: rounding, or ten times what errors leave open at home."""
        home = self._undivided_joints(self.robot.home_row, self.robot.home_joints[None])
        left = self.by_blocks(self.robot.home_row, near(home, 1)).residual[0]
        return max(EXACT * self.robot.size, AS_AT_HOME * float(left))

    def _keep_ratios(self, solved: Solved) -> None:
        """Drop configurations that tear a gear: loops imply its ratio near home, not in every working mode."""
        torn = np.zeros(len(solved.status), dtype=bool)
        for follower, leader, multiplier, offset in self.robot.gears:
            unit = 1.0 if self.robot.joint_turning[follower] else self.robot.size
            torn |= np.abs(solved.q[:, follower] - multiplier * solved.q[:, leader] - offset) > TORN * unit
        torn &= closes(solved.status)
        if torn.any():
            solved.status[torn], solved.residual[torn] = Status.UNREACHABLE, np.inf
            for values in (solved.q, solved.qd, solved.qdd, solved.jacobian):
                values[torn] = np.nan

    def _folded(self, pose: Array, choice: Choice) -> bool:
        """True where only blocks with more equations than joints stay open."""
        at, blocks = self.robot.placed(pose, choice.seeds[0], choice.branch), self.robot.tables.blocks
        residuals = [block_residual(self.robot.tables.model.closures, block, at.rows) for block in blocks]
        still_open = np.array([not closed(*pair) for pair in zip(blocks, residuals, strict=True)], dtype=bool)
        return bool(still_open.any()) and not (still_open & (blocks["rows"] <= blocks["count"])).any()

    @cached_property
    def _undivided(self) -> tuple[Model, WithScratch]:
        at_home = dict(zip(self.robot.joint_names, map(float, self.robot.home_joints), strict=True))
        tables = build_undivided(self.robot.mechanism, at_home, *(self.robot.generic or (self.robot.home, at_home)))
        model = self.robot.model.replace(**tables.model.of_graph())
        return model, self._prepared(model, lambda: tables.data(chain_state(self.robot.task)))

    def _undivided_joints(self, poses: Array, seeds: Array) -> Array:
        """Joint positions (n, n_joints) at poses (n, 7) near `seeds` (n, n_joints), limbs solved as a whole."""
        (model, solve), found = self._undivided, self._unsolved(len(poses), False, False)
        solve(model, near(seeds, len(poses)), np.ascontiguousarray(poses), NO_RATES, NO_RATES, found)
        return np.where(closes(found.status)[:, None], found.q, seeds)

    def by_blocks(
        self,
        poses: Array,
        choice: Choice,
        twists: Array = NO_RATES,
        accelerations: Array = NO_RATES,
        jacobian: bool = False,
    ) -> Solved:
        """`solve`, block after block."""
        n = len(poses)
        poses = np.ascontiguousarray(poses)
        moving = twists is not NO_RATES
        solved = self._unsolved(n, moving, jacobian)

        def part(at: slice) -> None:
            rates = (twists[at], accelerations[at]) if moving else (NO_RATES, NO_RATES)
            self._solve_many(self.robot.model, choice.rows(at), poses[at], *rates, solved.rows(at))

        if n < BATCH:
            self._solve_many(self.robot.model, choice, poses, twists, accelerations, solved)
        else:
            over_cores(part, n)
        return solved

    @cached_property
    def _solve_many(self) -> WithScratch:
        return self._prepared(self.robot.model, self.robot.data)

    def _prepared(self, model: Model, data: Callable[[], Data]) -> WithScratch:
        poses, rates, solved = np.empty((1, 7)), np.empty((1, 6)), self._unsolved(1, True, True)
        return WithScratch(solve_many, data, model, self.robot.any_choice, poses, rates, rates, solved)

    def unsolved(self, n: int) -> Solved:
        """Arrays for n solutions without rates."""
        return self._unsolved(n, False, False)

    def _unsolved(self, n: int, moving: bool, jacobian: bool) -> Solved:
        if n == 1 and not (moving or jacobian):
            q, none, status, number, count, no_jacobian = self._one_unsolved
            return Solved(q.copy(), none, none, status.copy(), number.copy(), count.copy(), number.copy(), no_jacobian)
        width, drives = len(self.robot.joint_names), len(self.robot.actuated_names)
        rates = width if moving else 0
        status, iterations = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        jacobians = nans(n, drives, 6) if jacobian else self._one_unsolved[5] if n == 1 else np.empty((n, 0, 6))
        positions, first, second = nans(n, width), nans(n, rates), nans(n, rates)
        return Solved(positions, first, second, status, np.zeros(n), iterations, np.zeros(n), jacobians)

    @cached_property
    def _one_unsolved(self) -> tuple[NDArray[Any], ...]:  # copies are made sooner than arrays
        codes = np.zeros(1, dtype=np.int64)
        return nans(1, len(self.robot.joint_names)), np.empty((1, 0)), codes, np.zeros(1), codes, np.empty((1, 0, 6))
