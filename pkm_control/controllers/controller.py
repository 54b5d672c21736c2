# SPDX-License-Identifier: Apache-2.0
"""The interface of every controller, the robot's model that it uses, and how its efforts saturate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from pkm_control.operator_interface import DAMPING, NATURAL_FREQUENCY
from pkm_description.mechanism import Array, Inertial
from pkm_description.rotations import pose_distance
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.distribution import Sharing
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import actuator_mass_matrix, holding_efforts, payload_wrench
from pkm_hardware.simulated.drive_parts import realistic_encoder
from pkm_kinematics import Configuration, Kinematics
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.dense import all_finite
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes

_HOME_MODE = 0  # the working mode of home
ROUNDED = 1e-4  # of the characteristic length: by how much interpolation may miss a motion space that turns


def left_inverse(matrix: Array, independent: bool) -> Array:
    """Pseudo-inverse (m, n) of a matrix (n, m), in some microseconds where its columns are independent."""
    if not independent:
        return np.asarray(np.linalg.pinv(matrix, rcond=1e-9))
    return np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T))


def projection(basis: Array, length: float, independent: bool) -> Array:
    """Projection (6, 6) of twists onto the columns of a basis (6, m), rotations counting at a length [m]."""
    weights = scaling(length)
    scaled = basis * weights[:, None]
    onto = scaled @ left_inverse(scaled, independent)
    return np.asarray(onto * weights / weights[:, None])


def tracking_gains(natural_frequency: float, damping: float) -> tuple[float, float]:
    """Stiffness [1/s^2] and viscosity [1/s], per unit of inertia, of an error that dies out as asked."""
    return natural_frequency**2, 2.0 * damping * natural_frequency


def encoder_noise(limits: ActuatorLimits, natural_frequency: float, damping: float) -> Array:
    """Accelerations (n_actuated,) [rad/s^2, m/s^2] that a law makes of usual encoders' noise: standard deviations."""
    encoder, gains = realistic_encoder(limits), tracking_gains(natural_frequency, damping)
    positions = np.hypot(encoder.position_noise, np.asarray(encoder.resolution) / math.sqrt(12.0))
    return np.asarray(np.hypot(gains[0] * positions, gains[1] * np.asarray(encoder.velocity_noise)))


class ControlModel:
    """Inverse kinematics and inverse dynamics by the lean calls of the library, with `payload` on the platform.

    Where the model has no answer it returns NaN, which the guard refuses to apply. Poses off a configuration-dependent
    motion space, redundant actuators there, and redundant joints use the library's general calls. The turns of the
    first positions are the nearest to `joints` (n_joints,), which lie in the working mode `mode`, at a `pose` (7,).
    """

    def __init__(
        self, dynamics: Dynamics, mode: int = _HOME_MODE, joints: Array | None = None, pose: Array | None = None
    ) -> None:
        kinematics = dynamics.kinematics
        n = len(kinematics.actuated_names)
        self._kinematics, self._dynamics = kinematics, dynamics
        start = kinematics.modes.start(mode) if joints is None else joints
        self._position_out = np.array(start[kinematics.engine.actuated_column], dtype=np.float64)
        self._effort_out = np.zeros(n)
        self._motion = np.zeros(25)  # pose, twist, acceleration and wrench, as the lean call takes them
        self.mode = mode
        self.payload: Inertial | None = None
        self._positions = kinematics.lean_inverse(mode, joints, pose)
        open_ = bool(kinematics.redundant_names)
        self._answers = kinematics.constant_space and not open_  # the lean call has, where there is one
        lean = not open_ and (self._answers or GraphTracker.serves(kinematics.engine))
        self._efforts = dynamics.lean_inverse(mode) if lean else None
        bodies = kinematics.tables.bodies
        self._has_friction = bool(bodies["coulomb"].any() or bodies["viscous"].any())

    def positions(self, pose: Array) -> Array:
        """Actuator positions (n_actuated,) [rad or m] at a pose (7,), in the working mode."""
        if not all_finite(pose):
            return np.full(len(self._position_out), np.nan)
        if self._kinematics.redundant_names:
            return np.asarray(self._kinematics.inverse(pose, mode=self.mode).actuated, dtype=np.float64)
        last, found = self._position_out.copy(), self._position_out
        if closes(self._positions(pose, found)):
            return found.copy()
        there = self._nearest(pose)
        if (there is not None and closes(self._positions(there, found))) or self._found_anew(pose, last):
            return found.copy()
        found[:] = last
        return np.full(len(found), np.nan)

    def _found_anew(self, pose: Array, last: Array) -> bool:
        """Whether a pose too far from the last one for a lean call has positions; next calls go on from there."""
        k = self._kinematics
        there = k.inverse(pose, mode=self.mode)
        if not (k.engine.iterated and closes(there.status)):
            return False
        joints, drives = np.array(there.joints), k.engine.actuated_column
        turns = np.round((last - joints[drives]) / (2.0 * np.pi)) * k.engine.actuated_turning
        joints[drives] += 2.0 * np.pi * turns
        self._positions = k.lean_inverse(self.mode, joints, pose)
        return bool(closes(self._positions(pose, self._position_out)))

    def _nearest(self, pose: Array) -> Array | None:
        # where interpolation left a configuration-dependent motion space
        if self._kinematics.constant_space:
            return None
        found, length = np.array(self._kinematics.nearest(pose).pose), self._kinematics.characteristic_length
        return found if float(pose_distance(pose, found, length)) < ROUNDED * length else None

    def at(self, pose: Array, reference: Reference, joints: Array) -> tuple[Configuration, Array, Array]:
        """The robot at a reference's pose, and the rates there (6,): the nearest that exist, as `positions`."""
        twist, acceleration = reference.twist, reference.acceleration
        at = self._kinematics.at(pose, joints)
        if self._kinematics.constant_space or all_finite(at.motion(twist, acceleration).actuated_accelerations):
            return at, twist, acceleration
        there = self._nearest(pose)
        if there is None:
            return at, twist, acceleration
        at = self._kinematics.at(there, joints)
        onto = projection(at.subspace, self._kinematics.characteristic_length, False)
        twist = onto @ twist
        bias = at.platform_acceleration(twist, np.zeros(len(self._position_out)))
        return at, twist, bias + onto @ (acceleration - bias)

    def efforts(
        self, pose: Array, twist: Array, acceleration: Array, joints: Array, wrench: Array | None = None
    ) -> Array:
        """Actuator efforts (n_actuated,) [N m or N] of a motion: pose (7,), twist (6,), acceleration (6,), base frame.

        Redundant joints may be behind all three. `joints` (n_joints,) are positions near those of the pose; `wrench`
        (6,) [N, N m] acts on the platform from outside, about its origin, base axes.
        """
        self._motion[:7], self._motion[7:13], self._motion[13:19] = pose[:7], twist[:6], acceleration[:6]
        self._motion[19:] = 0.0 if wrench is None else wrench
        if self.payload is not None:
            rows = (self._motion[None, at] for at in (slice(7), slice(7, 13), slice(13, 19)))
            self._motion[19:] += payload_wrench(self.payload, self._kinematics.mechanism.gravity, *rows)[0]
            wrench = self._motion[19:].copy()
        if not all_finite(self._motion):
            return np.full(len(self._effort_out), np.nan)
        if self._efforts is not None and closes(self._efforts(self._motion, self._effort_out)):
            return self._effort_out.copy()
        if self._answers:
            return np.full(len(self._effort_out), np.nan)
        at = self._kinematics.at(pose, seed=joints)
        # by least squares, as the lean call: `Sharing` comes after the law
        answer = self._dynamics.inverse(at, twist, acceleration, wrench=wrench, distribution=Distribution())
        return np.asarray(answer.effort, dtype=np.float64)

    def efforts_with_friction(self, measured: Measured, acceleration: Array, friction_twist: Array) -> Array:
        """`efforts` at the measured state, with the friction of a motion at the twist `friction_twist` (6,)."""
        # Dry friction that is compensated by the sign of a measured velocity drives the robot to and fro at rest.
        # Friction is the part of the efforts that changes its sign with the velocity.
        at, joints = measured.pose, measured.joints
        found = self.efforts(at, measured.twist, acceleration, joints)
        if not self._has_friction:
            return found
        found = 0.5 * (found + self.efforts(at, -measured.twist, acceleration, joints))
        ahead, back = (self.efforts(at, twist, acceleration, joints) for twist in (friction_twist, -friction_twist))
        return np.asarray(found + 0.5 * (ahead - back))


@dataclass(frozen=True, eq=False)
class Reference:
    """Desired motion of the platform: pose (7,), twist (6,) and acceleration (6,), base frame.

    Behind them there may be positions and rates of redundant joints (r,); else these stay at home's, or follow.
    Efforts are held for a whole control period, so the acceleration that serves best is the one in its middle, half a
    period after pose and twist. `update_soon` is the pose (7,) after the law's look-ahead time `ahead`; None where
    the motion does not know it.
    """

    pose: Array
    twist: Array
    acceleration: Array
    update_soon: Array | None = None

    @classmethod
    def at_rest(cls, pose: Array) -> Reference:
        """Rest at a pose (7,)."""
        return cls(pose, np.zeros(6), np.zeros(6))

    def beside(self, kinematics: Kinematics) -> Reference:
        """This reference with redundant joints behind it, as it says or as they are described."""
        inputs = kinematics.engine.inputs
        if not kinematics.redundant_names:
            return self
        twist, acceleration = (inputs.coordinate_rates(x, 1, "rates")[0] for x in (self.twist, self.acceleration))
        return Reference(inputs.beside(self.pose[None])[0], twist, acceleration, self.update_soon)


@dataclass(frozen=True, eq=False)
class Measured:
    """Measured state of the machine: actuators (n_actuated,) as read, and what follows from them.

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


def found_at(kinematics: Kinematics, measured: Measured) -> Array:
    """The measured pose (7 + r,), with the positions of redundant joints behind it."""
    if not kinematics.redundant_names:
        return measured.pose
    return np.append(measured.pose, measured.joints[kinematics.engine.redundant_column])


@dataclass(frozen=True, eq=False)
class ModeModel:
    """The robot in a working mode: the model, and the mass matrix (n_actuated, n_actuated) in the actuators."""

    model: ControlModel
    mass: Array


class Controller(ABC):
    """A control law with saturation; `natural_frequency` [rad/s] and `damping` (1 is critical) are of the tracking
    error.

    It looks `ahead` along the motion [s], and `commands` the ros2_control command interface of that name. A law that
    `uses_wrench` needs a force-torque sensor: `Measured.wrench`. One that `yields` gives way to what pushes the
    platform, so that it leaves its reference on purpose; a `soft` one does so for errors of its model, too. After a
    call, `saturated` (n_actuated,) tells which actuators asked for more than their limit, `saturations` how often.
    """

    commands = "effort"
    uses_wrench = False
    yields = False
    soft = False
    ahead = 0.0

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
    ) -> None:
        if not (np.isfinite(natural_frequency) and natural_frequency > 0.0):
            raise ValueError(f"natural_frequency is {natural_frequency} rad/s; give a number greater than zero")
        if not (np.isfinite(damping) and damping >= 0.0):
            raise ValueError(f"damping is {damping}; give zero or more")
        self.kinematics, self.dynamics = dynamics.kinematics, dynamics
        self.model = ControlModel(dynamics)
        self.limits = limits
        self.sharing = Sharing(*limits.bounds(), self.kinematics.engine.freedoms, self.kinematics.characteristic_length)
        self.set_gains(natural_frequency, damping)
        self.saturated = self._unsaturated = np.zeros(len(limits.names), dtype=bool)
        self.saturations = np.zeros(len(limits.names), dtype=np.int64)

    def set_gains(self, natural_frequency: float, damping: float) -> None:
        """Set natural frequency [rad/s] and damping (1 is critical) of the closed loop's error."""
        self.natural_frequency, self.damping = natural_frequency, damping
        self.stiffness, self.viscosity = tracking_gains(natural_frequency, damping)
        self._noise = encoder_noise(self.limits, natural_frequency, damping)

    def noise(self) -> Array:
        """See `encoder_noise`, with the present gains."""
        return self._noise

    def in_mode(self, mode: int, pose: Array, joints: Array) -> ModeModel:
        """Model and mass of another working mode, by a regular pose (7,) and joints (n_joints,) there; takes time."""
        mass = actuator_mass_matrix(self.dynamics, pose, mode)
        return ModeModel(ControlModel(self.dynamics, mode, joints, pose), mass)

    def change_mode(self, to: ModeModel) -> None:
        """Continue in another working mode, as `in_mode` prepared it."""
        to.model.payload = self.model.payload
        self.model = to.model

    @property
    def payload(self) -> Inertial | None:
        """The platform's known payload, platform frame."""
        return self.model.payload

    def load(self, payload: Inertial | None) -> None:
        """Set the platform's payload, platform frame; None: nothing."""
        self.model.payload = payload

    def weight(self, pose: Array) -> Array:
        """Efforts (n_actuated,) that carry the robot and its payload at a pose (7,)."""
        return holding_efforts(self.dynamics, self.limits, pose, payload=self.payload)

    @abstractmethod
    def law(self, reference: Reference, measured: Measured) -> Array:
        """The law's command (n_actuated,) before limits: efforts [N m or N], or what it `commands`."""

    def planned(self, reference: Reference, measured: Measured) -> Array | None:
        """The law's efforts (n_actuated,) where nothing is to be corrected; None where the law cannot tell."""
        return None

    def _without_error(self, reference: Reference, measured: Measured) -> Array:
        gains = self.stiffness, self.viscosity
        self.stiffness = self.viscosity = 0.0
        try:
            return self.law(reference, measured)
        finally:
            self.stiffness, self.viscosity = gains

    def with_redundant(self, pose: Array) -> Array:
        """A pose (7 + r,), where the law wants redundant joints: as a reference has them, at home's, or following."""
        return self.kinematics.engine.inputs.beside(pose[None])[0]

    def forget(self) -> None:
        """Drop the memory of earlier commands: the platform is held anew, where it was found."""
        return

    def felt_by(self, measured: Measured, reading: Array) -> Measured:
        """Add a force-torque reading: wrench (6,) on the platform, sensor frame [N, N m]; for laws that feel."""
        return measured

    def engage(self, feeling: bool) -> None:
        """Tell laws that feel whether the sensor delivers; before each command."""
        return

    def advance(self, passed: float) -> None:
        """Take the time [s] that passed since the last command: a period unless the loop stalled."""
        return

    def foreseen(self, reference: Reference, measured: Measured) -> Array:
        """As `command`, for a platform on its reference, while no readings come; `measured` is the last one."""
        if self.commands != "effort":
            return self.model.positions(reference.pose)
        efforts = self.model.efforts(reference.pose, reference.twist, reference.acceleration, measured.joints)
        return self.sharing.share(measured.jacobian, efforts)

    def command(self, reference: Reference, measured: Measured) -> Array:
        """Command (n_actuated,) within the limits: efforts [N m or N], or what the law `commands`; NaN where the model
        has no answer. Redundant actuators share what the law asks for. Where a drive would pass its limit, the whole
        correction is made smaller: cut at single drives, it would push the platform in another direction, and turn it.
        """
        wanted = np.asarray(self.law(reference, measured), dtype=np.float64)
        self.saturated = self._unsaturated
        if wanted.shape != self.saturated.shape:  # the guard refuses it; compiled code would write beyond its end
            return wanted
        shared = self.sharing.share(measured.jacobian, wanted)
        if self.sharing.short:
            redundant = self.sharing.redundant
            self.saturated = self.sharing.at_bound(shared) if redundant else self.sharing.outside(wanted)
            self.saturations += self.saturated
            planned = None if redundant else self.planned(reference, measured)
            if planned is not None and np.shape(planned) == wanted.shape and all_finite(planned):
                shared = self.sharing.share(measured.jacobian, self.sharing.towards(planned, wanted))
        return shared
