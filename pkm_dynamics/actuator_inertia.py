# SPDX-License-Identifier: Apache-2.0
"""The inertia that a robot's actuators feel: moved together, and each alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics

Array = NDArray[np.float64]


def actuator_mass_matrix(kinematics: Kinematics, dynamics: Dynamics, pose: Array, mode: int | None = None) -> Array:
    """Mass matrix (n_actuated, n_actuated) in the actuators [kg m^2, kg m, kg]; NaN at a singular pose (7,).

    Efforts are this times the actuators' accelerations; with redundant drives the smallest efforts. Gains that are
    multiples of it give every direction of the motion the same poles. Those from its diagonal do not: on a
    Gough-Stewart platform the lightest direction answers a hundred times as fast as the actuators' own inertias say.
    `mode` None is home's working mode.
    """
    at = kinematics.at(pose, mode=mode)
    spread = _pseudo_inverse(at.motion_jacobian)
    return np.asarray(spread.T @ dynamics.mass_matrix(at) @ spread)


def free_inertia(kinematics: Kinematics, dynamics: Dynamics, pose: Array) -> Array:
    """Inertia (n_actuated,) [kg m^2 or kg] of each actuator pushed alone, the others free; NaN at a singular pose (7,).

    A force on single actuators, such as a stop at the end of their range, is as stiff as intended when scaled by this;
    n actuators pushed at once answer at most n times as fast.
    """
    at = kinematics.at(pose)
    jacobian, mass = at.motion_jacobian, dynamics.mass_matrix(at)
    if not (np.isfinite(jacobian).all() and np.isfinite(mass).all()):
        return np.full(len(kinematics.actuated_names), np.nan)
    return np.asarray(1.0 / np.sum(jacobian * np.linalg.solve(mass, jacobian.T).T, axis=1))


def _pseudo_inverse(matrix: Array) -> Array:
    """Pseudo-inverse; NaN for a matrix that is not finite."""
    return np.asarray(np.linalg.pinv(matrix)) if np.isfinite(matrix).all() else np.full(matrix.shape[::-1], np.nan)
