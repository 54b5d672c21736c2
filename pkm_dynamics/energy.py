# SPDX-License-Identifier: Apache-2.0
"""Energy of the whole robot: kinetic, potential, and what friction takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.kernels.energy import energy_many
from pkm_kinematics import Status

if TYPE_CHECKING:
    from pkm_dynamics.dynamics import Dynamics


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
) -> Energy:
    """Energy at poses (..., 7) and platform twists (..., 6), at rest without a twist.

    Between two instants, the work of the actuators and of external wrenches is the gain of `total` and the integral of
    `lost`. Raises `pkm_kinematics.ShapeError`.
    """
    motions, shape, status = dynamics._motions(pose, twist, None, None)
    seeds = dynamics._seeds(seed, motions)
    bodies = dynamics._bodies(payload)
    if not dynamics.friction:
        bodies = bodies.copy()
        bodies["viscous"], bodies["coulomb"] = 0.0, 0.0
        bodies.setflags(write=False)
    out = np.full((len(motions), 3), np.nan)

    def part(at: slice) -> None:
        t = dynamics.kinematics.tables
        energy_many(
            bodies, t.closures, t.blocks, *t.workspace(), -1, motions[at], seeds[at] if len(seeds) > 1 else seeds,
            out[at], status[at],
        )  # fmt: skip

    dynamics._run(part, len(motions))
    kinetic, potential, lost = (column.reshape(shape) for column in out.T)
    return Energy(kinetic, potential, lost, status.reshape(shape))


def power(
    dynamics: Dynamics,
    pose: ArrayLike,
    twist: ArrayLike,
    effort: ArrayLike,
    wrench: ArrayLike | None = None,
    seed: ArrayLike | None = None,
) -> Array:
    """Power (...,) [W] that actuator efforts (..., n_actuated) and an external wrench (..., 6) bring to the robot."""
    rates = dynamics.kinematics.motion(pose, twist, seed=seed).actuated_velocities
    brought = np.sum(rates * np.asarray(effort, dtype=np.float64), axis=-1)
    if wrench is not None:
        brought = brought + np.sum(np.asarray(twist, dtype=np.float64) * np.asarray(wrench), axis=-1)
    return np.asarray(brought)
