# SPDX-License-Identifier: Apache-2.0
"""A problem of the dynamics, one per call of `Dynamics`: checked rows of motions, the robot, and their solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.codegen.step_code import SOLVED
from pkm_dynamics.kernels.over_rows import seed_joints
from pkm_dynamics.robot_model import Record, RobotModel
from pkm_kinematics import Status
from pkm_kinematics.batch import BATCH, all_finite, over_cores, rows_for, shaped
from pkm_kinematics.kernels.model_and_data import SEEDED, Choice, Data, Model
from pkm_kinematics.kernels.rates.solve_motion import solve_motion
from pkm_kinematics.solutions import quickly_made
from pkm_kinematics.status import closes

POSE, TWIST, ACCELERATION, WRENCH = slice(0, 7), slice(7, 13), slice(13, 19), slice(19, 25)  # of a motion (25,)

Kernel = Callable[..., Any]  # of a model, a choice, motions, more arrays of as many rows, results and the status
Code = Callable[..., Any]  # the same by machine code, whose address stands in the place of model and choice


@quickly_made
@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of platform motions for one robot. The solve writes `status`."""

    robot: RobotModel
    motions: Array  # (k, 25) pose, twist, acceleration, external wrench, as the kernels take them
    shape: tuple[int, ...]  # leading axes of the call
    status: NDArray[np.int64]  # (k,)
    choice: Choice
    model: Model  # payload and friction included
    plain: bool  # no seed and no payload, as in straight-line code

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        payload: Inertial | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
    ) -> Problem:
        """The problem of a call; arguments and errors as in `Dynamics.inverse`.

        The status is INVALID_INPUT for motions that are not finite or not in the motion space, and NOT_CONNECTED where
        it is unknown whether a configuration is of the mode.
        """
        k = robot.kinematics
        model = robot.model(payload)
        poses, shape = k.engine.inputs.poses(pose)
        motions = np.zeros((len(poses), 25))
        motions[:, POSE] = poses
        for part, values, name in (
            (TWIST, twist, "twist"),
            (ACCELERATION, acceleration, "acceleration"),
            (WRENCH, wrench, "wrench"),
        ):
            if values is not None:
                motions[:, part] = rows_for(values, 6, len(poses), name)
        status = np.empty(len(poses), dtype=np.int64)
        engine, constant = k.engine, k.engine.constant_space
        robot.check_motions(motions, engine.spaces.rate_scale, engine.spaces.onto_space, status)
        choice = k.modes.choose(motions[:, POSE], seed, mode)
        if not constant:
            rows = np.flatnonzero(status == Status.CONVERGED)
            motions[rows, POSE] = k.engine.spaces.into_space(motions[rows, POSE], choice.rows(rows))
            astray = k.engine.spaces.outside(motions[rows, POSE], motions[rows, TWIST], choice.rows(rows))
            status[rows[astray]] = Status.INVALID_INPUT
        if engine.iterated and not choice.certain.all():
            status[~choice.certain & (status == Status.CONVERGED)] = Status.NOT_CONNECTED
        plain = seed is None and payload is None
        problem = cls(robot, motions, shape, status, choice, model, plain)
        if not constant and acceleration is None:
            problem.keep_velocity()
        elif not constant:
            problem._take_nearest()
        return problem

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.motions)

    # -- motion space -----------------------------------------------------------------------------------------------

    @cached_property
    def _spaces(self) -> tuple[Array, Array]:
        """Motion spaces (k, 6, n) and biases (k, 6); the status says why where there are none."""
        engine, motions, status = self.robot.kinematics.engine, self.motions, self.status
        spaces, biases = engine.spaces.at(motions[:, POSE], self.choice, motions[:, TWIST])
        if not engine.constant_space:
            for i in np.flatnonzero(~np.isfinite(spaces).all(axis=(1, 2)) & (status == Status.CONVERGED)):
                solved = engine.positions.solve(motions[i : i + 1, POSE], self.choice.rows([i]))
                status[i] = Status.SINGULAR if closes(solved.status[0]) else solved.status[0]
        return spaces, biases

    @property
    def spaces(self) -> Array:
        """Bases (k, 6, n) of the platform's possible twists, NaN where there are none."""
        return self._spaces[0]

    @property
    def biases(self) -> Array:
        """Accelerations (k, 6) of the platform at a constant velocity in the motion space."""
        return self._spaces[1]

    def _take_nearest(self) -> None:
        """Replace accelerations by the nearest possible ones; refuse those far from any."""
        rows = np.flatnonzero(self.status == Status.CONVERGED)
        spaces, biases = (part[rows] for part in self._spaces)
        engine, asked_for = self.robot.kinematics.engine, self.motions[rows, ACCELERATION]
        nearest, astray = engine.spaces.nearest_accelerations(asked_for, spaces, biases)
        self.motions[rows, ACCELERATION] = nearest
        self.status[rows[astray]] = Status.INVALID_INPUT

    def keep_velocity(self) -> None:
        """Set the accelerations to the biases: constant velocity in the motion space."""
        self.motions[:, ACCELERATION] = self.biases

    def motion_jacobians(self) -> Array:
        """Actuated joint rates per velocity of unit speed in the motion space (k, n_actuated, n)."""
        return self.robot.kinematics.engine.jacobians.uniform(self.motions[:, POSE], self.choice)

    # -- solving ----------------------------------------------------------------------------------------------------

    def solve(self, kernel: Kernel, out: Array, *given: Array, code: tuple[Code, Record] | None = None) -> None:
        """Solve the rows whose status is CONVERGED; where numbers overflow the status becomes INVALID_INPUT.

        On all cores where the motion space is constant, else row by row with the space of the row. `kernel` writes
        `out` and the status; it gets `given` beside the motions, all (k, ...). `code`: a call of straight-line code and
        its recording.
        """
        arrays = (self.motions, *given, out, self.status)
        constant = self.robot.kinematics.constant_space
        if not constant:
            _ = self.spaces  # rows without one have their status before any is solved
        made = self.robot.code(code[1], self.choice.branch, len(self)) if code is not None and self.plain else None
        if code is not None and made is not None:
            call, address = code[0], made.address
            over_cores(lambda at: call(address, *(array[at] for array in arrays)), len(self))
        if not constant:
            for i in np.flatnonzero(self.status == Status.CONVERGED):
                at = slice(int(i), int(i) + 1)
                here = self.model.replace(subspace=self.spaces[i])
                kernel(here, self.choice.rows(at), *(array[at] for array in arrays))
        elif made is None or (self.status == Status.CONVERGED).any():
            self._solve_at_once(kernel, arrays)
        if made is not None:
            self.status[self.status == SOLVED] = Status.CONVERGED
        self._solve_where_seeds_are(kernel, arrays)
        self.refuse_overflow(out)

    def _solve_where_seeds_are(self, kernel: Kernel, arrays: tuple[NDArray[Any], ...]) -> None:
        """Solve rows outside the closed forms' branches, where seeds are configurations: see `PositionSolver.solve`."""
        if self.choice.branch != SEEDED:
            return
        constant = self.robot.kinematics.constant_space
        for i in self._beside:
            if self.status[i] == Status.INVALID_INPUT:
                continue
            at = slice(i, i + 1)
            self.status[i] = Status.CONVERGED
            model = self.model_at(i) if constant else self.model_at(i).replace(subspace=self.spaces[i])
            kernel(model, self.choice.rows(at), *(array[at] for array in arrays))

    @cached_property
    def _beside(self) -> list[int]:
        """Rows on branches that no closed form covers."""
        engine = self.robot.kinematics.engine
        rows: list[int] = engine.positions.beside_closed_forms(self.motions[:, POSE], self.choice).tolist()
        return rows

    def model_at(self, i: int) -> Model:
        """Model for the configuration of row `i`: the robot's own, or one that iterates all limbs from the seed."""
        return self.robot.kinematics.engine.iterating(self.model) if i in self._beside else self.model

    def solve_positions(self, kernel: Kernel, out: Array, *given: Array) -> None:
        """As `solve`, on all cores, by a kernel that needs no motion space; numbers may overflow."""
        arrays = (self.motions, *given, out, self.status)
        self._solve_at_once(kernel, arrays)
        self._solve_where_seeds_are(kernel, arrays)

    def _solve_at_once(self, kernel: Kernel, arrays: tuple[NDArray[Any], ...]) -> None:
        if len(self.motions) < BATCH:
            kernel(self.model, self.choice, *arrays)
        else:
            over_cores(lambda at: kernel(self.model, self.choice.rows(at), *(array[at] for array in arrays)), len(self))

    def refuse_overflow(self, out: Array) -> None:
        """Give rows (k, ...) that overflowed the status INVALID_INPUT, and NaN in `out`."""
        if all_finite(out):
            return
        lost = (self.status == Status.CONVERGED) & ~np.isfinite(out).all(axis=tuple(range(1, out.ndim)))
        if lost.any():
            out[lost], self.status[lost] = np.nan, Status.INVALID_INPUT

    def moved(self, i: int, motion: Array | None = None) -> Data:
        """Data with all bodies moving as in row `i`, or by another motion (25,) from there, blocks inverted."""
        data, model = self.robot.kinematics.engine.data(), self.model_at(i)
        seed_joints(model, data, self.choice, i)
        solve_motion(model, data, self.choice.branch, self.motions[i] if motion is None else motion)
        return data

    def shaped(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows (k, ...) with the leading axes of the call."""
        return shaped(rows, self.shape)
