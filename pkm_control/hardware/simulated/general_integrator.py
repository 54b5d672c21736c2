# SPDX-License-Identifier: Apache-2.0
"""Integration through the library's general calls: redundant actuators in configuration-dependent motion spaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.contact.surroundings import NOTHING, Touch, touched
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.simulation.forms import JointForm, NoMotionHereError, State, inside
from pkm_kinematics import Status
from pkm_kinematics.status import closes

Array = NDArray[np.float64]


class GeneralIntegrator:
    """An `Integrator` for any motion space.

    Within a step all joints are integrated beside the platform, so that no loop needs to be closed (the joint form of
    `pkm_dynamics.simulation`). After it forward kinematics places the platform, so it cannot leave its motion space.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        self._kinematics = dynamics.kinematics
        self._runge_kutta = runge_kutta
        self.wrench = np.zeros(6)
        self._dynamics, self._touch = dynamics, touch
        self._form = JointForm(dynamics, self._acting, payload)
        n = len(self._kinematics.actuated_names)
        self._efforts = np.zeros(n)
        self.pose = np.array(self._kinematics.home)
        self.twist = np.zeros(6)
        self.positions = np.zeros(n)
        self.velocities = np.zeros(n)
        self._joints = np.array(self._kinematics.home_joints)

    @property
    def mode(self) -> int:
        """Number of the working mode: home's."""
        return 0

    @property
    def passing(self) -> None:
        """None: it does not pass into other working modes."""
        return

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        solution = self._kinematics.inverse(pose)
        if not closes(solution.status):
            return str(solution.reason(0))
        self.pose[:] = pose
        self.twist[:] = 0.0
        self.positions[:] = solution.actuated
        self.velocities[:] = 0.0
        self._joints = np.array(solution.joints)
        return ""

    def carry(self, payload: Inertial | None) -> None:
        """As `Integrator.carry`."""
        self._form = JointForm(self._dynamics, self._acting, payload)

    def _acting(self, _: float, pose: Array, twist: Array) -> tuple[Array, Array]:
        """Efforts and wrench that act in a state."""
        return self._efforts, touched(self._touch, pose, twist, self.wrench)

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        self._efforts = np.ascontiguousarray(efforts, dtype=np.float64)
        y = self._form.start(State(self.pose, self.twist, self._joints))
        rates = self._form.rates
        try:
            a1 = rates(0.0, y)
            if self._runge_kutta:
                a2 = rates(0.0, y + 0.5 * h * a1)
                a3 = rates(0.0, y + 0.5 * h * a2)
                a4 = rates(0.0, y + h * a3)
                y = y + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
            else:
                y = self._form.semi_implicit(y, a1, h)
            pose, twist, joints = self._closed(*self._form.parts(y))
        except NoMotionHereError as error:
            return str(error)
        self.pose[:], self.twist[:], self._joints = pose, twist, joints
        self.positions[:] = joints[self._kinematics.engine.actuated_column]
        self.velocities[:] = self._kinematics.inverse_jacobian(pose, joints) @ twist
        return ""

    def _closed(self, pose: Array, twist: Array, joints: Array) -> tuple[Array, Array, Array]:
        """The consistent pose (7,), twist (6,) and joints near those of a step, which drift by its error."""
        k = self._kinematics
        if not (np.isfinite(pose).all() and np.isfinite(twist).all() and np.isfinite(joints).all()):
            raise NoMotionHereError(Status.DIVERGED, "the integration diverged")
        found = k.forward(joints[k.engine.actuated_column], near=self.pose, seed=self._joints)
        if not closes(found.status):
            raise NoMotionHereError(int(found.status), str(found.reason(0)))
        S, _ = k.engine.spaces.at_one(np.asarray(found.pose), np.asarray(found.joints))
        if not np.isfinite(S).all():
            raise NoMotionHereError(Status.SINGULAR, "a limb is singular")
        return np.asarray(found.pose), inside(S, twist, k.characteristic_length), np.asarray(found.joints)
