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
from pkm_dynamics.kernels.over_rows import BY_CODE, seed_joints
from pkm_dynamics.robot_model import Record, RobotModel
from pkm_kinematics import Status
from pkm_kinematics.batch import BATCH, all_finite, over_cores, rows_for, shaped
from pkm_kinematics.configuration import Configuration
from pkm_kinematics.kernels.model_and_data import Choice, Data, Model
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.status import closes, fast_init

POSE, TWIST, ACCELERATION, WRENCH = slice(0, 7), slice(7, 13), slice(13, 19), slice(19, 25)  # of a motion (25,)

Kernel = Callable[..., Any]  # of a model, a choice, motions, more arrays of as many rows, results and the status
Code = Callable[..., Any]  # the same by machine code, whose address stands in the place of model and choice


@fast_init
@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of platform motions for one robot. The solve writes `status`."""

    robot: RobotModel
    at: Configuration
    motions: Array  # (k, 25) pose, twist, acceleration, external wrench, as the kernels take them
    status: NDArray[np.int64]  # (k,)
    choice: Choice  # of what is solved in the kernel, or of configurations that are solved already
    model: Model  # payload and friction included
    plain: bool  # configurations that are not solved yet, and no payload, as in straight-line code

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        at: Configuration,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        payload: Inertial | None = None,
    ) -> Problem:
        """The problem of a call; arguments and errors as in `Dynamics.inverse`.

        The status is INVALID_INPUT for motions that are not finite or not in the motion space, and that of the
        configuration where there is none or its mode is unknown. Kernels solve configurations where home's branches are
        continued in a constant motion space, and nothing has been asked of them.
        """
        engine = robot.kinematics.engine
        refuse_redundant(engine.redundant_names, "this part of the dynamics")
        constant, model = engine.constant_space, robot.model(payload)
        fresh = constant and not (at.is_solved or at.seeded or (engine.gears and at.mode))  # which may tear one
        choice = at.choice if fresh else at.placed
        motions = np.zeros((len(at.poses), 25))
        motions[:, POSE] = at.poses
        for part, values, name in (
            (TWIST, twist, "twist"),
            (ACCELERATION, acceleration, "acceleration"),
            (WRENCH, wrench, "wrench"),
        ):
            if values is not None:
                motions[:, part] = rows_for(values, 6, len(motions), name)
        status = np.empty(len(motions), dtype=np.int64)
        robot.check_motions(motions, status)
        if not fresh:
            found = at.solved().status
            if np.count_nonzero(found):
                np.copyto(status, found, where=(status == Status.CONVERGED) & ~closes(found))
        elif engine.iterated and not choice.certain.all():
            status[~choice.certain & (status == Status.CONVERGED)] = Status.NOT_CONNECTED
        problem = cls(robot, at, motions, status, choice, model, fresh and payload is None)
        if not constant:
            problem._stay_in_space(acceleration is None)
        return problem

    def __len__(self) -> int:
        return len(self.motions)

    # -- motion space -----------------------------------------------------------------------------------------------

    @cached_property
    def _spaces(self) -> tuple[Array, Array]:
        return self.at.spaces(self.motions[:, TWIST])

    @property
    def spaces(self) -> Array:
        """Bases (k, 6, n) of the platform's possible twists, NaN where there are none."""
        return self._spaces[0]

    @property
    def biases(self) -> Array:
        """Accelerations (k, 6) of the platform at a constant velocity in the motion space."""
        return self._spaces[1]

    def _stay_in_space(self, keep_velocity: bool) -> None:
        """Refuse twists outside a configuration-dependent motion space, and take the nearest possible accelerations."""
        spaces, status, of = self.at.engine.spaces, self.status, self.motions
        usable = status == Status.CONVERGED
        status[usable & spaces.outside(of[:, TWIST], self.spaces)] = Status.INVALID_INPUT
        status[(status == Status.CONVERGED) & ~np.isfinite(self.spaces).all(axis=(1, 2))] = Status.SINGULAR
        if keep_velocity:
            self.keep_velocity()
            return
        rows = np.flatnonzero(status == Status.CONVERGED)
        nearest, astray = spaces.nearest_accelerations(of[rows, ACCELERATION], self.spaces[rows], self.biases[rows])
        of[rows, ACCELERATION] = nearest
        status[rows[astray]] = Status.INVALID_INPUT

    def keep_velocity(self) -> None:
        """Set the accelerations to the biases: constant velocity in the motion space."""
        self.motions[:, ACCELERATION] = self.biases

    # -- solving ----------------------------------------------------------------------------------------------------

    def solve(self, kernel: Kernel, out: Array, *given: Array, code: tuple[Code, Record] | None = None) -> None:
        """Solve the rows whose status is CONVERGED; where numbers overflow the status becomes INVALID_INPUT.

        On all cores, but row by row where each has its motion space. `kernel` writes `out` and the status; it gets
        `given` beside the motions, all (k, ...). `code`: a call of straight-line code and its recording.
        """
        arrays = (self.motions, *given, out, self.status)
        constant = self.robot.kinematics.constant_space
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
            self.status[self.status == BY_CODE] = Status.CONVERGED
        self.refuse_overflow(out)

    def solve_positions(self, kernel: Kernel, out: Array, *given: Array) -> None:
        """As `solve`, on all cores, by a kernel that needs no motion space; numbers may overflow."""
        self._solve_at_once(kernel, (self.motions, *given, out, self.status))

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
        data, model = self.at.engine.data(), self.model
        seed_joints(model, data, self.choice, i)
        solve_motion(model, data, self.choice.branch, self.motions[i] if motion is None else motion)
        return data

    def shaped(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows (k, ...) with the leading axes of the call."""
        return shaped(rows, self.at.shape)
