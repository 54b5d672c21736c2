# SPDX-License-Identifier: Apache-2.0
"""Energy of the whole robot: kinetic, potential, and the power lost in friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.over_rows import energy_many
from pkm_kinematics import Configuration, Status
from pkm_kinematics.batch import nans


@dataclass(frozen=True, eq=False)
class Energy:
    """Energies (...,) [J]: NaN where the status is not CONVERGED.

    `kinetic` counts every body and every rotor behind its gear. `potential` is zero with every centre of mass at the
    height of the base's origin and every spring at its rest length. `lost` [W] is the power lost in friction, >= 0.
    """

    kinetic: Array
    potential: Array
    lost: Array
    status: NDArray[np.int64]

    @property
    def total(self) -> Array:
        """Kinetic and potential energy [J]."""
        return self.kinetic + self.potential

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Where the solve converged."""
        return self.status == Status.CONVERGED


def energy(
    dynamics: Dynamics, pose: ArrayLike | Configuration, twist: ArrayLike | None = None, payload: Inertial | None = None
) -> Energy:
    """Energy of the robot and all that it carries, arguments and errors as in `Dynamics.inverse`.

    Between two instants, the work of actuators and external wrenches is the gain of `total` and the integral of `lost`.
    """
    problem = dynamics.problem(pose, twist, payload=payload)
    out = nans(len(problem), 3)
    problem.solve_positions(problem.robot.prepared(energy_many, problem.motions, out, problem.status), out)
    problem.refuse_overflow(out)
    kinetic, potential, lost = (problem.shaped(column) for column in out.T)
    return Energy(kinetic, potential, lost, problem.shaped(problem.status))


def power(
    dynamics: Dynamics,
    pose: ArrayLike | Configuration,
    twist: ArrayLike,
    effort: ArrayLike,
    wrench: ArrayLike | None = None,
) -> Array:
    """Power (...,) [W] of efforts (..., n_actuated) and an external wrench, arguments as in `Dynamics.inverse`."""
    rates = dynamics.kinematics.at(pose).motion(twist).actuated_velocities
    brought = np.sum(rates * np.asarray(effort, dtype=np.float64), axis=-1)
    if wrench is not None:
        brought = brought + np.sum(np.asarray(twist, dtype=np.float64) * np.asarray(wrench), axis=-1)
    return np.asarray(brought)
