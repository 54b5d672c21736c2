# SPDX-License-Identifier: Apache-2.0
"""A simulated machine with the life cycle and the read/write contract of ros2_control."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import numpy as np

from pkm_description.mechanism import Array, Drive, Inertial, Mechanism
from pkm_description.rotations import rotation_from_quaternion
from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Distribution, Sharing
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import actuator_mass_matrix, free_inertia, together
from pkm_hardware.machine import EMERGENCY_STOP, CommandMode, Lifecycle, LifecycleError, Machine, MachineState
from pkm_hardware.machine_kinds import DELAY, HEAVIER
from pkm_hardware.simulated.drive_parts import Brakes, DriveLoop, Encoder, EndStops, realistic_encoder
from pkm_hardware.simulated.integrator import make_integrator
from pkm_hardware.simulated.surroundings import STEP, Surroundings
from pkm_kinematics.kernels.dense import first_beyond, limit
from pkm_runtime.describable import fixed

_RUNAWAY = 20.0  # times the velocity limit of an actuator: faster than any fall or collision makes it
_OFF = 0.05  # rad, and of the characteristic length: the most that drives may be off their commands,
_AWAY_FOR, _FAR_FOR = 0.05, 0.5  # s: for so long if they do not come nearer, and if they do
_THROWN = 0.2  # of that, and further away: then none may pass its largest speed
_LOST_HOLD = (
    "the robot cannot take these positions, or its drives lost hold of the platform on the way there (type 2 "
    "singularity); a reset puts it back at home"
)
_SETTLES = 0.005  # s: damping over stiffness of a transmission
_LONGEST_STEP = 1e-3  # s, of the integration; a longer one is divided
_RUNAWAY_UNLIMITED = 1.0e3  # rad/s or m/s, where the description sets no limit


class SimulatedMachine(Machine):
    """Direct dynamics of the whole robot, integrated in task space at a fixed step.

    The state is the motion of the platform; every joint follows from it by inverse kinematics, so the loops stay closed
    without any correction. Near a singularity of type 1, where a limb is stretched or folded, the state is that of the
    actuators: so the machine passes into other working modes as a real one does. `joints` and `joint_velocities` are
    those of the whole robot, passive ones included.

    Calls come in the order of `Machine`. Anything that would make a number that is not finite (a singular pose, a
    diverged state, a left workspace) is a fault with a reason: brakes close, readings stay the last good ones, and
    `configure` starts anew.

    Args:
        dynamics: of the machine as it is, which a controller may believe to be otherwise.
        command_timeout: without a `write` for longer than that [s], brakes close on drives in effort mode until the
            next one; infinite by default, because the caller's guard decides.
        payload: what the platform carries, in its frame, unknown to the controller.
        delay: number of later commands that come before one acts.
        flexible: drives give way as their `stiffness` in the description says. Encoders sit on the motors, which are
            ahead of their joints by what the transmissions, damped springs without mass, are wound up by, and whose
            rotors are accelerated by that, too.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        command_mode: CommandMode = CommandMode.EFFORT,
        encoder: Encoder | None = None,
        command_timeout: float = math.inf,
        payload: Inertial | None = None,
        delay: int = 0,
        flexible: bool = False,
    ) -> None:
        if delay < 0:
            raise ValueError(f"delay is {delay} commands; give zero or more")
        super().__init__(limits)
        self.kinematics = kinematics = dynamics.kinematics
        self.dynamics = dynamics
        self.command_timeout = command_timeout
        self._max_step = _LONGEST_STEP
        self._mode = command_mode
        self._encoder = encoder
        self._made_of = dynamics, payload
        self._robot = make_integrator(*self._made_of)
        self._surroundings: Surroundings | None = None
        self._seed = np.array(kinematics.home_joints, dtype=np.float64)
        n = len(limits.names)
        self._efforts = np.zeros(n)
        self.windup = np.zeros(n)  # of the motors before the joints, rad or m
        self._winding, self._accelerations = np.zeros(n), np.zeros(n)  # its rate; of the joints, in the last step
        drives = [kinematics.mechanism.joint_named[name].drive or Drive(()) for name in limits.names]
        self._flexibility = np.array([1.0 / one.stiffness for one in drives]) if flexible else None
        self._armature = np.array([one.armature for one in drives])
        self._unsaturated = np.zeros(n, dtype=bool)
        # a cable may hang slack, whatever is asked of it, but it never pushes
        self._least, self._most = np.minimum(limits.least_effort, 0.0), np.maximum(limits.most_effort, 0.0)
        self._sharing: Sharing | None = None
        if limits.one_sided:
            self._sharing = Sharing(*limits.bounds(), kinematics.engine.freedoms, kinematics.characteristic_length)
        unlimited = ~np.isfinite(limits.velocity)
        self._runaway = np.where(unlimited, _RUNAWAY_UNLIMITED, _RUNAWAY * np.where(unlimited, 0.0, limits.velocity))
        turning = kinematics.engine.actuated_turning
        self._off = _OFF * np.where(turning, 1.0, kinematics.characteristic_length)  # rad or m
        self._away_for = self._far_for = 0.0  # s
        self._lost = False  # the drives left their commands
        self._stopped = False  # stopped on request, without a fault of its own
        self._delay = delay
        self._sent: deque[tuple[Array, float]] = deque()  # commands that do not act yet
        self._command: Array | None = None
        self._command_time = -math.inf
        self._drive: DriveLoop | None = None
        self._stops: EndStops  # both from `configure` on
        self._brakes: Brakes

    def surround(self, surroundings: Surroundings) -> None:
        """Add solids, and a force-torque sensor between platform and contact; LifecycleError if it is active."""
        if self.lifecycle is Lifecycle.ACTIVE:
            raise LifecycleError("surround", "active", "deactivate first")
        self._surroundings = surroundings
        self._robot = make_integrator(*self._made_of, surroundings.touch)
        self._max_step = min(self._max_step, STEP)
        self.lifecycle = Lifecycle.UNCONFIGURED

    def carry(self, payload: Inertial | None) -> None:
        """Add a payload (platform's frame) beside the hidden one, which moves with the platform from now on."""
        self._robot.carry(together(self._made_of[1], payload))

    # Life cycle

    def configure(self, pose: Array | None = None) -> None:
        """Place the machine at rest at a pose (7,), base frame, or home: inactive, brakes closed; or a fault."""
        if self.lifecycle is Lifecycle.ACTIVE:
            raise LifecycleError("configure", "active", "deactivate first")
        self.fault = ""
        self._efforts = np.zeros(len(self.limits.names))
        self._forget()
        self._seed = np.array(self.kinematics.home_joints, dtype=np.float64)
        start = np.array(self.kinematics.home if pose is None else pose, dtype=np.float64)
        problem = self._robot.place(start)
        if problem:
            self._fail(f"the platform cannot be at {_place(start)}: {problem}")
            return
        touches = self._surroundings if pose is None else None  # one that is found elsewhere may press on something
        inside = touches.problem(start) if touches is not None else ""
        if inside:
            self._fail(f"the platform cannot begin at {_place(start)}: {inside}")
            return
        mass = actuator_mass_matrix(self.dynamics, self.pose)
        if not np.all(np.isfinite(mass)):
            self._fail("the pose is singular: the actuators do not determine the platform")
            return
        free = free_inertia(self.dynamics, self.pose)
        self._drive = DriveLoop(mass)
        self._stops = EndStops(self.limits.lower, self.limits.upper, free, self._max_step)
        self._brakes = Brakes(mass, self.limits.effort)
        if self._flexibility is not None:
            self.windup = self._flexibility * self._weight()
        self.lifecycle = Lifecycle.INACTIVE

    def activate(self) -> None:
        """Enable the drives; those in effort mode keep their brakes closed until the first `write`. Without a command
        timeout, they open them and give no effort until then. Drives in position or velocity mode hold.
        """
        if self.lifecycle is not Lifecycle.INACTIVE:
            raise LifecycleError("activate", self.lifecycle.value, "configure first")
        self._forget()
        self._command_time = self.time - 1.001 * self.command_timeout
        if self._drive is not None:
            self._drive.reset()
        self._brakes.open()
        self.lifecycle = Lifecycle.ACTIVE

    def deactivate(self) -> None:
        """Close the brakes: the machine stops where it is."""
        if self.lifecycle is Lifecycle.ACTIVE:
            self.lifecycle = Lifecycle.INACTIVE
        self._halt()

    def emergency_stop(self, reason: str = EMERGENCY_STOP) -> None:
        """Close the brakes at once, until `reset`; `reason` becomes the fault."""
        if self.lifecycle is not Lifecycle.FAULT:
            self._stopped = self.lifecycle is not Lifecycle.UNCONFIGURED
        super().emergency_stop(reason)

    def reset(self) -> None:
        """Leave a fault: at rest at the present pose; at home where that is impossible, or where the drives lost it.
        After an emergency stop the whole robot stays as it is, in whatever working mode.
        """
        if self.lifecycle is not Lifecycle.FAULT:
            return
        stopped, self._stopped = self._stopped, False
        if stopped:
            self.fault, self.lifecycle = "", Lifecycle.INACTIVE
            self._forget()
            return
        lost, self._lost = self._lost, False
        if not lost:
            self.configure(self.pose.copy())
        if lost or self.fault:
            self.configure()

    def warm_up(self) -> None:
        """Pass a millisecond, so that everything is compiled before time matters."""
        self.configure()
        if self.fault:
            return
        self.activate()
        self.step(1e-3)
        self.deactivate()
        self.cleanup()
        self.time = 0.0

    @property
    def silent_for(self) -> float:
        """Time without a command [s] while brakes are closed for that reason; 0 where they are open."""
        closed = self.lifecycle is Lifecycle.ACTIVE and self._brakes.closed
        return self.time - self._command_time if closed else 0.0

    @property
    def command_mode(self) -> CommandMode:
        """What commands mean."""
        return self._mode

    def set_command_mode(self, mode: CommandMode) -> None:
        """Change what commands mean; the last command is forgotten."""
        self._mode = mode
        self._forget()
        self._command_time = self.time
        if self._drive is not None:
            self._drive.reset()

    # The whole robot

    @property
    def pose(self) -> Array:
        """Pose (7,) of the platform."""
        return self._robot.pose

    @property
    def twist(self) -> Array:
        """Twist (6,) of the platform."""
        return self._robot.twist

    @property
    def joints(self) -> Array:
        """Positions (n_joints,) of all joints, in the order of `Kinematics.joint_names`."""
        return self._motion()[0]

    @property
    def joint_velocities(self) -> Array:
        """Velocities (n_joints,) of all joints."""
        return self._motion()[1]

    # One period

    def read(self) -> MachineState:
        """The reading of the actuators."""
        positions, velocities = self._robot.positions + self.windup, self._robot.velocities
        if self._encoder is not None:
            positions, velocities = self._encoder.read(positions, velocities)
        wrench: Array | None = None
        if self._surroundings is not None:
            turned = rotation_from_quaternion(self.pose[3:])
            wrench = self._surroundings.read((self._robot.wrench.reshape(2, 3) @ turned).ravel())
        efforts = self._efforts.copy()
        return MachineState(self.time, positions.copy(), velocities.copy(), efforts, self.lifecycle, self.fault, wrench)

    def write(self, command: Array, answers: float | None = None) -> None:
        """As `Machine.write`; where `answers` is None, the command answers the last reading."""
        self._sent.append((self._checked(command), self.time if answers is None else answers))
        if len(self._sent) > self._delay:
            self._command, of = self._sent.popleft()
            if self._drive is not None and self._mode is CommandMode.POSITION:
                self._drive.take(self._command, of, self.time)
        self._command_time = self.time

    def step(self, dt: float) -> None:
        """Let dt [s] pass under the last command; ValueError where it is not greater than zero."""
        if not (math.isfinite(dt) and dt > 0.0):
            raise ValueError(f"step is {dt} s; give a time greater than zero")
        if self.lifecycle is not Lifecycle.ACTIVE:
            self.time += dt
            return
        n = max(1, math.ceil(dt / self._max_step - 1e-9))
        with np.errstate(all="ignore"):  # a diverging state is answered as a fault, not by warnings on the way there
            for _ in range(n):
                alive = self._integrate(dt / n)
                self.time += dt / n
                if not alive:
                    return

    # Inside

    def _integrate(self, h: float) -> bool:
        if self._mode is CommandMode.EFFORT and self.time - self._command_time > self.command_timeout:
            if not self._brakes.holding and np.isfinite(mass := self._mass()).all():
                self._brakes.set_mass(mass)
            braking = self._brakes.efforts(self._robot.velocities, h)
            if self._brakes.holding:
                self._halt()
                return True
            self._efforts = np.zeros(len(self.limits.names))
            stops = braking + self._stops.efforts(self._robot.positions, self._robot.velocities)
        else:
            self._brakes.open()
            self._efforts, stops = self._drive_efforts(h)
        before = self._robot.velocities.copy()
        problem = self._robot.advance(self._efforts + stops - self._wound_up(h), h)
        self._accelerations = (self._robot.velocities - before) / h
        if problem:
            return self._fail(f"no motion goes on from {_place(self.pose)}: {problem}")
        velocities = self._robot.velocities
        fast = first_beyond(velocities, self._runaway)
        if fast >= 0:
            name, speed = self.limits.names[fast], velocities[fast]
            return self._fail(f"{name} ran away at {speed:.3g} {self.limits.length_units[fast]}/s")
        strayed = self._strayed(h) if self._mode is CommandMode.POSITION else ""
        self._lost = bool(strayed)
        return self._fail(strayed) if strayed else True

    def _wound_up(self, h: float) -> Array:
        """Let transmissions bear the efforts for a time [s]; what (n,) of these accelerates rotors past their joints.

        J (dw'/dt + q'') = tau - k (w + T w') of the windup w and its rate w', by an implicit step.
        """
        if self._flexibility is None:
            return self._winding
        inertia, before = self._flexibility * self._armature / h, self._winding
        driven = self._flexibility * (self._efforts - self._armature * self._accelerations)
        self._winding = (inertia * before + driven - self.windup) / (inertia + h + _SETTLES)
        self.windup = self.windup + h * self._winding
        return np.asarray(self._armature * (self._winding - before) / h)

    def _strayed(self, h: float) -> str:
        """Why the drives do not follow commanded positions; empty while they do."""
        wanted = self._drive.setpoint if self._drive is not None else None
        if wanted is None:
            return ""
        error, velocities = wanted - self._robot.positions, self._robot.velocities
        off = np.abs(error) / self._off
        far, away = off > 1.0, np.sign(error) * velocities <= 0.0
        fast = np.abs(velocities + h * self._accelerations) > self.limits.velocity
        thrown = fast.any() and (far | (away & (off > _THROWN))).any()
        self._far_for = self._far_for + h if far.any() else 0.0
        self._away_for = self._away_for + h if (away & far).any() else max(0.0, self._away_for - h)
        if not thrown and self._away_for <= _AWAY_FOR and self._far_for <= _FAR_FOR:
            return ""
        names, k = self.limits.names, int(np.argmax(off))
        unit = self.limits.length_units[k]
        place = f"{names[k]} is {abs(error[k]):.3g} {unit} from its commanded position"
        if thrown:
            return f"{place}, and {names[int(np.argmax(fast))]} would pass its largest speed: {_LOST_HOLD}"
        return f"{place}, more than {self._off[k]:.3g} {unit}, and does not come back: {_LOST_HOLD}"

    def _forget(self) -> None:
        self._command = None
        self._away_for = self._far_for = 0.0
        self._sent.clear()

    def _motion(self) -> tuple[Array, Array]:
        passing = self._robot.passing
        if passing is not None:
            joints = passing.joints
            turns = np.where(self.kinematics.engine.joint_turning, np.round((self._seed - joints) / (2.0 * np.pi)), 0.0)
            self._seed = joints + 2.0 * np.pi * turns
            return self._seed, passing.joint_velocities
        motion = self.kinematics.motion(self.pose, self.twist, seed=self._seed, mode=self._robot.mode)
        joints = np.array(motion.joints, dtype=np.float64)
        if np.isfinite(joints).all():
            self._seed = joints
        return joints, np.array(motion.velocities, dtype=np.float64)

    def _weight(self) -> Array:
        passing = self._robot.passing
        if passing is not None:
            return passing.weight()
        still = np.zeros(6)
        there = self.dynamics.kinematics.at(self.pose, seed=self._seed, mode=self._robot.mode)
        answer = self.dynamics.inverse(there, still, still, distribution=Distribution())
        return np.asarray(answer.effort, dtype=np.float64)

    def _mass(self) -> Array:
        passing = self._robot.passing
        if passing is None:
            return actuator_mass_matrix(self.dynamics, self.pose, self._robot.mode)
        weight, pushes = passing.weight(), np.eye(len(self.limits.names))
        return np.stack([passing.still(push) - weight for push in pushes], axis=1)

    def _pulling(self, wanted: Array) -> Array:
        """Efforts that drives of one-sided actuators give where their loops, one by one, want `wanted`."""
        assert self._sharing is not None
        jacobian = self.kinematics.at(self.pose, seed=self._seed).forward_jacobian
        shared = self._sharing.share(np.asarray(jacobian), wanted)
        return shared if np.isfinite(shared).all() else wanted

    def _drive_efforts(self, h: float) -> tuple[Array, Array]:
        assert self._drive is not None
        positions, velocities = self._robot.positions, self._robot.velocities
        silent = self._command is None or self.time - self._command_time > self.command_timeout
        if self._mode is CommandMode.EFFORT:
            wanted = np.zeros(len(self.limits.names)) if silent or self._command is None else self._command
        else:
            gravity = self._weight()
            if self._mode is CommandMode.VELOCITY:
                command = np.zeros(len(gravity)) if silent or self._command is None else self._command
                wanted = self._drive.velocity(command, velocities, gravity)
            else:
                wanted = self._drive.position(positions + self.windup, velocities, gravity, h)
        if self._sharing is not None and self._mode is not CommandMode.EFFORT:
            wanted = self._pulling(wanted)
        limited = np.empty(len(wanted))
        beyond = limit(wanted, self._least, self._most, limited)
        self.saturated = limited != wanted if beyond else self._unsaturated
        return limited, self._stops.efforts(positions, velocities)

    def _halt(self) -> None:
        self._robot.twist[:] = 0.0
        self._robot.velocities[:] = 0.0
        self._winding = self._accelerations = np.zeros(len(self.limits.names))
        if self._robot.passing is not None:
            self._robot.passing.move(np.zeros(len(self.limits.names)))  # the passive joints rest, too
        self._efforts = np.zeros(len(self.limits.names))

    def _fail(self, reason: str) -> bool:
        self.fault = reason
        self.lifecycle = Lifecycle.FAULT
        self._halt()
        return False


def _place(pose: Array) -> str:
    return f"({', '.join(fixed(value, 4) for value in pose[:3])}) m"


def realistic_machine(
    mechanism: Mechanism, command_timeout: float = math.inf, payload: Inertial | None = None
) -> SimulatedMachine:
    """A machine with encoders, a delay, links heavier than described, and drives that give way where the description
    says how; the same each time. Without a `write` for longer than `command_timeout` [s], brakes close. `payload`, in
    the platform's frame, is unknown to the controller.
    """
    limits = ActuatorLimits.of(mechanism)
    return SimulatedMachine(
        Dynamics(heavier(mechanism, HEAVIER)),
        limits,
        encoder=realistic_encoder(limits),
        command_timeout=command_timeout,
        payload=payload,
        delay=DELAY,
        flexible=True,
    )


def heavier(mechanism: Mechanism, factor: float) -> Mechanism:
    """The same robot with the mass and inertia of every link times a factor > 0; drives and friction stay."""

    def times(one: Inertial) -> Inertial:
        return replace(one, mass=factor * one.mass, inertia=factor * np.asarray(one.inertia))

    links = tuple(replace(link, inertial=times(link.inertial)) for link in mechanism.links)
    return replace(mechanism, links=links)
