# SPDX-License-Identifier: Apache-2.0
"""Integration in one compiled call per step, for constant motion spaces (nearly all robots), and through stretched or
folded limbs into other working modes.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.kernels.platform_dynamics import place_joints
from pkm_hardware.kernels.platform_step import SCRATCH, step_platform
from pkm_hardware.simulated.surroundings import NOTHING, Touch, touched
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.solve.mode_reader import ModeReader
from pkm_kinematics.status import closes
from pkm_runtime.kernels.binding import Prepared

_HOME_MODE = 0  # the working mode of home


class CompiledIntegrator:
    """An `Integrator` over `kernels/platform_step.py`.
    The acceleration is always within the motion space, so the state cannot leave it but by rounding.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        self._dynamics = dynamics
        self._runge_kutta = runge_kutta
        self._payload = payload
        self._touch = touch
        n = len(dynamics.kinematics.actuated_names)
        self._motion = np.zeros(25)  # pose, twist, no acceleration, wrench of what is touched
        self.pose = self._motion[:7]
        self.twist = self._motion[7:13]
        self.wrench = self._motion[19:]
        self._readings = np.zeros((2, n))
        self.positions, self.velocities = self._readings
        self._none = np.zeros(n)
        self._bind()

    @property
    def passing(self) -> None:
        """None: it does not pass into other working modes."""
        return

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        kinematics = self._dynamics.kinematics
        solution = kinematics.inverse(pose, mode=_HOME_MODE)
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

    @property
    def mode(self) -> int:
        """Number of the working mode, as far as closed forms tell it."""
        return self._mode

    def joints(self) -> Array:
        """Positions (n_joints,) of all joints after the last step; full turns of passive ones are not counted."""
        kinematics = self._dynamics.kinematics
        state, bodies = self._data.state, kinematics.tables.bodies
        found = np.array(kinematics.home_joints)
        turned = np.where(bodies["prismatic"] == 1, state["q"], np.arctan2(state["s"], state["c"]))
        found[bodies["column"][2:]] = turned[2:]
        return found

    def regularity(self) -> float:
        """Distance of the limbs from their singularities after the last step: 0 in one, at most 1."""
        return float(self._regularity())

    def regularity_at(self, pose: Array, joints: Array) -> float:
        """The same at a pose (7,), base frame, with joints (n_joints,) that close the loops; the limbs stay there."""
        q = np.zeros(len(self._model.bodies))
        q[2:] = joints[self._model.bodies["column"][2:]]
        return float(self._place(pose, q)[0])

    def resume(self, joints: Array) -> bool:
        """Go on at the state's pose and twist with other joints (n_joints,) that close the loops there.
        False where no motion exists there; the state is then as before.
        """
        reader = self._reader
        status, _ = reader.read(np.array(self.pose), joints)
        if not closes(status):
            return False
        self._bind(reader.branch, joints)
        return not self.advance(self._none, 0.0)

    @cached_property
    def _reader(self) -> ModeReader:
        return ModeReader(self._dynamics.kinematics.engine)

    def _bind(self, mode: int = _HOME_MODE, joints: Array | None = None) -> None:
        """Take a fresh workspace, which begins at home, or in other joint positions (n_joints,)."""
        self._scratch = np.zeros((SCRATCH, 25))
        home = np.zeros(25)
        home[:7] = self._dynamics.kinematics.home
        kinematics = self._dynamics.kinematics
        n = len(self.positions)
        self._mode = mode
        self._data = kinematics.engine.data(kinematics.modes.start(mode) if joints is None else joints)
        self._example = (home, np.zeros(n), 0.0, self._scratch, self._readings)
        self._take_model()

    def _take_model(self) -> None:
        """Prepare the kernels for the robot with its payload; its state stays."""
        self._model = self._dynamics.model(self._payload)
        fixed = (self._model, self._data, np.int64(self._mode), self._runge_kutta, self._touch)
        home, *_ = example = self._example
        self._step = partial(Prepared(step_platform, *fixed, *example).call, *fixed)
        self._regularity = partial(Prepared(invert_blocks, *fixed[:2]).call, *fixed[:2])
        q = np.zeros(len(self._model.bodies))
        self._place = partial(Prepared(place_joints, *fixed[:2], home[:7], q).call, *fixed[:2])


NEAR = 0.1  # of home's regularity of the limbs: nearer to a singularity of type 1 the actuators are the coordinates
AWAY = 0.2  # farther from it the platform's are, again


class PassingIntegrator:
    """An `Integrator` in the platform's coordinates, and near singularities of type 1 in the actuators'.

    Both have the same equations of motion, in coordinates that are regular where they are used: a hand-over changes
    neither positions nor velocities. PkmError where the robot has more actuators than degrees of freedom.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None, touch: Touch = NOTHING) -> None:
        self._kinematics = dynamics.kinematics
        self._runge_kutta = runge_kutta
        self._platform = platform = CompiledIntegrator(dynamics, runge_kutta, payload, touch)
        self._actuators = ActuatorDynamics(dynamics, payload)
        self._passing = False
        self.pose, self.twist = platform.pose, platform.twist
        self.positions, self.velocities = platform.positions, platform.velocities
        self.wrench, self._touch = platform.wrench, touch
        platform.place(np.array(self._kinematics.home))
        at_home = platform.regularity()
        self._near, self._away = NEAR * at_home, AWAY * at_home

    @staticmethod
    def serves(kinematics: Kinematics) -> bool:
        """Whether a robot has limbs with several branches, and actuators that are coordinates."""
        branches = int(np.prod(kinematics.tables.blocks["branches"]))
        return branches > 1 and len(kinematics.actuated_names) == kinematics.mobility

    @property
    def mode(self) -> int:
        """Number of the working mode, as far as closed forms tell it: the last one while a limb passes."""
        return self._platform.mode

    @property
    def passing(self) -> ActuatorDynamics | None:
        """The dynamics in the actuators near a type 1 singularity, where the platform does not tell the joints."""
        return self._actuators if self._passing else None

    def place(self, pose: Array) -> str:
        """As `Integrator.place`."""
        self._passing = False
        return self._platform.place(pose)

    def carry(self, payload: Inertial | None) -> None:
        """As `Integrator.carry`."""
        self._platform.carry(payload)
        self._actuators.carry(payload)

    def advance(self, efforts: Array, h: float) -> str:
        """As `Integrator.advance`."""
        if self._passing:
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
        self._passing = self._actuators.move(self.velocities) is Status.CONVERGED
        return self._passing

    def _pass(self, efforts: Array, h: float) -> str:
        """Make a step in the actuators, and return to the platform where the limbs are regular enough again."""
        moving = self._actuators
        before = moving.actuated
        touched(self._touch, self.pose, self.twist, self.wrench)
        pushed = moving.platform().jacobian.T @ self.wrench  # virtual work: what it does to the actuators
        status = moving.step(efforts + pushed, h, self._runge_kutta)
        if status is not Status.CONVERGED:
            return str(status.meaning)
        pose, joints = moving.pose, moving.joints
        self.pose[:], self.twist[:] = pose, moving.twist
        self.positions += moving.actuated - before
        self.velocities[:] = moving.velocities
        if self._platform.regularity_at(pose, joints) > self._away:
            self._passing = not self._platform.resume(joints)
        return ""
