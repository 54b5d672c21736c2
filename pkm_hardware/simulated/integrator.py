# SPDX-License-Identifier: Apache-2.0
"""Integration of a robot's motion under the efforts of its actuators: which one, and those for motion spaces that
depend on the configuration.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.simulation import JointForm, NoMotionHereError, State, inside
from pkm_hardware.simulated.compiled_integrator import CompiledIntegrator, PassingIntegrator
from pkm_hardware.simulated.surroundings import NOTHING, Touch, touched
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.status import closes


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
        self.velocities[:] = self._kinematics.at(pose, joints).inverse_jacobian @ twist
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

    That in the actuators where joints are redundant. Else a compiled one; where limbs have several branches, one that
    passes from one to the other. The general one for redundant actuators in a configuration-dependent motion space.
    """
    if dynamics.kinematics.redundant_names:
        return ActuatorIntegrator(dynamics, runge_kutta, payload, touch)
    if dynamics.kinematics.constant_space and PassingIntegrator.serves(dynamics.kinematics):
        return PassingIntegrator(dynamics, runge_kutta, payload, touch)
    if dynamics.kinematics.constant_space:
        return CompiledIntegrator(dynamics, runge_kutta, payload, touch)
    if ActuatorIntegrator.serves(dynamics.kinematics):
        return ActuatorIntegrator(dynamics, runge_kutta, payload, touch)
    return GeneralIntegrator(dynamics, runge_kutta, payload, touch)


class ActuatorIntegrator:
    """An `Integrator` whose coordinates are the actuators, whatever the motion space.
    All joints are integrated, and their loops closed after each step. PkmError: more actuators than degrees of freedom.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        self._kinematics = dynamics.kinematics
        self._runge_kutta = runge_kutta
        self._robot = ActuatorDynamics(dynamics, payload)
        self.pose, self.twist = np.array(self._kinematics.home), np.zeros(6)
        self.wrench, self._touch = np.zeros(6), touch
        self.positions, self.velocities = self._robot.actuated, self._robot.velocities

    @staticmethod
    def serves(kinematics: Kinematics) -> bool:
        """Whether the actuators of a robot are coordinates of it."""
        return GraphTracker.serves(kinematics.engine)

    @property
    def mode(self) -> int:
        """Number of the working mode in which the robot was placed: home's."""
        return 0

    @property
    def passing(self) -> ActuatorDynamics:
        """The dynamics in the actuators, which tell the joints."""
        return self._robot

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        solution = self._kinematics.inverse(pose)
        if not closes(solution.status):
            return str(solution.reason(0))
        status = self._robot.place(np.array(pose, dtype=np.float64), np.array(solution.joints))
        if status is not Status.CONVERGED:
            return status.meaning
        self.positions[:] = solution.actuated
        self._read()
        return ""

    def carry(self, payload: Inertial | None) -> None:
        """As `Integrator.carry`."""
        self._robot.carry(payload)

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        if not np.isfinite(efforts).all():
            return "an effort is not finite"
        touched(self._touch, self.pose, self.twist, self.wrench)
        pushed = self._robot.platform().jacobian.T @ self.wrench  # virtual work: what it does to the actuators
        status = self._robot.step(efforts + pushed, h, self._runge_kutta)
        if status is not Status.CONVERGED:
            return status.meaning
        self.positions[:] = self._robot.actuated
        self._read()
        return ""

    def _read(self) -> None:
        found = self._robot.platform()
        self.pose[:], self.twist[:] = found.pose, found.twist
