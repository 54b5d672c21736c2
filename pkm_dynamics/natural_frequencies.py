# SPDX-License-Identifier: Apache-2.0
"""Natural frequencies of a robot held by its servos, linearised at a pose.

    det(omega^2 1 - M^-1 K_a^T K K_a) = 0

M is the mass matrix of the whole robot in its motion space, K_a the inverse Jacobian there, K the stiffness of the
actuators: Kozak, Ebert-Uphoff, Voglewede and Singhose, "Concept paper: on the significance of the lowest linearized
natural frequency", 2002. The lowest is zero at a type 2 singularity, and low where the legs' bodies are hard to move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.dynamics import Dynamics
from pkm_kinematics import Configuration, Status
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_runtime.describable import Describable, vector
from pkm_runtime.errors import PkmError


class StiffnessError(PkmError):
    """An invalid stiffness, or a pose where the robot has no configuration."""


@dataclass(frozen=True, eq=False, repr=False)
class Vibration(Describable):
    """Natural vibrations at a pose, the lowest first.

    `frequency` (n,) is angular [rad/s]. `shape` (6, n): platform twists, linear [m] and angular [rad] at its origin, of
    kinetic energy one half per unit of their rate: `shape^T M shape = 1`.
    """

    frequency: Array
    shape: Array

    def _summary(self) -> str:
        return f"{vector(np.asarray(self.frequency) / (2.0 * np.pi))} Hz"


def natural_frequencies(
    dynamics: Dynamics, pose: ArrayLike | Configuration, stiffness: ArrayLike, payload: Inertial | None = None
) -> Vibration:
    """Natural vibrations, the lowest first, of a robot whose actuators hold it like springs at one pose.

    Stiffness of the actuators (n_actuated,), or one for all [N m/rad or N/m], is that of the position loop seen at the
    joint, one over the compliance of drive and controller; for a computed torque law of stiffness k [1/s^2] every
    frequency is sqrt(k). All bodies and rotors count; friction, damping, and the stiffness due to gravity and its
    balancing efforts (m g / l of a pendulum) do not. In a robot with springs, these, gravity and the efforts that hold
    it count all together, because together they may be in balance; it then is zero too where the robot would tip over.
    Links and joints are rigid. Valid at type 2 singularities too, without springs.
    StiffnessError: a stiffness is negative or not finite, or the pose has no regular configuration.
    """
    kinematics = dynamics.kinematics
    refuse_redundant(kinematics.redundant_names, "natural frequencies")
    k = np.broadcast_to(np.asarray(stiffness, dtype=np.float64), (len(kinematics.actuated_names),))
    if not (np.isfinite(k).all() and (k >= 0.0).all()):
        raise StiffnessError(f"stiffness: expected finite numbers that are not negative, got {k.tolist()}")
    at = kinematics.at_one(pose)
    S, K = at.subspace, at.motion_jacobian
    n = S.shape[1]
    # accelerations at rest per unit of wrench: the inverse of the mass matrix, regular where the actuators lose hold
    dual = np.vstack([np.zeros(6), np.linalg.pinv(S)])
    still = np.zeros_like(dual)
    each = at.rows(np.zeros(n + 1, dtype=np.int64))
    answer = dynamics.direct(each, still, np.zeros(len(k)), dual, payload)
    if not (answer.ok.all() and np.isfinite(K).all()):
        status = Status(int(answer.status[0]))
        raise StiffnessError(f"{dynamics.mechanism.name}: no vibrations at this pose: {status.meaning}")
    mobility = np.linalg.pinv(S) @ (answer.acceleration[1:] - answer.acceleration[0]).T
    root = np.linalg.cholesky(0.5 * (mobility + mobility.T))  # M^-1 = L L^T
    held = (K.T * k) @ K
    if len(dynamics.robot.springs):  # K^T dtau = d(K^T tau) - dK^T tau: of potential energy and constant efforts
        load = K.T @ dynamics.inverse_derivatives(at, payload=payload).pose
        if not np.isfinite(load).all():
            raise StiffnessError(f"{dynamics.mechanism.name}: a singularity, where its springs' stiffness is unknown")
        held = held + 0.5 * (load + load.T)
    squares, vectors = scipy.linalg.eigh(root.T @ held @ root)
    return Vibration(np.sqrt(np.maximum(squares, 0.0)), np.asarray(S @ root @ vectors))
