# SPDX-License-Identifier: Apache-2.0
"""Admittance: the reference gives way to the wrench that a sensor feels, and position control follows it."""

from __future__ import annotations

import numpy as np

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.controllers.force.force_law import ForceLaw
from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between

CROSSING = 1.0 / 6.0  # of the natural frequency: where the loop over the stiffest contact crosses one


class Admittance(ForceLaw):
    """M d'' + D d' + K d = w, the reference displaced by d; computed torque follows it, and carries w smoothed.

    K is the task's stiffness. D is at least what lets the loop over the stiffest contact cross one at a sixth of the
    natural frequency, D = k_c / w_x, and M = D / w_n puts the last lag at the natural frequency: with the position
    control's own lag a phase margin of about sixty degrees is left.
    """

    uses_wrench = True

    def tune(self) -> None:
        """Set the gains from the task's stiffness and contact."""
        self.spring = self.task.stiffness_matrix(self.length)
        contact = self.task.contact_stiffness * np.array([1.0] * 3 + [self.length**2] * 3)
        across = contact / (CROSSING * self.natural_frequency)
        critical = 4.0 * self.damping**2 * np.diag(self.spring) / self.natural_frequency
        self.damper = np.maximum(across, critical)
        self.inertia = self.damper / self.natural_frequency
        if not hasattr(self, "_aside"):
            self._aside, self._rate, self._change = np.zeros(6), np.zeros(6), np.zeros(6)
            self._feeling = True

    def engage(self, feeling: bool) -> None:
        """Freeze the displacement while the sensor delivers nothing."""
        self._feeling = feeling

    def forget(self) -> None:
        """Reset the displacement: the platform is held where it was found."""
        super().forget()
        self._aside[:] = self._rate[:] = self._change[:] = 0.0

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] that follow the displaced reference, before limits."""
        self._give_way(measured)
        pose = displace(reference.pose, self._aside)
        moving = Reference(pose, reference.twist + self._rate, reference.acceleration + self._change)
        acceleration = self.towards(displacement_between(measured.pose, pose), moving, measured)
        return self.efforts(acceleration, self.carry(measured) if self._feeling else self._carried, measured)

    def _give_way(self, measured: Measured) -> None:
        """Advance the displacement under the wrench by the time that passed."""
        if not self._feeling:
            self._rate[:] = self._change[:] = 0.0
            return
        dt = self._passed
        wrench = self.felt(measured) - self.spring @ self._aside
        # the damper acts on the rate at the end of the step, so that any of it is stable
        rate = (self._rate + dt * wrench / self.inertia) / (1.0 + dt * self.damper / self.inertia)
        rate = self.possible(rate, measured)
        self._change = (rate - self._rate) / dt
        self._rate = rate
        self._aside += dt * rate
