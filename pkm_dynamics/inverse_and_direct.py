# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics: actuator efforts for platform motions; direct dynamics: accelerations for efforts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.distribution import Distribution, distribute, meant
from pkm_dynamics.kernels.over_rows import (
    direct_dynamics_many,
    inverse_dynamics_many,
    straight_direct_many,
    straight_inverse_many,
    task_forces_many,
)
from pkm_dynamics.lean_calls import record_direct, record_inverse
from pkm_dynamics.problem import Problem
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics import Configuration, Status
from pkm_kinematics.batch import as_rows, nans, shaped
from pkm_kinematics.kernels.model_and_data import writeable
from pkm_kinematics.status import JointNames, NamedSolution, Solution, fast_init
from pkm_runtime.describable import vector


@fast_init
@dataclass(frozen=True, eq=False, repr=False)
class Efforts(NamedSolution):
    """Answer of the inverse dynamics: NaN where the status is not CONVERGED.

    `condition` is reciprocal, of the drives' Jacobian: 1 where each drive pushes in a direction of its own, 0 at a type
    2 singularity or without a configuration.
    """

    _of_all: ClassVar[tuple[str, ...]] = ()
    _of_actuated: ClassVar[tuple[str, ...]] = ("effort",)

    effort: Array  # (..., n_actuated) N m or N
    status: NDArray[np.int64]  # (...,)
    condition: Array  # (...,) 1
    _names: JointNames

    def _unit(self, name: str) -> str:
        return "N" if super()._unit(name) == "m" else "N m"


def inverse(problem: Problem, distribution: Distribution | None = None) -> Efforts:
    """See `Dynamics.inverse`."""
    efforts, condition = efforts_of(problem, meant(distribution, problem.robot.kinematics.mechanism))
    shaped, names = problem.shaped, problem.robot.kinematics.engine.names
    return Efforts(shaped(efforts), shaped(problem.status), shaped(condition), names)


def efforts_of(problem: Problem, distribution: Distribution | None = None) -> tuple[Array, Array]:
    """Efforts (k, n_actuated) and reciprocal conditions (k,) of a problem's rows; writes their status."""
    motions, status = problem.motions, problem.status
    efforts = nans(len(problem), problem.robot.n_actuated)
    condition = np.zeros(len(problem))
    kernel = problem.robot.prepared(inverse_dynamics_many, motions, condition, efforts, status)
    problem.solve(kernel, efforts, condition, code=(straight_inverse_many, record_inverse))
    if distribution is not None:
        kinematics = problem.robot.kinematics
        names, limits = kinematics.actuated_names, kinematics.mechanism.effort_range
        distribute(distribution, names, limits, problem.at.uniform_jacobian, efforts, status)
    return efforts, condition


def spring_efforts(problem: Problem) -> Array:
    """See `Dynamics.spring_efforts`."""
    springs = problem.robot.springs
    shape = (len(problem), problem.robot.n_actuated)
    if not len(springs):
        return np.asarray(problem.shaped(np.zeros(shape)))
    without = Problem.of(problem.robot.with_springs(springs[:0]), problem.at)
    return np.asarray(problem.shaped(efforts_of(problem)[0] - efforts_of(without)[0]))


# In the motion space: regular at type 2 singularities, as the drives have no part.


def mass_matrix(robot: RobotModel, at: Configuration) -> Array:
    """See `Dynamics.mass_matrix`."""
    n, S = len(at.poses), at.subspace
    units = np.zeros((n, 1 + S.shape[-1], 6))
    units[:, 1:] = np.swapaxes(S.reshape(n, 6, -1), 1, 2)
    every = at.rows(np.repeat(np.arange(n), units.shape[1]))
    forces = _forces_of(Problem.of(robot.frictionless, every, None, units.reshape(-1, 6))).reshape(*units.shape[:2], -1)
    return shaped(np.swapaxes(forces[:, 1:] - forces[:, :1], 1, 2), at.shape)


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
