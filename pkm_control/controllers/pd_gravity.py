# SPDX-License-Identifier: Apache-2.0
"""PD control of the actuators with gravity compensation: a simple law that needs little of the model."""

from __future__ import annotations

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, ModeModel, Reference
from pkm_control.operator_interface import DAMPING, NATURAL_FREQUENCY
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import actuator_mass_matrix


class PdGravity(Controller):
    """tau = g(x) + M(x) (omega^2 (q_ref - q) + 2 zeta omega (q'_ref - q')), `M` the mass matrix in the actuators.

    Globally stable at a set point (Takegaki and Arimoto, 1981); on a fast motion it lags, because nothing feeds the
    acceleration forward. omega is `natural_frequency` [rad/s], zeta is `damping`. M is of home with redundant joints.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
    ) -> None:
        super().__init__(dynamics, limits, natural_frequency, damping)
        self.mass = actuator_mass_matrix(dynamics, np.asarray(self.kinematics.home, dtype=np.float64))

    def change_mode(self, to: ModeModel) -> None:
        """Continue in another working mode, whose mass matrix scales the gains."""
        super().change_mode(to)
        self.mass = to.mass

    def planned(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) that carry the weight [N m or N]."""
        return self._without_error(reference, measured)

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) of PD with gravity compensation before limits [N m or N]."""
        at, twist, _ = self.model.at(self.with_redundant(reference.pose), reference, measured.joints)
        wanted = at.motion(twist)
        error = np.asarray(wanted.actuated) - measured.positions
        rate = np.asarray(wanted.actuated_velocities) - measured.velocities
        correction = self.stiffness * error + self.viscosity * rate
        if self.kinematics.redundant_names:
            return self._at_rest(measured, np.zeros(6)) + self.mass @ correction
        # M of home acts up to 33 times as strongly towards a hexapod's singularity of type 2, and throws it
        return self._at_rest(measured, measured.jacobian @ correction)

    def _at_rest(self, measured: Measured, acceleration: Array) -> Array:
        return self.model.efforts(measured.pose, np.zeros(6), acceleration, measured.joints)

    def _mass_at(self, measured: Measured) -> Array:
        if self.kinematics.redundant_names:
            return self.mass
        weight = self._at_rest(measured, np.zeros(6))
        return np.stack([self._at_rest(measured, column) - weight for column in measured.jacobian.T], axis=1)
