# SPDX-License-Identifier: Apache-2.0
"""Energy of the whole robot: kinetic, potential, and what friction takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.body_energy import energy_many
from pkm_kinematics import Status
from pkm_kinematics.kernels.model_and_data import Choice, Model


@dataclass(frozen=True, eq=False)
class Energy:
    """Energies (...,) [J]: NaN where the status is not CONVERGED.

    `kinetic` counts every body and every rotor behind its gear. `potential` is that of the weights, zero with every
    centre of mass at the height of the base's origin. `lost` [W] is the power that friction takes; it is positive or
    zero.
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
    dynamics: Dynamics,
    pose: ArrayLike,
    twist: ArrayLike | None = None,
    payload: Inertial | None = None,
    seed: ArrayLike | None = None,
    mode: int | None = None,
) -> Energy:
    """Energy of the robot and all that it carries.

    Between two instants, the work of the actuators and of external wrenches is the gain of `total` and the integral of
    `lost`.

    Args:
        dynamics: of the robot.
        pose: platform poses (..., 7).
        twist: platform twists (..., 6) [m/s, rad/s] in base axes; at rest where None.
        payload: what the platform carries, in its frame.
        seed: joint positions (n_joints,) or (..., n_joints) that the configuration is nearest to.
        mode: working mode of the configuration.

    Returns:
        Energies (...,), and their status.

    Raises:
        ShapeError: an array has another shape.
        ModeError: the robot has no such mode.
    """
    problem = dynamics.problem(pose, twist, payload=payload, seed=seed, mode=mode)
    out = np.full((len(problem), 3), np.nan)

    def kernel(model: Model, choice: Choice, motions: Array, out: Array, status: NDArray[np.int64]) -> None:
        energy_many(model, dynamics.kinematics.engine.data(), choice, motions, out, status)

    problem.solve_positions(kernel, out)
    problem.refuse_overflow(out)
    kinetic, potential, lost = (problem.shaped(column) for column in out.T)
    return Energy(kinetic, potential, lost, problem.shaped(problem.status))


def power(
    dynamics: Dynamics,
    pose: ArrayLike,
    twist: ArrayLike,
    effort: ArrayLike,
    wrench: ArrayLike | None = None,
    seed: ArrayLike | None = None,
    mode: int | None = None,
) -> Array:
    """Power that actuators and an external wrench bring to the robot.

    Args:
        dynamics: of the robot.
        pose: platform poses (..., 7).
        twist: platform twists (..., 6) [m/s, rad/s] in base axes.
        effort: actuator efforts (..., n_actuated) [N m or N].
        wrench: force and moment (..., 6) on the platform at its origin, in base axes; none where None.
        seed: joint positions (n_joints,) or (..., n_joints) that the configuration is nearest to.
        mode: working mode of the configuration.

    Returns:
        Power (...,) [W], NaN where the pose has no configuration.

    Raises:
        ShapeError: an array has another shape.
        ModeError: the robot has no such mode.
    """
    rates = dynamics.kinematics.motion(pose, twist, seed=seed, mode=mode).actuated_velocities
    brought = np.sum(rates * np.asarray(effort, dtype=np.float64), axis=-1)
    if wrench is not None:
        brought = brought + np.sum(np.asarray(twist, dtype=np.float64) * np.asarray(wrench), axis=-1)
    return np.asarray(brought)
