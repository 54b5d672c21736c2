# SPDX-License-Identifier: Apache-2.0
"""Integration of a robot's motion under the efforts of its actuators."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.contact.surroundings import NOTHING, Touch
from pkm_control.hardware.simulated.actuator_integrator import ActuatorIntegrator
from pkm_control.hardware.simulated.compiled_integrator import CompiledIntegrator
from pkm_control.hardware.simulated.general_integrator import GeneralIntegrator
from pkm_control.hardware.simulated.passing_integrator import PassingIntegrator
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics

Array = NDArray[np.float64]


class Integrator(Protocol):
    """Pose (7,) and twist (6,) of the platform, and the actuators' positions and velocities there (n_actuated,).

    `wrench` (6,) is what touched solids exert on the platform, about its origin, base axes [N, N m]. Constructors take
    `runge_kutta` (classical Runge-Kutta, else semi-implicit Euler), a payload in the platform's frame, and solids.
    Calls return an empty text, or the reason why they left everything as it was.
    """

    pose: Array
    twist: Array
    positions: Array
    velocities: Array
    wrench: Array

    @property
    def mode(self) -> int:
        """Number of the working mode, as far as closed forms tell it."""
        ...

    @property
    def passing(self) -> ActuatorDynamics | None:
        """The dynamics in the actuators, where the platform does not determine the joints; None elsewhere."""
        ...

    def place(self, pose: Array) -> str:
        """Place the robot at rest at a pose (7,), base frame, in its home working mode; empty, or why that fails."""
        ...

    def carry(self, payload: Inertial | None) -> None:
        """Change the payload (platform's frame) from now on; it takes on the platform's motion."""
        ...

    def advance(self, efforts: Array, h: float) -> str:
        """Advance by h [s] under constant efforts (n_actuated,) [N m or N]; empty, or why no motion goes on."""
        ...


def make_integrator(
    dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING
) -> Integrator:
    """The fastest integrator for the robot's motion space; arguments as in `Integrator`.

    A compiled one; where limbs have several branches, one that passes from one to the other. The general one for
    redundant actuators in a configuration-dependent motion space.
    """
    if dynamics.kinematics.constant_space and PassingIntegrator.serves(dynamics.kinematics):
        return PassingIntegrator(dynamics, runge_kutta, payload, touch)
    if dynamics.kinematics.constant_space:
        return CompiledIntegrator(dynamics, runge_kutta, payload, touch)
    if ActuatorIntegrator.serves(dynamics.kinematics):
        return ActuatorIntegrator(dynamics, runge_kutta, payload, touch)
    return GeneralIntegrator(dynamics, runge_kutta, payload, touch)
