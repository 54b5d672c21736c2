# SPDX-License-Identifier: Apache-2.0
"""Computed torque: inverse dynamics of the desired acceleration, corrected by the tracking error."""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.kernels.tracking import correct
from pkm_control.operator_interface import DAMPING, NATURAL_FREQUENCY
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.kernels.compiled_rotations import displacement_between

APPROACH = 0.2  # of the natural frequency: rate at which an error vanishes that friction would hold


class ComputedTorque(Controller):
    """tau = ID(x, v, a_ref + 2 zeta omega e_v + omega^2 e); the error then obeys e'' + 2 zeta omega e' + omega^2 e = 0.

    In task space the error is the platform's displacement and twist (Paccot, Andreff and Martinet, "A review on the
    dynamic control of parallel kinematic machines", 2009). In actuator space the position error is that of the
    actuators, mapped to the platform by the forward Jacobian; this holds for every robot, because the correction then
    lies in the motion space. Redundant joints are held, or follow the platform; with them error and model are those of
    the actuators, whatever is chosen. omega is `natural_frequency` [rad/s], zeta is `damping`, 1 where critical. The
    model is evaluated at the "measured" state (exact linearisation), or at the "reference" (no measured noise passes
    through). In the measured state friction is that of v_ref + 0.2 omega e, so that it neither shakes nor holds it.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
        space: Literal["task", "actuator"] = "actuator",
        model_at: Literal["measured", "reference"] = "measured",
    ) -> None:
        super().__init__(dynamics, limits, natural_frequency, damping)
        if space not in ("task", "actuator"):
            raise ValueError(f"space is '{space}', not 'task' or 'actuator'")
        if model_at not in ("measured", "reference"):
            raise ValueError(f"model_at is '{model_at}', not 'measured' or 'reference'")
        self.space = space
        self.model_at = model_at
        # with redundant joints the platform is not all that moves: its actuators are coordinates of the whole
        self._robot = ActuatorDynamics(dynamics) if self.kinematics.redundant_names else None

    def load(self, payload: Inertial | None) -> None:
        """Set the platform's payload, platform frame; None: nothing."""
        super().load(payload)
        if self._robot is not None:
            self._robot.carry(payload)

    def _in_actuators(self, robot: ActuatorDynamics, reference: Reference, measured: Measured) -> Array:
        """The law with the actuators as coordinates, redundant joints held; NaN where there is no such motion."""
        pose = self.with_redundant(reference.pose)
        near = {"seed": measured.joints} if self.kinematics.engine.iterated else {"mode": self.model.mode}
        wanted = self.kinematics.motion(pose, reference.twist, reference.acceleration, **near)
        error = np.asarray(wanted.actuated) - measured.positions
        rate = np.asarray(wanted.actuated_velocities) - measured.velocities
        asked = np.asarray(wanted.actuated_accelerations) + self.stiffness * error + self.viscosity * rate
        robot.take(measured.pose, measured.joints, measured.velocities)
        return robot.efforts(asked)

    def planned(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) of the reference's acceleration, at the measured state [N m or N]."""
        return self._without_error(reference, measured)

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) of computed torque before limits [N m or N]."""
        if self._robot is not None:
            return self._in_actuators(self._robot, reference, measured)
        if self.space == "task":
            error = displacement_between(measured.pose, reference.pose)
            correction = self.stiffness * error + self.viscosity * (reference.twist - measured.twist)
            asked = np.asarray(reference.acceleration + correction)
        else:
            wanted, there = self.model.positions(reference.pose), measured.positions
            gains = self.stiffness, self.viscosity
            asked, error = np.empty(6), measured.jacobian @ (wanted - there)
            correct(
                wanted, there, measured.jacobian, reference.twist, measured.twist, *gains, reference.acceleration, asked
            )
        if self.model_at == "measured":
            return self.model.efforts_with_friction(
                measured, asked, reference.twist + APPROACH * sqrt(self.stiffness) * error
            )
        return self.model.efforts(reference.pose, reference.twist, asked, measured.joints)
