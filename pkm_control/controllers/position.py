# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of the reference within actuator limits, for drives that take positions."""

from __future__ import annotations

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.operator_interface import DAMPING, NATURAL_FREQUENCY
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.position_limiter import PositionLimiter


class Position(Controller):
    """Actuator positions at the time T when the command has acted: inverse kinematics of the reference there.

    Where the motion does not know that (in a jog, on a belt), it is q = IK(x) + q' T + q'' T^2 / 2. No masses and no
    gains are needed: the drives close the loops. Velocities and accelerations of the actuators stay within their
    limits. `period` lies between two calls [s], `delay` from a reading to the time when its command begins to act [s].
    """

    commands = "position"

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
        period: float = 1e-3,
        delay: float = 0.0,
    ) -> None:
        super().__init__(dynamics, limits, natural_frequency, damping)
        self.period = period
        self.ahead = period + delay
        self._passed = period
        self._limiter = PositionLimiter(limits)

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Positions (n_actuated,) of the reference at the time when the command has acted, before limits."""
        if reference.update_soon is not None:
            return self.model.positions(reference.update_soon)
        positions, dt = self.model.positions(reference.pose), self.ahead
        if not (reference.twist.any() or reference.acceleration.any()):
            return positions
        at, *rates = self.model.at(self.with_redundant(reference.pose), reference, measured.joints)
        motion = at.motion(*rates)
        ahead = motion.actuated_velocities * dt + 0.5 * motion.actuated_accelerations * dt**2
        return np.asarray(positions + ahead)

    def command(self, reference: Reference, measured: Measured) -> Array:
        """Positions (n_actuated,) to command, within the limits; NaN where the model has no answer."""
        if not self._limiter.started:
            self._limiter.start(measured.positions)
        allowed = self._limiter.follow(self.law(reference, measured), self._passed)
        self.saturated = self._limiter.limited.copy()
        self.saturations += self.saturated
        return allowed

    def advance(self, passed: float) -> None:
        """Count a stall of the loop [s] as time in which the actuators could move."""
        self._passed = max(passed, self.period)

    def forget(self) -> None:
        """Start from the next reading of the actuators."""
        self._limiter.forget()
