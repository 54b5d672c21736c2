# SPDX-License-Identifier: Apache-2.0
"""What integrates the motion of a robot under the efforts of its actuators."""

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
    """Pose (7,) and twist (6,) of the platform, and what the actuators read there (n_actuated,).

    `wrench` (6,) is what touched solids exert on the platform, about its origin, base axes [N, N m].

    Calls answer with an empty text, or with the reason why they left everything as it was.
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
        """What moves the robot where the platform does not tell its joints; None elsewhere."""
        ...

    def place(self, pose: Array) -> str:
        """Put the robot at rest at a pose, in its home working mode.

        Args:
            pose: of the platform (7,), base frame.

        Returns:
            Why it cannot be there; empty where it is.
        """
        ...

    def carry(self, payload: Inertial | None) -> None:
        """The platform carries something else from now on, and moves on as it does.

        Args:
            payload: in the platform's frame; nothing where None.
        """
        ...

    def advance(self, efforts: Array, h: float) -> str:
        """Let time pass under constant efforts.

        Args:
            efforts: of the actuators (n_actuated,) [N m or N].
            h: length of the step [s].

        Returns:
            Why no motion goes on, everything being left as it was; empty where it does.
        """
        ...


def make_integrator(
    dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING
) -> Integrator:
    """The fastest integrator that knows the robot's motion space.

    Args:
        dynamics: of the robot.
        runge_kutta: classical Runge-Kutta, else semi-implicit Euler.
        payload: what the platform carries, in its frame.
        touch: solids in its way.

    Returns:
        A compiled one; where limbs have several branches, one that passes from one to the other. The general one for
        redundant actuators in a motion space that turns with the pose.
    """
    if dynamics.kinematics.constant_space and PassingIntegrator.serves(dynamics.kinematics):
        return PassingIntegrator(dynamics, runge_kutta, payload, touch)
    if dynamics.kinematics.constant_space:
        return CompiledIntegrator(dynamics, runge_kutta, payload, touch)
    if ActuatorIntegrator.serves(dynamics.kinematics):
        return ActuatorIntegrator(dynamics, runge_kutta, payload, touch)
    return GeneralIntegrator(dynamics, runge_kutta, payload, touch)
