# SPDX-License-Identifier: Apache-2.0
"""Impedance: the platform gives way as a spring and a damper would, without a force sensor."""

from __future__ import annotations

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.controllers.force.force_law import ForceLaw
from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import displacement_between


class Impedance(ForceLaw):
    """M e'' + D e' + K e = -w: w the wrench from outside, M the robot's own mass, which is not reshaped (Hogan, 1985).

    tau = ID(x, v, a_ref) + J^T (K e + D e'). With the mass left as it is the law is passive for every contact. The
    natural frequencies of K on M are lowered to what rate and delay allow: `lowered` is the factor on K.
    """

    def tune(self) -> None:
        """Set stiffness, as far as rate and delay allow, and damping from the task."""
        wanted = self.task.stiffness_matrix(self.length)
        self.spring, self.damper, self.lowered = self.freedoms.tuned(wanted, self.damping, self.natural_frequency)

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] of the impedance, before limits."""
        pull = self.spring @ displacement_between(measured.pose, reference.pose)
        pull += self.damper @ (reference.twist - measured.twist)
        return self.efforts(reference.acceleration, -pull, measured)
