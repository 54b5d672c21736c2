# SPDX-License-Identifier: Apache-2.0
"""Integration of a robot's motion under the efforts of its actuators, one class for each kind of motion space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.kernels.platform_dynamics import place_joints
from pkm_dynamics.simulation import JointForm, NoMotionHereError, State, inside
from pkm_hardware.platform_kernels import SCRATCH, step_platform
from pkm_hardware.simulated.surroundings import NOTHING, Touch, touched
from pkm_kinematics import Status
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.forward.tracker import ModeReader
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.status import closes
from pkm_runtime.kernels.binding import Prepared

_HOME_MODE = 0  # the working mode of home
NEAR = 0.1  # of home's regularity of the limbs: nearer to a singularity of type 1 the actuators are the coordinates
AWAY = 0.2  # farther from it the platform's are, again


class Integrator(ABC):
    """Pose (7,) and twist (6,) of the platform, and the actuators' positions and velocities there (n_actuated,).

    `wrench` (6,) is what touched solids exert on the platform, about its origin, base axes [N, N m]. Steps are those of
    Runge and Kutta. Constructors take a payload in the platform's frame, and solids. Calls return an empty text, or the
    reason why they left everything as it was.
    """

    pose: Array
    twist: Array
    positions: Array
    velocities: Array
    wrench: Array
    mode = 0  # number of the working mode, as far as closed forms tell it: home's
    passing: ActuatorDynamics | None = None  # dynamics in the actuators, where the platform does not tell the joints

    def __init__(self, dynamics: Dynamics, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        self._dynamics, self._kinematics = dynamics, dynamics.kinematics
        self._payload, self._touch = payload, touch

    @abstractmethod
    def place(self, pose: Array) -> str:
        """Place the robot at rest at a pose (7,), base frame, in its home working mode; empty, or why that fails."""

    @abstractmethod
    def carry(self, payload: Inertial | None) -> None:
        """Change the payload (platform's frame) from now on; it takes on the platform's motion."""

    @abstractmethod
    def advance(self, efforts: Array, h: float) -> str:
        """Advance by h [s] under constant efforts (n_actuated,) [N m or N]; empty, or why no motion goes on."""


class CompiledIntegrator(Integrator):
    """An `Integrator` by compiled kernels. Accelerations are in the motion space, so only rounding leaves it."""

    def __init__(self, dynamics: Dynamics, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        super().__init__(dynamics, payload, touch)
        n = len(self._kinematics.actuated_names)
        self._motion = np.zeros(25)  # pose, twist, no acceleration, wrench of what is touched
        self.pose = self._motion[:7]
        self.twist = self._motion[7:13]
        self.wrench = self._motion[19:]
        self._readings = np.zeros((2, n))
        self.positions, self.velocities = self._readings
        self._none = np.zeros(n)
        self._bind()

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        solution = self._kinematics.inverse(pose, mode=_HOME_MODE)
        if not closes(solution.status):
            return str(solution.reason(0))
        self._bind()
        self.pose[:] = pose
        self.twist[:] = 0.0
        self.positions[:] = solution.actuated
        return self.advance(self._none, 0.0)

    def carry(self, payload: Inertial | None) -> None:
        """As `Integrator.carry`."""
        self._payload = payload
        self._take_model()

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        status = self._step(self._motion, efforts, h, self._scratch, self._readings)
        return "" if status == Status.CONVERGED else Status(status).meaning

    def joints(self) -> Array:
        """Positions (n_joints,) of all joints after the last step; full turns of passive ones are not counted."""
        state, bodies = self._data.state, self._kinematics.tables.bodies
        found = np.array(self._kinematics.home_joints)
        turned = np.where(bodies["prismatic"] == 1, state["q"], np.arctan2(state["s"], state["c"]))
        found[bodies["column"][2:]] = turned[2:]
        return found

    def regularity(self) -> float:
        """Distance of the limbs from their singularities after the last step: 0 in one, at most 1."""
        return float(self._regularity())

    def regularity_at(self, pose: Array, joints: Array) -> float:
        """The same at a pose (7,) with joints (n_joints,) that close the loops; the limbs stay there."""
        q = np.zeros(len(self._model.bodies))
        q[2:] = joints[self._model.bodies["column"][2:]]
        return float(self._place(pose, q)[0])

    def resume(self, joints: Array) -> bool:
        """Go on with other joints (n_joints,) that close the loops; False, and unchanged, where no motion is."""
        reader = self._reader
        status, _ = reader.read(np.array(self.pose), joints)
        if not closes(status):
            return False
        self._bind(reader.branch, joints)
        return not self.advance(self._none, 0.0)

    @cached_property
    def _reader(self) -> ModeReader:
        return ModeReader(self._kinematics.engine)

    def _bind(self, mode: int = _HOME_MODE, joints: Array | None = None) -> None:
        self._scratch = np.zeros((SCRATCH, 25))
        home = np.zeros(25)
        home[:7] = self._kinematics.home
        self.mode = mode
        self._data = self._kinematics.engine.data(self._kinematics.modes.start(mode) if joints is None else joints)
        self._example = (home, self._none, 0.0, self._scratch, self._readings)
        self._take_model()

    def _take_model(self) -> None:
        self._model = self._dynamics.model(self._payload)
        fixed = (self._model, self._data, np.int64(self.mode), self._touch)
        home, *_ = example = self._example
        self._step = partial(Prepared(step_platform, *fixed, *example).call, *fixed)
        self._regularity = partial(Prepared(invert_blocks, *fixed[:2]).call, *fixed[:2])
        q = np.zeros(len(self._model.bodies))
        self._place = partial(Prepared(place_joints, *fixed[:2], home[:7], q).call, *fixed[:2])


class PassingIntegrator(Integrator):
    """An `Integrator` in the platform's coordinates, and near singularities of type 1 in the actuators'.

    Both have the same equations of motion, in coordinates that are regular where they are used: a hand-over changes
    neither positions nor velocities. PkmError where the robot has more actuators than degrees of freedom.
    """

    def __init__(self, dynamics: Dynamics, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        super().__init__(dynamics, payload, touch)
        self._platform = platform = CompiledIntegrator(dynamics, payload, touch)
        self._actuators = ActuatorDynamics(dynamics, payload)
        self.pose, self.twist = platform.pose, platform.twist
        self.positions, self.velocities = platform.positions, platform.velocities
        self.wrench = platform.wrench
        platform.place(np.array(self._kinematics.home))
        at_home = platform.regularity()
        self._near, self._away = NEAR * at_home, AWAY * at_home

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        self.passing = None
        problem, self.mode = self._platform.place(pose), self._platform.mode
        return problem

    def carry(self, payload: Inertial | None) -> None:
        """As `Integrator.carry`."""
        self._platform.carry(payload)
        self._actuators.carry(payload)

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        if self.passing is not None:
            return self._pass(efforts, h)
        problem = self._platform.advance(efforts, h)
        if problem:  # a limb may have been stretched within the step
            return self._pass(efforts, h) if np.isfinite(efforts).all() and self._take_over() else problem
        if self._platform.regularity() < self._near:
            self._take_over()
        return ""

    def _take_over(self) -> bool:
        """Begin to integrate in the actuators, without any jump; whether that is possible."""
        pose, twist = self.pose.copy(), self.twist.copy()
        motion = self._kinematics.motion(pose, twist, seed=self._platform.joints(), mode=self.mode)
        if not closes(motion.status) or self._actuators.place(pose, np.array(motion.joints)) is not Status.CONVERGED:
            return False
        if self._actuators.move(self.velocities) is Status.CONVERGED:
            self.passing = self._actuators
        return self.passing is not None

    def _pass(self, efforts: Array, h: float) -> str:
        """Make a step in the actuators, and return to the platform where the limbs are regular enough again."""
        moving = self._actuators
        before = moving.actuated
        touched(self._touch, self.pose, self.twist, self.wrench)
        pushed = moving.platform().jacobian.T @ self.wrench  # virtual work: what it does to the actuators
        status = moving.step(efforts + pushed, h, True)
        if status is not Status.CONVERGED:
            return str(status.meaning)
        pose, joints = moving.pose, moving.joints
        self.pose[:], self.twist[:] = pose, moving.twist
        self.positions += moving.actuated - before
        self.velocities[:] = moving.velocities
        if self._platform.regularity_at(pose, joints) > self._away:
            self.passing = None if self._platform.resume(joints) else moving
            self.mode = self._platform.mode
        return ""


class ActuatorIntegrator(Integrator):
    """An `Integrator` in the actuators: joints are integrated, then loops closed. PkmError: redundant drives."""

    def __init__(self, dynamics: Dynamics, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        super().__init__(dynamics, payload, touch)
        self.passing = self._robot = ActuatorDynamics(dynamics, payload)
        self.pose, self.twist = np.array(self._kinematics.home), np.zeros(6)
        self.wrench = np.zeros(6)
        self.positions, self.velocities = self._robot.actuated, self._robot.velocities

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
        status = self._robot.step(efforts + pushed, h, True)
        if status is not Status.CONVERGED:
            return status.meaning
        self.positions[:] = self._robot.actuated
        self._read()
        return ""

    def _read(self) -> None:
        found = self._robot.platform()
        self.pose[:], self.twist[:] = found.pose, found.twist


class GeneralIntegrator(Integrator):
    """An `Integrator` for any motion space.

    Within a step all joints are integrated beside the platform, so that no loop needs to be closed (the joint form of
    `pkm_dynamics.simulation`). After it forward kinematics places the platform, so it cannot leave its motion space.
    """

    def __init__(self, dynamics: Dynamics, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        super().__init__(dynamics, payload, touch)
        self._form = JointForm(dynamics, self._acting, payload)
        self.pose, self.twist, self.wrench = np.array(self._kinematics.home), np.zeros(6), np.zeros(6)
        self._efforts, self.positions, self.velocities = np.zeros((3, len(self._kinematics.actuated_names)))
        self._joints = np.array(self._kinematics.home_joints)

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
        return self._efforts, touched(self._touch, pose, twist, self.wrench)

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        self._efforts = np.ascontiguousarray(efforts, dtype=np.float64)
        y = self._form.start(State(self.pose, self.twist, self._joints))
        rates = self._form.rates
        try:
            a1 = rates(0.0, y)
            a2 = rates(0.0, y + 0.5 * h * a1)
            a3 = rates(0.0, y + 0.5 * h * a2)
            a4 = rates(0.0, y + h * a3)
            y = y + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
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


def make_integrator(dynamics: Dynamics, payload: Inertial | None, touch: Touch = NOTHING) -> Integrator:
    """The fastest integrator for the robot's motion space; arguments as in `Integrator`. That in the actuators where
    joints are redundant. Else a compiled one; where limbs have several branches, one that passes from one to the other.
    The general one for redundant actuators in a configuration-dependent motion space.
    """
    kinematics = dynamics.kinematics
    kind: type[Integrator] = GeneralIntegrator
    if kinematics.redundant_names or (not kinematics.constant_space and GraphTracker.serves(kinematics.engine)):
        kind = ActuatorIntegrator
    elif kinematics.constant_space:
        branched = int(np.prod(kinematics.tables.blocks["branches"])) > 1
        determined = len(kinematics.actuated_names) == kinematics.mobility
        kind = PassingIntegrator if branched and determined else CompiledIntegrator
    return kind(dynamics, payload, touch)
