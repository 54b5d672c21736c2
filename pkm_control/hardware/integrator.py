# SPDX-License-Identifier: Apache-2.0
"""What integrates the motion of a robot under the efforts of its actuators."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.compiled_integrator import CompiledIntegrator
from pkm_control.hardware.general_integrator import GeneralIntegrator
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics

Array = NDArray[np.float64]


class Integrator(Protocol):
    """Pose (7,) and twist (6,) of the platform, and what the actuators read there (n_actuated,).

    Calls answer with an empty text, or with the reason why they left everything as it was.
    """

    pose: Array
    twist: Array
    positions: Array
    velocities: Array

    def place(self, pose: Array) -> str:
        """Put the robot at rest at a pose (7,), in its home working mode."""
        ...

    def advance(self, efforts: Array, h: float) -> str:
        """Let `h` seconds pass under constant efforts (n_actuated,)."""
        ...


def make_integrator(dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None) -> Integrator:
    """Return the fastest integrator that knows the robot's motion space."""
    if dynamics.kinematics.constant_space:
        return CompiledIntegrator(dynamics, runge_kutta, payload)
    return GeneralIntegrator(dynamics, runge_kutta, payload)
