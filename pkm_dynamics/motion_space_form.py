# SPDX-License-Identifier: Apache-2.0
"""The equations of motion in the platform's motion space: mass matrix, Coriolis and centrifugal forces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_dynamics.efforts import efforts_of
from pkm_dynamics.problem import Problem
from pkm_dynamics.robot_model import RobotModel


def mass_matrix(robot: RobotModel, pose: ArrayLike, seed: ArrayLike | None, mode: int | None) -> Array:
    """See `Dynamics.mass_matrix`."""
    k, robot = robot.kinematics, robot.frictionless
    pose = k.engine.one_pose(pose)
    S = k.subspace(pose, seed, mode)
    accelerations = np.vstack([np.zeros(6), S.T])
    poses = np.tile(pose, (len(accelerations), 1))
    efforts = efforts_of(Problem.of(robot, poses, None, accelerations, seed=seed, mode=mode))
    return np.asarray(k.motion_jacobian(pose, seed, mode).T @ (efforts[1:] - efforts[0]).T)


def coriolis(robot: RobotModel, pose: ArrayLike, twist: ArrayLike, seed: ArrayLike | None, mode: int | None) -> Array:
    """See `Dynamics.coriolis`."""
    k, robot = robot.kinematics, robot.frictionless
    pose = k.engine.one_pose(pose)
    moving = Problem.of(robot, pose, twist, seed=seed, mode=mode)
    moving.keep_velocity()
    still = efforts_of(Problem.of(robot, pose, seed=seed, mode=mode))
    return np.asarray(k.motion_jacobian(pose, seed, mode).T @ (efforts_of(moving)[0] - still[0]))
