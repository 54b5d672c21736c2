# SPDX-License-Identifier: Apache-2.0
"""Mass matrix and Coriolis forces in the platform's motion space; regular at type 2, as the drives have no part."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_dynamics.kernels.over_rows import task_forces_many
from pkm_dynamics.problem import Problem
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics.batch import nans


def mass_matrix(robot: RobotModel, pose: ArrayLike, seed: ArrayLike | None, mode: int | None) -> Array:
    """See `Dynamics.mass_matrix`."""
    k, robot = robot.kinematics, robot.frictionless
    pose = k.engine.inputs.one_pose(pose)
    S = k.subspace(pose, seed, mode)
    accelerations = np.vstack([np.zeros(6), S.T])
    poses = np.tile(pose, (len(accelerations), 1))
    forces = _forces_of(Problem.of(robot, poses, None, accelerations, seed=seed, mode=mode))
    return np.asarray((forces[1:] - forces[0]).T)


def coriolis(robot: RobotModel, pose: ArrayLike, twist: ArrayLike, seed: ArrayLike | None, mode: int | None) -> Array:
    """See `Dynamics.coriolis`."""
    k, robot = robot.kinematics, robot.frictionless
    pose = k.engine.inputs.one_pose(pose)
    moving = Problem.of(robot, pose, twist, seed=seed, mode=mode)
    moving.keep_velocity()
    still = _forces_of(Problem.of(robot, pose, seed=seed, mode=mode))
    return np.asarray(_forces_of(moving)[0] - still[0])


def _forces_of(problem: Problem) -> Array:
    """Forces (k, mobility) in the motion space that make the motions of a problem; NaN where there are none."""
    forces = nans(len(problem), problem.robot.kinematics.mobility)
    problem.solve(problem.robot.prepared(task_forces_many, problem.motions, forces, problem.status), forces)
    return forces
