# SPDX-License-Identifier: Apache-2.0
"""Adaptive control on the linear form of the dynamics: the controller learns the masses that its model has wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.controllers.pd_gravity import PdGravity
from pkm_control.operator_interface import DAMPING, NATURAL_FREQUENCY
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form import payload_parameters
from pkm_dynamics.linear_form.base_parameters import base_parameters
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_dynamics.motion_limits import ActuatorLimits

POSITIVE = (".m", ".armature", ".viscous", ".coulomb")  # parameters that are never below zero
FASTEST = 0.25  # of the rate of the feedback: that of learning
_RANK = 1e-9  # of the largest singular value of a mass matrix in redundant actuators: what is less is rounding
_CHANCE = 60  # motions over which the size of the regressor is taken


class Adaptive(PdGravity):
    """tau = Psi(reference) p + K s, with p' = G Psi(reference)^T s and s = e' + lambda e, in the actuators.

    The law of Slotine and Li ("On the adaptive control of robot manipulators", IJRR 1987) with the regressor evaluated
    on the reference, so that measurement noise does not pass through the model: the desired compensation adaptation law
    (Sadegh and Horowitz, IJRR 1990), as Codourey, Honegger and Burdet run it on the Delta and the Hexaglide. Psi is the
    linear form of Codourey and Burdet ("A body-oriented method for finding a linear form of the dynamic equation of
    fully parallel robots", ICRA 1997). The error vanishes where feedback is strong enough for the speed of the motion;
    p converges to the truth in the directions that the motion excites.

    K is `2 damping natural_frequency` times the mass matrix in the actuators, lambda = natural_frequency / (2 damping)
    [rad/s; damping > 0], so that with the true p the error behaves as under `PdGravity`. Learning is never faster than
    a quarter of the feedback, and pauses while an actuator saturates. `parameters` (n,) and `adapted` (name to value)
    tell what has been learned; `reset` forgets it. ValueError: nonsense, or no such parameter.

    Args:
        period: time between two calls [s].
        adapt: parameters to learn: "platform", its ten, for an unknown payload; "all", the leading parameters of all
            base parameters, friction included; or names of `Dynamics.parameters`.
        adaptation_time: scale of the learning [s]: it takes longer, the less the motion shows of a parameter.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
        period: float = 1e-3,
        adapt: Sequence[str] | Literal["platform", "all"] = "platform",
        adaptation_time: float = 0.2,
    ) -> None:
        super().__init__(dynamics, limits, natural_frequency, damping)
        if not damping > 0.0:
            raise ValueError(f"damping is {damping}; an adaptive law needs more than zero")
        for name, value in (("period", period), ("adaptation_time", adaptation_time)):
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"{name} is {value} s; give a time greater than zero")
        self.period = period
        names = dynamics.parameters.names
        self.adapt = _named(dynamics, adapt) if isinstance(adapt, str) else tuple(adapt)
        unknown = [name for name in self.adapt if name not in names]
        if unknown or not self.adapt:
            raise ValueError(f"adapt: {', '.join(unknown) or 'nothing'} is no parameter of {dynamics.mechanism.name}")
        self._learned = np.zeros(len(limits.names))
        self._columns = np.array([names.index(name) for name in self.adapt])
        self._floors = np.where([name.endswith(POSITIVE) for name in names], 0.0, -np.inf)
        self.parameters = np.array(dynamics.parameters.values)
        self.gain = self._gains(adaptation_time)

    def set_gains(self, natural_frequency: float, damping: float) -> None:
        """Set natural frequency [rad/s] and damping of the closed loop's error."""
        super().set_gains(natural_frequency, damping)
        self.slope = natural_frequency / (2.0 * damping) if damping > 0.0 else np.inf  # 1/s

    @property
    def adapted(self) -> dict[str, float]:
        """Present values of the learned parameters."""
        return {name: float(self.parameters[k]) for name, k in zip(self.adapt, self._columns, strict=True)}

    def reset(self) -> None:
        """Forget what was learned: back to the description's parameters, with the payload that was told."""
        self.parameters = np.array(self.dynamics.parameters.values)
        carried, self.model.payload = self.payload, None
        self.load(carried)

    def load(self, payload: Inertial | None) -> None:
        """Change the platform's parameters by a payload that is told; learning continues from there."""
        for body, sign in ((self.payload, -1.0), (payload, 1.0)):
            if body is not None:
                platform = self.kinematics.mechanism.platform_link
                self.parameters += sign * payload_parameters(self.dynamics.parameters, platform, body)
        self.parameters = np.maximum(self.parameters, self._floors)
        super().load(payload)

    def planned(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) of the reference by what has been learned [N m or N], of the last call."""
        return self._learned

    def command(self, reference: Reference, measured: Measured) -> Array:
        """As `Controller.command`; learns from the error where the drives give what the law asks for."""
        command = super().command(reference, measured)
        if not self.sharing.short and np.isfinite(command).all():
            self._learn(*self._lesson)
        return command

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) of the adaptive law before limits [N m or N]."""
        at, twist, acceleration = self.model.at(reference.pose, reference, measured.joints)
        wanted = at.motion(twist)
        psi, _ = self.dynamics.regressor(at, twist, acceleration)
        error = np.asarray(wanted.actuated) - measured.positions
        sliding = np.asarray(wanted.actuated_velocities) - measured.velocities + self.slope * error
        K = self.viscosity * self._mass_at(measured)
        feedback = K @ sliding
        self._learned = psi @ self.parameters
        if len(self.dynamics.robot.springs):
            self._learned += self.dynamics.spring_efforts(at)
        self._lesson = psi[:, self._columns], K, sliding
        return np.asarray(self._learned + feedback)

    def _learn(self, shown: Array, K: Array, sliding: Array) -> None:
        # s'' + k s' + k l s = 0, with k the rate of the feedback and l that of learning, oscillates from l = k / 4
        rate = float(self.gain @ (shown * np.linalg.lstsq(K, shown, rcond=_RANK)[0]).sum(axis=0))
        slower = min(1.0, FASTEST * self.viscosity / max(rate, 1e-300))
        step = self.period * slower * self.gain * (shown.T @ sliding)
        self.parameters[self._columns] = np.maximum(self.parameters[self._columns] + step, self._floors[self._columns])

    def _gains(self, adaptation_time: float) -> Array:
        """Gains (k,) with which each parameter alone would converge in `k * adaptation_time` on ordinary motions. With
        strong feedback, K s is the effort that p misses, Psi (p - p'); so p' = -G Psi^T K^-1 Psi p near the truth.
        """
        motions = random_motions(self.kinematics, _CHANCE)
        # random motions are brisk: rates and accelerations of a tenth are everyday ones
        psi, _ = self.dynamics.regressor(motions.pose, 0.1 * motions.twist, 0.1 * motions.acceleration)
        psi = psi[np.isfinite(psi).all(axis=(1, 2))][:, :, self._columns]
        missed = np.linalg.pinv(self.viscosity * self.mass, rcond=_RANK) @ psi
        strength = np.mean(np.sum(psi * missed, axis=1), axis=0)
        shown = strength > 1e-9 * strength.max()
        gains = 1.0 / (adaptation_time * len(self.adapt) * np.where(shown, strength, 1.0))
        return np.asarray(np.where(shown, gains, 0.0))


def _named(dynamics: Dynamics, which: str) -> tuple[str, ...]:
    parameters = dynamics.parameters
    if which == "platform":
        at = parameters.bodies[dynamics.mechanism.platform_link]
        return parameters.names[at : at + 10]
    if which != "all":
        raise ValueError(f"adapt is '{which}', not 'platform', 'all' or a sequence of names")
    return base_parameters(dynamics).names
