# SPDX-License-Identifier: Apache-2.0
"""What every controller takes and gives, and how its efforts saturate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.actuator_inertia import actuator_mass_matrix
from pkm_control.controllers.law_settings import DAMPING, NATURAL_FREQUENCY
from pkm_control.controllers.model import ControlModel
from pkm_control.motion.limits import ActuatorLimits
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Sharing
from pkm_kinematics import Kinematics

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """Where the platform should be: pose (7,), twist (6,) and acceleration (6,), base frame.

    Efforts are held for a whole control period, so the acceleration that serves best is the one in its middle, half a
    period after pose and twist. `soon` is the pose (7,) after the time that the law looks `ahead`; None where the
    motion does not say.
    """

    pose: Array
    twist: Array
    acceleration: Array
    soon: Array | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """Where the machine is: actuators (n_actuated,) as read, and what follows from them.

    `pose` (7,) and `twist` (6,) of the platform, base frame; `joints` (n_joints,) of the whole robot, which tell the
    model its working mode; `jacobian` (6, n_actuated) maps actuator rates to the platform's twist. `wrench` (6,) is
    what a force-torque sensor feels being done to the platform, about its origin, base axes; None without one.
    """

    positions: Array
    velocities: Array
    pose: Array
    twist: Array
    joints: Array
    jacobian: Array
    wrench: Array | None = None


@dataclass(frozen=True, eq=False)
class ModeModel:
    """The robot in a working mode: the model, and the mass matrix (n_actuated, n_actuated) in the actuators."""

    model: ControlModel
    mass: Array


class Controller(ABC):
    """A control law with saturation. `ahead` is how far it looks along the motion [s]. `commands` says what it
    gives, by the name of the ros2_control command interface.

    A law that `feels` needs a force-torque sensor: `Measured.wrench`. One that `yields` gives way to what pushes the
    platform, so that it leaves its reference as it should.

    After a call, `saturated` (n_actuated,) tells which actuators asked for more than their limit, and `saturations`
    counts, per actuator, the calls in which that happened.

    Args:
        kinematics: of the robot.
        dynamics: of the same.
        limits: of its actuators.
        natural_frequency: of the closed loop's tracking error [rad/s].
        damping: of the same; 1 is critical.

    Raises:
        ValueError: a number makes no sense.
    """

    commands = "effort"
    feels = False
    yields = False
    ahead = 0.0

    def __init__(
        self,
        kinematics: Kinematics,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
    ) -> None:
        if not (np.isfinite(natural_frequency) and natural_frequency > 0.0):
            raise ValueError(f"natural_frequency is {natural_frequency} rad/s; give a number greater than zero")
        if not (np.isfinite(damping) and damping >= 0.0):
            raise ValueError(f"damping is {damping}; give zero or more")
        self.kinematics = kinematics
        self.dynamics = dynamics
        self.model = ControlModel(kinematics, dynamics)
        self.limits = limits
        self.sharing = Sharing(*limits.bounds(), kinematics.mobility, kinematics.characteristic_length)
        self.set_gains(natural_frequency, damping)
        self.saturated = self._unsaturated = np.zeros(len(limits.names), dtype=bool)
        self.saturations = np.zeros(len(limits.names), dtype=np.int64)

    def set_gains(self, natural_frequency: float, damping: float) -> None:
        """Give the error of the closed loop another natural frequency and damping.

        Args:
            natural_frequency: rad/s.
            damping: 1 is critical.
        """
        self.stiffness = natural_frequency**2  # 1/s^2: per unit of inertia
        self.viscosity = 2.0 * damping * natural_frequency  # 1/s

    def in_mode(self, mode: int, pose: Array, joints: Array) -> ModeModel:
        """What the law needs in another working mode, for `change_mode`: made before, because it takes its time.

        Args:
            mode: number of the working mode.
            pose: of the platform (7,), base frame, in regular position.
            joints: positions (n_joints,) there in that mode.

        Returns:
            It.
        """
        mass = actuator_mass_matrix(self.kinematics, self.dynamics, pose, mode)
        return ModeModel(ControlModel(self.kinematics, self.dynamics, mode, joints), mass)

    def change_mode(self, to: ModeModel) -> None:
        """Go on in another working mode.

        Args:
            to: from `in_mode`.
        """
        to.model.payload = self.model.payload
        self.model = to.model

    @property
    def payload(self) -> Inertial | None:
        """What the platform is known to carry, in its frame."""
        return self.model.payload

    def load(self, payload: Inertial | None) -> None:
        """The platform carries something else from now on.

        Args:
            payload: in its frame; nothing where None.
        """
        self.model.payload = payload

    @abstractmethod
    def law(self, reference: Reference, measured: Measured) -> Array:
        """What the law asks for, limits aside.

        Args:
            reference: where the platform should be.
            measured: where the machine is.

        Returns:
            (n_actuated,): efforts [N m or N], or what it `commands`.
        """

    def forget(self) -> None:
        """The platform is held anew, where it was found: what was commanded before says nothing about it."""
        return

    def felt_by(self, measured: Measured, reading: Array) -> Measured:
        """What is measured together with what a force-torque sensor reads.

        Args:
            measured: by the actuators.
            reading: wrench (6,) done to the platform, in the frame of the sensor [N, N m].

        Returns:
            The same with the wrench in base axes, for laws that feel.
        """
        return measured

    def engage(self, feeling: bool) -> None:
        """Say whether forces are known, to laws that feel; before each command.

        Args:
            feeling: the sensor speaks.
        """
        return

    def advance(self, passed: float) -> None:
        """Time passed since the last command, a period unless the loop stalled.

        Args:
            passed: s.
        """
        return

    def foreseen(self, reference: Reference, measured: Measured) -> Array:
        """What a platform that is where it should be takes, by the model: while no readings come.

        Args:
            reference: where the platform should be.
            measured: where the machine was last.

        Returns:
            (n_actuated,): efforts [N m or N], or what the law `commands`; NaN where the model has no answer.
        """
        if self.commands != "effort":
            return self.model.positions(reference.pose)
        efforts = self.model.efforts(reference.pose, reference.twist, reference.acceleration, measured.joints)
        return self.sharing.share(measured.jacobian, efforts)

    def command(self, reference: Reference, measured: Measured) -> Array:
        """What to command, within the limits; redundant actuators share what the law asks for.

        Args:
            reference: where the platform should be.
            measured: where the machine is.

        Returns:
            (n_actuated,): efforts [N m or N], or what the law `commands`; NaN where the model has no answer.
        """
        wanted = self.law(reference, measured)
        shared = self.sharing.share(measured.jacobian, wanted)
        self.saturated = self._unsaturated
        if self.sharing.short:
            redundant = self.sharing.redundant
            self.saturated = self.sharing.at_bound(shared) if redundant else self.sharing.outside(wanted)
            self.saturations += self.saturated
        return shared
