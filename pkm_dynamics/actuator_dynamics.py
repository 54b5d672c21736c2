# SPDX-License-Identifier: Apache-2.0
"""Configuration, motion and efforts of one robot with its actuators as coordinates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.graph_dynamics import accelerations_here, efforts_here, step_actuators
from pkm_dynamics.robot_model import graph_model
from pkm_kinematics import Status
from pkm_kinematics.forward.graph_tracker import graph_motion, graph_places
from pkm_kinematics.kernels.path.follow_graph import follow_graph
from pkm_kinematics.kernels.rates.graph_motion import GraphMotion, close_graph, motion_here, read_platform
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import Prepared

_SCRATCH = 6  # rows


class ActuatorDynamics:
    """A robot whose state is a closed configuration of all joints and the velocities of its actuators.

    It passes configurations where a limb is stretched or folded (type 1), which platform coordinates cannot, and ends
    where the actuators no longer determine the platform (type 2). Not thread-safe. Raises `PkmError` for a robot with
    more actuators than degrees of freedom: their positions depend on each other.
    """

    def __init__(self, dynamics: Dynamics, payload: Inertial | None = None) -> None:
        k = dynamics.kinematics
        if len(k.actuated_names) != k.engine.freedoms:
            raise PkmError(
                "actuators can be coordinates of a robot only if there are as many actuators as degrees of freedom"
            )
        self.kinematics = k
        self._robot = dynamics.robot
        self._model = graph_model(dynamics.robot, payload)
        self._data = k.engine.whole_graph.holding(k.actuated_names).data()
        self._state = self._data.state
        self._places, self._found = graph_places(k.engine), graph_motion(k.engine)
        self._held = self._places.actuators
        self._q = np.array(self._state["q"])
        n = len(k.actuated_names)
        self._none = np.zeros(n)
        self._scratch = np.zeros((_SCRATCH, max(len(self._q), n)))
        self.velocities = np.zeros(n)  # of the actuators
        self._prepare()
        self.place(np.array(k.home), np.array(k.home_joints))

    def _prepare(self) -> None:
        model, data, none = self._model, self._data, self._none
        size = self.kinematics.characteristic_length
        self._close = Prepared(close_graph, model, data).call
        self._follow = Prepared(follow_graph, model, data, size, self._held, none).call
        self._efforts = Prepared(efforts_here, model, data, none, none, none).call
        self._accelerations = Prepared(accelerations_here, model, data, none, none, none).call
        self._move = Prepared(motion_here, model, data, none, none).call
        rows = self._q, none, self._scratch
        self._step = Prepared(step_actuators, model, data, True, none, 0.0, *rows).call
        self._read = Prepared(read_platform, model, data, self._places, self._found).call

    def carry(self, payload: Inertial | None) -> None:
        """Change the payload (platform frame, None for no payload) and keep the state; `PkmError` if it is no body."""
        self._model = graph_model(self._robot, payload)

    # -- state ------------------------------------------------------------------------------------------------------

    def place(self, pose: Array, joints: Array) -> Status:
        """Set a pose (7,), base frame, and joints (n_joints,) closing the loops, at rest; a refusal changes nothing."""
        q = self.kinematics.engine.inputs.in_whole_graph_at(joints, pose)
        if not np.isfinite(q).all():
            return Status.INVALID_INPUT
        self._state["q"] = q
        status = Status(self._close(self._model, self._data))
        if status is Status.CONVERGED:
            self._q[:] = self._state["q"]
            status = self.move(self._none)
        return status

    def take(self, pose: Array, joints: Array, velocities: Array) -> None:
        """Set a closed configuration, as a tracker has it, and velocities (n_actuated,), for `efforts`; unchecked."""
        self._q[:] = self.kinematics.engine.inputs.in_whole_graph(joints[None], pose[None])[0]
        self.velocities[:] = velocities

    def follow(self, q: Array) -> Status:
        """Move straight to actuator positions (n_actuated,), at rest; SINGULAR, unmoved, where type 2 lies between."""
        if not np.isfinite(q).all():
            return Status.INVALID_INPUT
        self._state["q"] = self._q
        goal = np.array(q, dtype=np.float64)
        size = self.kinematics.characteristic_length
        status = Status(int(self._follow(self._model, self._data, size, self._held, goal)[0]))
        if status is Status.CONVERGED:
            self._q[:] = self._state["q"]
        return status

    def move(self, velocities: Array, accelerations: Array | None = None) -> Status:
        """Set velocities and accelerations (n_actuated,) of the actuators [rad/s, rad/s^2 or m/s, m/s^2]."""
        self.velocities[:] = velocities
        self._state["q"] = self._q
        ud = self._none if accelerations is None else np.array(accelerations, dtype=np.float64)
        return Status(self._move(self._model, self._data, self.velocities, ud))

    @property
    def actuated(self) -> Array:
        """Positions (n_actuated,) of the actuators [rad or m]."""
        return np.asarray(self._q[self._held])

    @property
    def joints(self) -> Array:
        """Positions (n_joints,) of all joints [rad or m]."""
        return np.asarray(self._q[self.kinematics.engine.in_whole])

    @property
    def joint_velocities(self) -> Array:
        """Velocities (n_joints,) of all joints [rad/s or m/s], after `move` or `step`."""
        return np.asarray(self._state["qd"][self.kinematics.engine.in_whole])

    @property
    def pose(self) -> Array:
        """Pose (7,) of the platform, after `place`, `move` or `step`."""
        return self.platform().pose.copy()

    @property
    def twist(self) -> Array:
        """Twist (6,) of the platform [m/s, rad/s], after `move` or `step`."""
        return self.platform().twist.copy()

    def platform(self) -> GraphMotion:
        """Pose, twist and Jacobian only, after `place`, `move` or `step`; the next call overwrites them."""
        self._read(self._model, self._data, self._places, self._found)
        return self._found

    @property
    def acceleration(self) -> Array:
        """Acceleration (6,) of the platform [m/s^2, rad/s^2], after `move`."""
        me, tail = self._state[self._places.carrier], self._places.tail
        arm, w = me["R"] @ tail[:3, 3], me["w"]
        linear = me["dv"] + np.cross(me["dw"], arm) + np.cross(w, np.cross(w, arm)) - self._state["dv"][0]
        return np.concatenate([linear, me["dw"]])

    def forward_jacobian(self) -> Array:
        """Platform twist per actuator velocities (6, n_actuated) at the present positions; stops the motion."""
        self.move(self._none)
        return self.platform().jacobian.copy()

    # -- dynamics ---------------------------------------------------------------------------------------------------

    def efforts(self, accelerations: Array) -> Array:
        """Efforts [N m or N] for actuator accelerations (n_actuated,); NaN if these do not determine the platform."""
        return self._solved(self._efforts, self.velocities, accelerations)

    def still(self, accelerations: Array) -> Array:
        """As `efforts`, of the robot at rest where it is; its velocities stay."""
        return self._solved(self._efforts, self._none, accelerations)

    def weight(self) -> Array:
        """Efforts (n_actuated,) [N m or N] that hold the robot at rest where it is; its velocities stay."""
        return self.still(self._none)

    def accelerations(self, efforts: Array) -> Array:
        """Accelerations (n_actuated,) under efforts (n_actuated,); NaN where these do not determine the platform."""
        return self._solved(self._accelerations, self.velocities, efforts)

    def _solved(self, kernel: Callable[..., int], velocities: Array, given: Array) -> Array:
        self._state["q"] = self._q
        found = np.zeros_like(self._none)
        status = kernel(self._model, self._data, velocities, np.array(given, dtype=np.float64), found)
        return found if status == Status.CONVERGED else np.full_like(found, np.nan)

    def step(self, efforts: Array, h: float, runge_kutta: bool = True) -> Status:
        """Advance `h` [s] under efforts (n_actuated,) by Runge-Kutta or semi-implicit Euler; no change on failure."""
        tau = np.ascontiguousarray(efforts, dtype=np.float64)
        rows = self._q, self.velocities, self._scratch
        return Status(self._step(self._model, self._data, runge_kutta, tau, h, *rows))
