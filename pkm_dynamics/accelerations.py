# SPDX-License-Identifier: Apache-2.0
"""Direct dynamics: platform accelerations for actuator efforts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.kernels.over_rows import direct_dynamics_many
from pkm_dynamics.problem import Problem
from pkm_dynamics.straight_code import record_direct, straight_direct_many
from pkm_kinematics import Configuration, Status
from pkm_kinematics.batch import as_rows, nans
from pkm_kinematics.kernels.model_and_data import writeable
from pkm_kinematics.status import Solution, fast_init
from pkm_runtime.describable import vector


@fast_init
@dataclass(frozen=True, eq=False, repr=False)
class Accelerations(Solution):
    """Answer of the direct dynamics: NaN where the status is not CONVERGED."""

    acceleration: Array  # (..., 6) linear m/s^2, angular rad/s^2
    status: NDArray[np.int64]  # (...,)
    _at: Configuration

    @cached_property
    def condition(self) -> Array:
        """Reciprocal condition (...,) of the worst limb's equations, computed when read; 0 without a configuration."""
        return np.where(self.ok, self._at.condition, 0.0)

    def _values(self) -> list[str]:
        linear, angular = vector(self.acceleration[:3]), vector(self.acceleration[3:])
        return [f"linear {linear} m/s^2, angular {angular} rad/s^2"] if self.ok else []


def direct(problem: Problem, effort: ArrayLike) -> Accelerations:
    """See `Dynamics.direct`; replaces the accelerations of the problem."""
    problem.keep_velocity()
    motions, status = problem.motions, problem.status
    efforts, _ = as_rows(effort, problem.robot.n_actuated, "effort")
    efforts = writeable(np.broadcast_to(efforts, (len(problem), efforts.shape[1])))
    status[~np.isfinite(efforts).all(axis=1)] = Status.INVALID_INPUT
    out = nans(len(problem), 6)
    kernel = problem.robot.prepared(direct_dynamics_many, motions, np.empty((1, efforts.shape[1])), out, status)
    problem.solve(kernel, out, efforts, code=(straight_direct_many, record_direct))
    return Accelerations(problem.shaped(out), problem.shaped(problem.status), problem.at)
