# SPDX-License-Identifier: Apache-2.0
"""The inertia of a robot as its actuators feel it: together, and each alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics

Array = NDArray[np.float64]


def actuator_mass_matrix(kinematics: Kinematics, dynamics: Dynamics, pose: Array, mode: int | None = None) -> Array:
    """Mass matrix in the actuators: the efforts that accelerate them are this times their accelerations.

    Gains that are multiples of it give every direction of the motion the same poles. Those from its diagonal do not: on
    a Gough-Stewart platform the lightest direction answers a hundred times as fast as the actuators' own inertias say.

    Args:
        kinematics: of the robot.
        dynamics: of the same.
        pose: of the platform (7,), base frame.
        mode: number of the working mode; what continues home where None.

    Returns:
        (n_actuated, n_actuated) [kg m^2, kg m, kg]; with redundant drives the smallest efforts. NaN at a singular pose.
    """
    spread = _pseudo_inverse(kinematics.motion_jacobian(pose, mode=mode))
    return np.asarray(spread.T @ dynamics.mass_matrix(pose, mode=mode) @ spread)


def free_inertia(kinematics: Kinematics, dynamics: Dynamics, pose: Array) -> Array:
    """Inertia that each actuator feels when it alone is pushed and the others turn freely.

    What acts on single actuators, such as a stop at the end of their range, is as stiff as it is meant to be when
    scaled by this; n actuators pushed at once answer at most n times as fast.

    Args:
        kinematics: of the robot.
        dynamics: of the same.
        pose: of the platform (7,), base frame.

    Returns:
        (n_actuated,) [kg m^2 or kg]; NaN at a singular pose.
    """
    jacobian, mass = kinematics.motion_jacobian(pose), dynamics.mass_matrix(pose)
    if not (np.isfinite(jacobian).all() and np.isfinite(mass).all()):
        return np.full(len(kinematics.actuated_names), np.nan)
    return np.asarray(1.0 / np.sum(jacobian * np.linalg.solve(mass, jacobian.T).T, axis=1))


def _pseudo_inverse(matrix: Array) -> Array:
    """Pseudo-inverse, NaN of a matrix that is not finite."""
    return np.asarray(np.linalg.pinv(matrix)) if np.isfinite(matrix).all() else np.full(matrix.shape[::-1], np.nan)
