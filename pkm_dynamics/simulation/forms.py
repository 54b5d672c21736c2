# SPDX-License-Identifier: Apache-2.0
"""The three forms in which the equations of motion are integrated (Müller, "Dynamics of parallel manipulators
with hybrid complex limbs: modular modeling and parallel computing", section 8.1).

    task      (127 to 130)  state: pose and twist; joints by the inverse kinematics
    joint     (131 to 134)  state: pose, all joints, and twist; qd = K V is integrated beside the twist
    actuator  (8.1.3)       state: actuated positions and velocities; the platform by the forward kinematics

The paper's orientation coordinates have singularities; here it is a quaternion, normalised after every step. Drift is
removed there too: the joint form closes its loops by the inverse kinematics, and in a configuration-dependent motion
space pose and twist go to the nearest possible ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.direct_dynamics import acceleration_here, direct_dynamics
from pkm_dynamics.kernels.joint_state import move_all, place_joints
from pkm_dynamics.kernels.over_rows import seed_joints
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import multiply
from pkm_kinematics.kernels.model_and_data import NEAREST, near
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import bind

Load = Callable[[float, Array, Array], tuple[Array, Array]]


class NoMotionHereError(PkmError):
    """A state at which the equations of motion have no solution."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = Status(status)
        super().__init__(reason)


@dataclass(frozen=True, eq=False)
class State:
    """Pose (7,), twist (6,) and all joint positions (n_joints,) at one instant."""

    pose: Array
    twist: Array
    joints: Array


def unit(pose: Array) -> Array:
    """A pose (7,) with its quaternion normalised."""
    return np.concatenate([pose[:3], pose[3:] / np.linalg.norm(pose[3:])])


def pose_rate(pose: Array, twist: Array) -> Array:
    """Rate (7,) of a pose for a twist (6,): the origin's velocity, and the quaternion product w q / 2."""
    return np.concatenate([twist[:3], 0.5 * multiply(np.array([*twist[3:], 0.0]), pose[3:])])


class Form:
    """Common parts of the three forms: robot, loads, and removal of drift from a state."""

    def __init__(self, dynamics: Dynamics, load: Load, payload: Inertial | None) -> None:
        self.dynamics, self.load, self.payload = dynamics, load, payload
        self.kinematics = dynamics.kinematics
        refuse_redundant(self.kinematics.redundant_names, "simulation in these coordinates")
        self.constant = self.kinematics.constant_space
        self.S = np.ascontiguousarray(self.kinematics.task.subspace) if self.constant else np.eye(6)
        self.dual = np.linalg.pinv(self.S)
        self.model = dynamics.model(payload).replace(subspace=self.S)
        self.bodies, self.data = self.model.bodies, self.kinematics.engine.data()
        self.columns = self.kinematics.engine.body_column[2:]
        self.q = np.zeros(len(self.bodies))
        self.out = np.zeros(6)

    def possible(self, pose: Array, twist: Array, joints: Array) -> State:
        """Possible state nearest to one that has drifted; `NoMotionHereError` where there is none near."""
        k = self.kinematics
        if self.constant:
            answer = k.inverse(pose, joints)
            if not closes(answer.status):
                raise NoMotionHereError(int(answer.status), answer.reason())
            return State(pose, twist, answer.joints)
        found = k.nearest(pose, joints)
        if int(found.status) != Status.CONVERGED:
            raise NoMotionHereError(int(found.status), found.reason())
        self.place(found.pose, found.joints[self.columns])
        S, _ = k.engine.spaces.space_in(self.model, self.data, found.pose, np.zeros(6))
        return State(found.pose, inside(S, twist, k.engine.characteristic_length), found.joints)

    def place(self, pose: Array, q: Array) -> None:
        """Place all bodies, loops left open, joints (n_bodies - 2,); `NoMotionHereError` where a limb is singular."""
        self.q[2:] = q
        regularity, _ = place_joints(self.model, self.data, pose, self.q)
        if not is_regular(regularity):
            raise NoMotionHereError(Status.SINGULAR, "a limb is singular")

    def accelerate(self, t: float, pose: Array, twist: Array) -> Array:
        """Platform acceleration (6,) at placed bodies, overwritten by the next call; joint rates in the workspace."""
        model, bias = self.model, np.zeros(6)
        if not self.constant:
            S, bias = self.kinematics.engine.spaces.space_in(model, self.data, pose, twist)
            model = model.replace(subspace=S)
        effort, wrench = self.load(t, pose, twist)
        move_all(model, self.data, twist, bias)
        external, efforts = (np.ascontiguousarray(x, dtype=np.float64) for x in (wrench, effort))
        status = acceleration_here(model, self.data, external, bias, efforts, self.out)
        if status != Status.CONVERGED:
            raise NoMotionHereError(status, Status(status).meaning)
        return self.out


def inside(S: Array, twist: Array, length: float) -> Array:
    """Twist in the motion space S (6, n) nearest to a given one, rotations weighted by `length`."""
    scale = scaling(length)
    u = np.linalg.lstsq(S * scale[:, None], twist * scale, rcond=None)[0]
    return np.asarray(S @ u)


class TaskForm(Form):
    """State (7 + n,): pose, and velocity in the motion space; the whole twist where that is configuration-dependent."""

    def __init__(self, dynamics: Dynamics, load: Load, payload: Inertial | None) -> None:
        super().__init__(dynamics, load, payload)
        self.joints: Array = np.array(self.kinematics.home_joints)
        if self.constant:
            self.motion = np.zeros(25)
            self.motion[:7] = self.kinematics.home
            self._direct = bind(
                direct_dynamics,
                (self.model, self.data, NEAREST),
                (self.motion, np.zeros(len(self.kinematics.actuated_names)), self.out),
            )

    def start(self, state: State) -> Array:
        """State vector of a state."""
        self._remember(state.joints)
        return np.concatenate([state.pose, self.dual @ state.twist])

    def _remember(self, joints: Array) -> None:
        self.joints = joints
        seed_joints(self.model, self.data, near(joints, 1), 0)

    def rates(self, t: float, y: Array) -> Array:
        """Rate of the state vector at time `t` [s]; `NoMotionHereError` where the equations have no solution."""
        pose, twist = unit(y[:7]), self.S @ y[7:]
        if not self.constant:
            state = self.possible(pose, twist, self.joints)
            return np.concatenate([pose_rate(state.pose, state.twist), self.accelerate(t, state.pose, state.twist)])
        effort, wrench = self.load(t, pose, twist)
        self.motion[:7], self.motion[7:13], self.motion[19:] = pose, twist, wrench
        status = self._direct(self.motion, np.ascontiguousarray(effort, dtype=np.float64), self.out)
        if status != Status.CONVERGED:
            raise NoMotionHereError(status, Status(status).meaning)
        return np.concatenate([pose_rate(pose, twist), self.dual @ self.out])

    def settle(self, y: Array) -> tuple[Array, State]:
        """State vector without drift, and the state, after an accepted step."""
        state = self.possible(unit(y[:7]), self.S @ y[7:], self.joints)
        return self.start(state), state


class JointForm(Form):
    """State (7 + n_bodies - 2 + n,): pose, integrated limb joints, velocity as in the task form."""

    def start(self, state: State) -> Array:
        """State vector of a state."""
        self.joints: Array = state.joints
        return np.concatenate([state.pose, state.joints[self.columns], self.dual @ state.twist])

    def rates(self, t: float, y: Array) -> Array:
        """Rate of the state vector."""
        at = 7 + len(self.columns)
        pose, twist = unit(y[:7]), self.S @ y[at:]
        self.place(pose, y[7:at])
        acceleration = self.accelerate(t, pose, twist)
        qd = self.data.state["qd"][2:]
        return np.concatenate([pose_rate(pose, twist), qd, self.dual @ acceleration])

    def semi_implicit(self, y: Array, rate: Array, h: float) -> Array:
        """State vector after `h` [s]: velocities by the rate at y (Euler), positions by the new velocities."""
        at = 7 + len(self.columns)
        later = y.copy()
        later[at:] += h * rate[at:]
        moving = self.rates(0.0, later)
        later[:at] += h * moving[:at]
        return later

    def parts(self, y: Array) -> tuple[Array, Array, Array]:
        """Pose (7,), twist (6,) and joints (n_joints,) of a state vector, drift included."""
        at = 7 + len(self.columns)
        joints = self.joints.copy()
        joints[self.columns] = y[7:at]
        return unit(y[:7]), self.S @ y[at:], joints

    def settle(self, y: Array) -> tuple[Array, State]:
        """State vector with closed loops, and the state, after an accepted step."""
        state = self.possible(*self.parts(y))
        return self.start(state), state


class ActuatorForm(Form):
    """State (2 n_actuated,): positions and velocities of the actuated joints. Ends at type 2 singularities."""

    def __init__(self, dynamics: Dynamics, load: Load, payload: Inertial | None) -> None:
        super().__init__(dynamics, load, payload)
        self.driven = np.flatnonzero(self.bodies["actuator"] >= 0)

    def start(self, state: State) -> Array:
        """State vector of a state."""
        self.last = state
        return np.concatenate([state.joints[self.kinematics.engine.actuated_column], self._speeds(state)])

    def _speeds(self, state: State) -> NDArray[Any]:
        return np.asarray(self.kinematics.at(state.pose, seed=state.joints).inverse_jacobian @ state.twist)

    def _state(self, y: Array) -> State:
        k, m = self.kinematics, len(y) // 2
        found = k.forward(y[:m], near=self.last.pose, seed=self.last.joints)
        if not closes(found.status):
            raise NoMotionHereError(int(found.status), found.reason())
        joints = found.joints
        if self.constant:
            joints = self.possible(found.pose, np.zeros(6), self.last.joints).joints
        twist = k.at(found.pose, seed=joints).platform_twist(y[m:])
        if not np.isfinite(twist).all():
            raise NoMotionHereError(Status.SINGULAR, "the actuators do not determine the platform's velocity")
        return State(found.pose, twist, joints)

    def rates(self, t: float, y: Array) -> Array:
        """Rate of the state vector."""
        state, m = self._state(y), len(y) // 2
        self.place(state.pose, state.joints[self.columns])
        acceleration = self.accelerate(t, state.pose, state.twist)
        move_all(self.model, self.data, state.twist, acceleration)
        seconds = np.empty(m)
        seconds[self.bodies["actuator"][self.driven]] = self.data.state["qdd"][self.driven]
        return np.concatenate([y[m:], seconds])

    def settle(self, y: Array) -> tuple[Array, State]:
        """State vector with redundant actuators made consistent, and the state, after an accepted step."""
        self.last = self._state(y)
        if len(y) == 2 * self.kinematics.mobility:
            return y, self.last
        m = len(y) // 2
        turned = y[:m] - self.last.joints[self.kinematics.engine.actuated_column]
        turns = np.where(self.kinematics.engine.actuated_turning, 2.0 * np.pi * np.round(turned / (2.0 * np.pi)), 0.0)
        again = self.start(self.last)
        again[:m] += turns
        return again, self.last


AnyForm = TaskForm | JointForm | ActuatorForm
FORMS: dict[str, type[AnyForm]] = {
    "task": TaskForm,
    "joint": JointForm,
    "actuator": ActuatorForm,
}
