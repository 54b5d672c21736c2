# SPDX-License-Identifier: Apache-2.0
"""What the force laws share: the task, the platform's degrees of freedom, and position control under a felt wrench."""

from __future__ import annotations

import math

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.controllers.force.compliance import Freedoms, projection
from pkm_control.controllers.force.force_task import ForceTask
from pkm_control.controllers.law_settings import DAMPING, NATURAL_FREQUENCY
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits

CARRIED = 0.25  # of the natural frequency: how quickly what is felt is carried
_LONGEST = 0.01  # s: a stall of the loop counts as no more


class ForceLaw(Controller):
    """Computed torque on the platform, with a force task.

    Args:
        natural_frequency: of the tracking error without contact [rad/s], and the highest of the contact.
        damping: of the same; 1 is critical.
        period: time between two calls [s].
    """

    yields = True

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
        period: float = 1e-3,
        task: ForceTask | None = None,
    ) -> None:
        self.task = task or ForceTask.usual()
        self.length = dynamics.kinematics.characteristic_length
        self.freedoms = Freedoms.of(dynamics)
        self._inside = self.freedoms.inside(self.length)
        self._independent = len(limits.names) == dynamics.kinematics.mobility
        self._turns = not dynamics.kinematics.constant_space
        self._passed = self._period = period
        self._carried = np.zeros(6)
        self._none = np.zeros(6)
        super().__init__(dynamics.kinematics, dynamics, limits, natural_frequency, damping)

    def set_gains(self, natural_frequency: float, damping: float) -> None:
        """Set natural frequency [rad/s] and damping of the error without contact; the contact's follow."""
        super().set_gains(natural_frequency, damping)
        self.natural_frequency, self.damping = natural_frequency, damping
        self.tune()

    def tune(self) -> None:
        """Set the gains of the contact, which follow from those without."""
        return

    def weight_along(self, directions: Array) -> Array:
        """Efforts (k,) [N or N m] that hold the robot's weight at home along unit twists (6, k).

        Each twist is taken together with the parasitic motion that the robot cannot avoid.
        """
        ways = self._inside @ directions
        ways /= np.maximum(np.sum(directions * ways, axis=0), 1e-9)
        still, home = np.zeros(6), self.kinematics.home
        effort = np.asarray(self.dynamics.inverse(home, still, still, distribution=Distribution()).effort)
        return np.asarray(effort @ (self.kinematics.at(home).inverse_jacobian @ ways))

    def advance(self, passed: float) -> None:
        """Take the time [s] that passed since the last command."""
        self._passed = min(max(passed, self._period), _LONGEST)

    def forget(self) -> None:
        """Drop the memory: the platform is held anew, where it was found."""
        self._carried[:] = 0.0

    def possible(self, twist: Array, measured: Measured) -> Array:
        """The possible twist (6,) [m/s, rad/s] nearest to one."""
        inside = projection(measured.jacobian, self.length, self._independent) if self._turns else self._inside
        return np.asarray(inside @ twist)

    def felt_by(self, measured: Measured, reading: Array) -> Measured:
        """Add a reading (6,) of the sensor, whose place the task knows."""
        return self.task.felt(measured, reading)

    def felt(self, measured: Measured) -> Array:
        """The felt wrench (6,) about the platform's origin, base axes [N, N m]; zero without a sensor."""
        return self._none if measured.wrench is None else measured.wrench

    def carry(self, measured: Measured) -> Array:
        """The felt wrench (6,), smoothed, which the position control carries as a weight; overwritten by the next call.

        The sum of a contact and minus its smoothed self is passive for every passive contact, since 1 - 1 / (t s + 1)
        has a positive real part.
        """
        share = 1.0 - math.exp(-CARRIED * self.natural_frequency * self._passed)
        self._carried += share * (self.felt(measured) - self._carried)
        return self._carried

    def towards(self, displacement: Array, reference: Reference, measured: Measured) -> Array:
        """Acceleration (6,) [m/s^2, rad/s^2] along a displacement (6,) that follows the rates of a reference."""
        wanted = self.stiffness * displacement + self.viscosity * (reference.twist - measured.twist)
        return np.asarray(reference.acceleration + self.possible(wanted, measured))

    def efforts(self, acceleration: Array, external: Array, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] of an acceleration (6,) under an external wrench (6,), as `felt` has it."""
        return self.model.efforts(measured.pose, measured.twist, acceleration, measured.joints, external)
