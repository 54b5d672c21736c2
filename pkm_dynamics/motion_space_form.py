# SPDX-License-Identifier: Apache-2.0
"""Mass matrix and Coriolis forces in the platform's motion space; regular at type 2, as the drives have no part."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_dynamics.kernels.over_rows import task_forces_many
from pkm_dynamics.problem import Problem
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics import Configuration
from pkm_kinematics.batch import nans


def mass_matrix(robot: RobotModel, at: Configuration) -> Array:
    """See `Dynamics.mass_matrix`."""
    S = at.subspace
    accelerations = np.vstack([np.zeros(6), S.T])
    every = at.rows(np.zeros(len(accelerations), dtype=np.int64))
    forces = _forces_of(Problem.of(robot.frictionless, every, None, accelerations))
    return np.asarray((forces[1:] - forces[0]).T)


def coriolis(robot: RobotModel, at: Configuration, twist: ArrayLike) -> Array:
    """See `Dynamics.coriolis`."""
    moving = Problem.of(robot.frictionless, at, twist)
    moving.keep_velocity()
    return np.asarray(_forces_of(moving)[0] - _forces_of(Problem.of(robot.frictionless, at))[0])


def _forces_of(problem: Problem) -> Array:
    """Forces (k, mobility) in the motion space that make the motions of a problem; NaN where there are none."""
    forces = nans(len(problem), problem.robot.kinematics.mobility)
    problem.solve(problem.robot.prepared(task_forces_many, problem.motions, forces, problem.status), forces)
    return forces
