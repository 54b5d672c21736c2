# SPDX-License-Identifier: Apache-2.0
"""What a robot's actuators carry: weight and payload, within their bounds, and the inertia that they feel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.dynamics import Pose
from pkm_dynamics.kernels.wrenches import carried_wrenches
from pkm_dynamics.motion_limits import ActuatorLimits


def holding_efforts(
    dynamics: Dynamics,
    limits: ActuatorLimits,
    pose: Array,
    payload: Inertial | None = None,
) -> Array:
    """Efforts (n_actuated,) [N m or N] that carry the weight, cables only pulling; NaN where none in bounds do."""
    still = np.zeros(6)
    shared = pulling(limits) if limits.one_sided else None
    answer = dynamics.inverse(pose, still, still, payload=payload, distribution=shared)
    return np.asarray(answer.effort, dtype=np.float64)


def pulling(limits: ActuatorLimits, reserve: float = 0.0) -> Distribution | None:
    """How planned or checked efforts are distributed: within the bounds, less a fraction `reserve` for control.

    None where actuators push as strongly as they pull: their largest efforts are checked apart.
    """
    return None if limits.effort_range is None else Distribution(bounds=limits.bounds(reserve))


def payload_wrench(payload: Inertial, gravity: Array, pose: Array, twist: Array, acceleration: Array) -> Array:
    """Wrench (n, 6) [N, N m] that a body fixed on the platform does to it, about the platform's origin, base axes.

    As the outer wrench of the robot alone it lets the payload change from one period to the next without another model.
    `payload` is in the platform's frame; gravity (3,), pose (n, 7), twist and acceleration (n, 6) in the base frame.
    """
    body = np.concatenate(((payload.mass,), payload.com, payload.inertia.ravel(), gravity))
    found = np.empty((len(pose), 6))
    carried_wrenches(body, np.concatenate((pose, twist, acceleration), axis=1), np.empty((3, 3)), found)
    return found


@dataclass(frozen=True, eq=False)
class Carried:
    """The platform's payload at each of n samples: `payloads` in its frame (None: nothing), `which` of them (n,)."""

    payloads: tuple[Inertial | None, ...]
    which: NDArray[np.int64]

    @staticmethod
    def always(payload: Inertial | None, n: int) -> Carried:
        """The same payload at n samples."""
        return Carried((payload,), np.zeros(n, dtype=np.int64))

    def __getitem__(self, part: slice | NDArray[np.int64]) -> Carried:
        return Carried(self.payloads, self.which[part])

    def wrench(self, gravity: Array, pose: Array, twist: Array, acceleration: Array) -> Array | None:
        """Wrench (n, 6) of the payloads on the platform, as by `payload_wrench`; None where no sample has any."""
        found: Array | None = None
        for number in np.unique(self.which):
            payload = self.payloads[int(number)]
            if payload is not None:
                found = np.zeros((len(pose), 6)) if found is None else found
                at = self.which == number
                found[at] = payload_wrench(payload, gravity, pose[at], twist[at, :6], acceleration[at, :6])
        return found


def together(one: Inertial | None, other: Inertial | None) -> Inertial | None:
    """Two bodies in one frame, fixed on each other, as one."""
    if one is None or other is None:
        return one or other
    return Inertial.of_ten(one.ten + other.ten)


def actuator_mass_matrix(dynamics: Dynamics, pose: Pose, mode: int | None = None) -> Array:
    """Mass matrices (..., n_actuated, n_actuated) in the actuators [kg m^2, kg m, kg]; NaN where not regular.

    Gains that are multiples of it give every direction of the motion the same poles; those from its diagonal do not.
    """
    at = dynamics.kinematics.at(pose, mode=mode)
    jacobian = at.motion_jacobian
    regular = np.asarray(np.isfinite(jacobian).all(axis=(-2, -1)))[..., None, None]
    spread = np.linalg.pinv(np.where(regular, jacobian, 0.0))
    return np.where(regular, np.swapaxes(spread, -2, -1) @ dynamics.mass_matrix(at) @ spread, np.nan)


def free_inertia(dynamics: Dynamics, pose: Array) -> Array:
    """Inertia (n_actuated,) [kg m^2 or kg] of each actuator pushed alone, the others free; NaN at a singular pose (7,).

    A stop at the end of a range is as stiff as intended when scaled by this; n actuators pushed at once answer at most
    n times as fast.
    """
    at = dynamics.kinematics.at(pose)
    jacobian, mass = at.motion_jacobian, dynamics.mass_matrix(at)
    if not (np.isfinite(jacobian).all() and np.isfinite(mass).all()):
        return np.full(len(dynamics.kinematics.actuated_names), np.nan)
    return np.asarray(1.0 / np.sum(jacobian * np.linalg.solve(mass, jacobian.T).T, axis=1))
