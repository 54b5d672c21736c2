# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to the motion of the whole robot, with the promise of forward kinematics.

One tracker serves nodes, controllers and observers: its answer continues the last one, in the same working and assembly
mode, or is a status. A reading takes one compiled call: in a constant motion space of the path on the pose alone, else
of the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.forward.mode_tracker import Modes, ModeTracker
from pkm_kinematics.kernels.model_and_data import SEEDED, near
from pkm_kinematics.kernels.path.track_reading import track_reading
from pkm_kinematics.kernels.short_vectors import all_finite
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.status import Status, closes
from pkm_runtime.kernels.binding import bind

Array = NDArray[np.float64]
UNKNOWN = Modes("", "")


@dataclass(frozen=True, eq=False)
class TrackedMotion:
    """The robot's motion from actuator readings.

    Where `status` is neither CONVERGED nor JOINT_LIMIT, `reason` says why, and the other values are the last good ones.
    """

    status: Status
    reason: str
    pose: Array  # (7,)
    twist: Array  # (6,) linear, angular; base frame, at the platform's origin
    joints: Array  # (n_joints,)
    velocities: Array  # (n_joints,)
    residual: float  # largest error of an actuated joint, rad or m
    jacobian: Array  # (6, n_actuated) platform twist per actuated joint rates


class Tracker:
    """Tracks one machine from a pose (7,) and joints (n_joints,), by default home in its mode. Not thread-safe."""

    def __init__(self, kinematics: Kinematics, pose: Array | None = None, joints: Array | None = None) -> None:
        self.kinematics = kinematics
        start = np.array(kinematics.home if pose is None else pose, dtype=np.float64)
        if joints is None:
            joints = kinematics.home_joints if pose is None else kinematics.inverse(start, mode=0).joints
        self._beside = self._is_beside(start, joints)
        self._placed: TrackedMotion | None = None  # where the graph stands
        rest, unknown = np.zeros(len(joints)), np.full((6, len(kinematics.actuated_names)), np.nan)
        self.last = TrackedMotion(
            Status.DIVERGED, "no reading yet", start, np.zeros(6), np.array(joints), rest, 0.0, unknown
        )

    def _is_beside(self, pose: Array, joints: Array) -> bool:
        """Whether the path on the pose alone would leave a configuration: varying space, or beside closed forms."""
        if not self.kinematics.constant_space or self.kinematics.redundant_names:
            return True
        seeds = near(np.array(joints), 1, SEEDED)
        return len(self.kinematics.engine.positions.rows_off_closed_form_branches(np.array(pose)[None], seeds)) > 0

    def observe(self, positions: Array, velocities: Array) -> TrackedMotion:
        """The motion for actuator positions [rad, m] and velocities [rad/s, m/s] (n_actuated,)."""
        q, qd = np.array(positions, dtype=np.float64), np.array(velocities, dtype=np.float64)
        if not (all_finite(q) and all_finite(qd)):
            return self._lost(Status.INVALID_INPUT, "an actuator reading is not finite", 0.0)
        found = self._on_the_graph(q, qd) if self._beside else self._straight_on(q, qd)
        return found or self.from_pose(q, qd, self.last.pose, self.last.joints)

    def _on_the_graph(self, q: Array, qd: Array) -> TrackedMotion | None:
        """The motion by the whole graph, in one compiled call; None where actuators are redundant, or the path ends."""
        if self._graph is None:
            return None
        if self._placed is not self.last:
            self._graph.place(self.last.pose, self.last.joints)
        status, gap, _, to = self._graph.observe(q, qd)
        if not closes(status):
            return None
        self._placed = self._found(status, to.pose, to.twist, to.joints, to.velocities, gap, to.jacobian)
        return self._placed

    @cached_property
    def _graph(self) -> GraphTracker | None:
        return GraphTracker(self.kinematics.engine) if GraphTracker.serves(self.kinematics.engine) else None

    def _straight_on(self, q: Array, qd: Array) -> TrackedMotion | None:
        """The motion where the platform's path alone leads on from the last one, in one compiled call; else None."""
        pose, joints = np.array(self.last.pose), np.array(self.last.joints)
        twist, rates, jacobian = np.empty(6), np.zeros(len(joints)), np.empty((6, len(q)))
        status, error = self._track(q, qd, pose, joints, twist, rates, jacobian)
        if not closes(status):
            return None
        return self._found(Status(status), pose, twist, joints, rates, error, jacobian)

    @cached_property
    def _track(self) -> Callable[..., Any]:
        k, e = self.kinematics, self.kinematics.engine
        joints, data = np.array(k.home_joints), e.data()
        q, rest = joints[e.actuated_column], np.zeros(len(joints))
        example = q, np.zeros(len(q)), np.array(k.home), joints, np.zeros(6), rest, np.empty((6, len(q)))
        return bind(track_reading, (e.model, data), example)

    def from_pose(self, q: Array, qd: Array, pose: Array, joints: Array) -> TrackedMotion:
        """The motion that continues a configuration, even through type 1 singularities or in a varying motion space."""
        k = self.kinematics
        solution = k.forward(q, near=pose, seed=joints)
        status = Status(int(solution.status))
        if not closes(status):
            return self._lost(status, f"forward kinematics: {solution.reason(0)}", float(solution.residual))
        jacobian = np.asarray(solution.configuration.forward_jacobian)
        if not np.isfinite(jacobian).all():
            reason = "the platform's twist is not determined by the actuators (type 2 singularity)"
            return self._lost(Status.SINGULAR, reason, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # the rates of what overflows are refused below
            twist = jacobian @ qd
        if not np.isfinite(twist).all():
            return self._lost(Status.INVALID_INPUT, "an actuator velocity is too large", 0.0)
        at = solution.configuration
        motion = at.motion(at.coordinate_rates(qd) if k.redundant_names else twist)
        if not (np.isfinite(motion.joints).all() and np.isfinite(motion.velocities).all()):
            return self._lost(Status(int(motion.status)), "the passive joints have no solution there", 0.0)
        self._beside = self._is_beside(solution.pose, motion.joints)
        status, error = Status(int(motion.status)), float(solution.residual)  # forward kinematics asks no limits
        return self._found(status, solution.pose, twist, motion.joints, motion.velocities, error, jacobian)

    def _found(
        self, status: Status, pose: Array, twist: Array, joints: Array, rates: Array, error: float, jacobian: Array
    ) -> TrackedMotion:
        reason = "" if status is Status.CONVERGED else "; ".join(self.kinematics.limit_violations(joints))
        self.last = TrackedMotion(status, reason, pose, twist, joints, rates, error, jacobian)
        return self.last

    def _lost(self, status: Status, reason: str, error: float) -> TrackedMotion:
        last = self.last
        return TrackedMotion(status, reason, last.pose, last.twist, last.joints, last.velocities, error, last.jacobian)


class AssemblyModeTracker:
    """A tracker that labels modes, and finds a machine again that was moved by hand or restarted.

    It starts at home, and tries readings from there that do not continue the last pose. `modes` are the last answer's.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self.tracking = False
        self.modes = UNKNOWN
        self._tracker = Tracker(kinematics)
        self._names = ModeTracker(kinematics)

    @property
    def last(self) -> TrackedMotion:
        """The last known motion."""
        return self._tracker.last

    def observe(self, positions: Array, velocities: Array) -> TrackedMotion:
        """The motion for actuator positions [rad, m] and velocities [rad/s, m/s] (n_actuated,)."""
        k, found = self.kinematics, self._tracker.observe(positions, velocities)
        if not closes(found.status) and np.isfinite(positions).all() and np.isfinite(velocities).all():
            again = self._tracker.from_pose(np.array(positions), np.array(velocities), k.home, k.home_joints)
            found = again if again.status is Status.CONVERGED else found
        self.tracking = closes(found.status)
        self.modes = self._names.observe(found.pose, found.joints) if self.tracking else UNKNOWN
        return found
