# SPDX-License-Identifier: Apache-2.0
"""The inertia that each actuator feels while the others do not accelerate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics

Array = NDArray[np.float64]


def actuator_inertia(kinematics: Kinematics, dynamics: Dynamics, pose: Array) -> Array:
    """Return the inertia (n_actuated,) felt by each actuator at a pose (7,) [kg m^2 or kg].

    Column i of the actuator-space mass matrix is what inverse dynamics asks for when actuator i alone accelerates, from
    rest, by one unit; this takes the diagonal.
    """
    n = len(kinematics.actuated_names)
    still = np.zeros(6)
    rest = np.asarray(dynamics.inverse(pose, still, still).effort)
    inertia = np.empty(n)
    for i in range(n):
        acceleration = np.asarray(kinematics.platform_twist(pose, np.eye(n)[i]))
        inertia[i] = (np.asarray(dynamics.inverse(pose, still, acceleration).effort) - rest)[i]
    return np.abs(inertia)
