# SPDX-License-Identifier: Apache-2.0
"""The kinematics as a ROS node: two services, the complete joint states, the state of the platform."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from pkm_description.mechanism import JointType, Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.messages import answered
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import Age, OwnThread, steady_timer
from pkm_description.ros.polled import PolledSubscription, Sources
from pkm_description.ros.process import run_node
from pkm_description.ros.raw_rows import RawRows, RowPublisher, joint_rows
from pkm_description.ros.robot_description import RobotDescription
from pkm_interfaces.msg import PlatformState, SolveStatus
from pkm_interfaces.srv import SolveForward, SolveInverse
from pkm_kinematics.forward.tracker import AssemblyModeTracker, TrackedMotion
from pkm_kinematics.kinematics import shared_kinematics
from pkm_kinematics.ros.kinematics_services import CommandedPositions, solve_forward, solve_inverse
from pkm_runtime.errors import PkmError

_MARGINS_EVERY = 0.1  # s: people read them; they cost more than all else that a state holds


class KinematicsNode(Node):
    """Solves on request, and tracks the robot from the states of its actuated joints."""

    def __init__(self) -> None:
        super().__init__("kinematics")
        rate = declare(
            self, "publish_rate", 100.0, "highest rate of the published states, Hz", (1.0, 2000.0), fixed=True
        )
        declare(self, "stale_after", 0.1, "a state older than this is reported as lost, s", (0.001, 10.0))
        declare(self, "path_step", 0.002, "distance between two points of the path, m", (1e-5, 1.0))
        declare(self, "path_points", 1000, "points of the path that are kept", (2, 100000))
        text = "topic of position commands from controllers of single joints, checked at rest; empty: none"
        commands: str = declare(self, "commands", "", text, fixed=True)
        self._commanded = CommandedPositions(self, commands) if commands else None
        self._lock = threading.Lock()  # of what follows, which the tracking thread and the executor's use
        self._tracker: AssemblyModeTracker | None = None
        self._path = Path()
        self._passed: list[tuple[Any, NDArray[np.float64]]] = []  # stamps and poses that are not in the path yet
        self._place = [math.inf] * 3  # m: the newest of them
        self._path_seen_by = 0  # number of subscribers that have the present path
        self._margins_at = -math.inf  # s, monotonic: when the margins were computed
        self._mode_change = ""  # the last one
        self._unreported = False
        self._refused = "no state of the actuated joints has come yet"
        self._heard = Age(self)
        self._joints_out = self.create_publisher(JointState, topics.JOINT_STATES, topics.STREAM_OUT)
        self._state_out = self.create_publisher(PlatformState, topics.PLATFORM_STATE, topics.STREAM_OUT)
        self._path_out = self.create_publisher(Path, topics.PLATFORM_PATH, topics.LATCHED)
        self._description = RobotDescription(self, self._build, self._busy)
        self._read_parameters()
        self._sources = Sources(self, topics.ACTUATED_JOINT_STATES, "measured states")
        self._states = PolledSubscription(
            self, JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_IN, raw=True, sources=self._sources
        )
        self._tracking = OwnThread(self, 1.0 / rate, self._poll)
        self.create_service(SolveInverse, topics.SOLVE_INVERSE, partial(self._answer, solve_inverse, "joints"))
        self.create_service(SolveForward, topics.SOLVE_FORWARD, partial(self._answer, solve_forward, "pose"))
        steady_timer(self, 0.2, self._slowly)
        self._diagnostics = diagnostics.Diagnostics(self, self._report, self._description)

    def _build(self, mechanism: Mechanism) -> None:
        tracker = AssemblyModeTracker(shared_kinematics(mechanism))
        sliding = {mechanism.joint_named[name].type is JointType.PRISMATIC for name in mechanism.actuated_joints}
        with self._lock:
            self._tracker = tracker
            self._readings = RawRows(JointState, partial(_reading, tracker.kinematics.actuated_names), 3, 8)
            self._joint_rows = joint_rows(self._joints_out, tracker.kinematics.joint_names, *messages.READINGS[:2])
            self._margins_at = -math.inf
            self._words: tuple[object, ...] = ()
            self._mode_change, self._unreported = "", False
            self._path, self._passed, self._place = Path(), [], [math.inf] * 3
            self._path.header.frame_id = mechanism.base_link
            self._rate_unit = "actuator unit/s" if len(sliding) > 1 else "m/s" if sliding == {True} else "rad/s"

    def _busy(self) -> str:
        return "" if self._lost() else "states of the actuated joints come; clean up the hardware first"

    def destroy_node(self) -> None:
        """End the tracking before its publishers go."""
        self._tracking.end()
        super().destroy_node()

    def _read_parameters(self) -> None:
        self._max_age: float = self.get_parameter("stale_after").value
        self._path_step = self.get_parameter("path_step").value
        self._path_points = self.get_parameter("path_points").value

    # Services

    def _answer(self, solve: Callable[..., None], measured: str, request: Any, response: Any) -> Any:
        if self._tracker is None:
            response.status = messages.status(SolveStatus.NOT_READY, self._description.problem)
            return response
        tracker = self._tracker
        now = getattr(tracker.last, measured) if tracker.tracking else None
        return answered(self, response, lambda: solve(tracker.kinematics, request, response, now))

    # Tracking, which does not wait for the services

    def _poll(self) -> None:
        message = self._states.take()
        if message is not None:
            with self._lock:
                self._measured(message)

    def _measured(self, message: bytes) -> None:
        if self._tracker is None:
            return
        self._heard.note()
        try:
            stamp, numbers = self._readings.row(message)
            self._refused = self._sources.problem
        except PkmError as error:
            self._refused = str(error)
        if self._refused:
            return
        positions, velocities, _ = np.split(numbers, 3)
        self._publish(stamp, self._tracker.observe(positions, velocities))

    def _publish(self, stamp: Any, motion: TrackedMotion) -> None:
        assert self._tracker is not None
        tracking, modes, now = self._tracker.tracking, self._tracker.modes, time.monotonic()
        words = motion.status, motion.reason, tracking, modes.working, modes.assembly
        heard = self._state_out.get_subscription_count() > 0
        if heard and (words != self._words or now - self._margins_at >= _MARGINS_EVERY):
            self._words, self._margins_at = words, now
            self._state_rows = RowPublisher(self._state_out, partial(self._moving, self._platform_message(motion)), 14)
        if tracking:
            if modes.change:
                self._mode_change, self._unreported = modes.change, True
                self.get_logger().warn(modes.change)
            if self._joints_out.get_subscription_count():
                self._joint_rows.publish(stamp, np.concatenate((motion.joints, motion.velocities)))
            self._extend_path(stamp, motion.pose)
        if heard:
            self._state_rows.publish(stamp, np.concatenate((motion.pose, motion.twist, (motion.residual,))))

    def _platform_message(self, motion: TrackedMotion) -> PlatformState:
        assert self._tracker is not None
        kinematics, state = self._tracker.kinematics, self._state_message(Time())
        state.status = messages.status(motion.status, motion.reason)
        if self._tracker.tracking:
            margins = kinematics.singularity(motion.pose, seed=motion.joints)
            state.type1_distance, state.type2_distance = float(margins.type1), float(margins.type2)
            state.constraint_distance = float(margins.constraint_hold)
            state.limb_distance = float(margins.limb_regularity)
            shares = kinematics.engine.ranges.shares(motion.joints)
            nearest = int(np.where(np.isnan(shares), np.inf, shares).argmin())
            state.limit_margin = float(shares[nearest])
            state.limit_joint = kinematics.joint_names[nearest] if np.isfinite(shares[nearest]) else ""
            state.type1_unit, state.type2_unit = f"m/s per {self._rate_unit}", f"{self._rate_unit} per m/s"
            modes = self._tracker.modes
            state.working_mode, state.assembly_mode = modes.working, modes.assembly
        return state

    @staticmethod
    def _moving(state: PlatformState, stamp: Any, numbers: NDArray[np.float64]) -> PlatformState:
        """The state with `numbers` in it: pose, twist and residual, one after the other."""
        state.header.stamp = stamp
        state.pose, state.twist = messages.to_pose(numbers[:7]), messages.to_twist(numbers[7:13])
        state.residual = float(numbers[13])
        return state

    def _state_message(self, stamp: Any) -> PlatformState:
        assert self._tracker is not None
        mechanism = self._tracker.kinematics.mechanism
        header = Header(stamp=stamp, frame_id=mechanism.base_link)
        state = PlatformState(header=header, child_frame_id=mechanism.platform_link)
        state.type1_distance = state.type2_distance = state.constraint_distance = float("nan")
        state.limb_distance = state.limit_margin = float("nan")
        return state

    def _extend_path(self, stamp: Any, pose: NDArray[np.float64]) -> None:
        place = pose[:3].tolist()
        if math.dist(place, self._place) >= self._path_step:
            self._place = place
            self._passed.append((stamp, pose))
            del self._passed[: -self._path_points]

    # Now and then

    def _slowly(self) -> None:
        self._read_parameters()
        if self._tracker is None:
            return
        with self._lock:
            self._publish_path()
        if self._commanded is not None:
            self._commanded.look(self._tracker.kinematics, self._tracker.last)
        reason = self._lost()
        if reason:
            state = self._state_message(self.get_clock().now().to_msg())
            state.status = messages.status(SolveStatus.NOT_READY, reason)
            self._state_out.publish(state)

    def _publish_path(self) -> None:
        """Publish the path for new subscribers only: it is long."""
        listeners = self._path_out.get_subscription_count()
        if listeners:
            for stamp, pose in self._passed:
                header = Header(stamp=stamp, frame_id=self._path.header.frame_id)
                self._path.poses.append(PoseStamped(header=header, pose=messages.to_pose(pose)))
            self._passed = []
            del self._path.poses[: -self._path_points]
        if not self._path.poses or not listeners:
            self._path_seen_by = 0
            return
        stamp = self._path.poses[-1].header.stamp
        if listeners > self._path_seen_by or stamp != self._path.header.stamp:
            self._path.header.stamp, self._path_seen_by = stamp, listeners
            self._path_out.publish(self._path)

    def _lost(self) -> str:
        """Why there is no measured state to work with; empty if there is one."""
        if self._refused:
            return self._refused
        age = self._heard.seconds
        if age > self._max_age:
            return f"the actuated joint states have been silent for {age:.2f} s"
        return ""

    def _report(self) -> diagnostics.Report:
        if self._tracker is None:
            return diagnostics.ERROR, self._description.problem, {}
        if self._sources.look():
            return diagnostics.ERROR, self._sources.problem, {}
        values = {"robot": self._tracker.kinematics.mechanism.name, "residual": self._tracker.last.residual}
        reason = self._lost()
        if reason:
            return diagnostics.STALE, reason, values
        if not self._tracker.tracking:
            return diagnostics.ERROR, self._tracker.last.reason or "the measured state has no solution", values
        modes = self._tracker.modes
        values.update({"working_mode": modes.working, "assembly_mode": modes.assembly, "change": self._mode_change})
        if self._unreported:
            self._unreported = False
            return diagnostics.WARN, self._mode_change, values
        if self._commanded is not None and self._commanded.problem:
            return diagnostics.WARN, self._commanded.problem, values
        return diagnostics.OK, "tracking", values


def _reading(names: Sequence[str], message: JointState) -> NDArray[np.float64]:
    """Positions, velocities and efforts of the actuated joints (3 n,); velocities are 0 where the message has none."""
    if message.velocity:
        return messages.reading_of(names, message)
    return np.concatenate((messages.joint_values(message, names, what="measured state"), np.zeros(2 * len(names))))


main = partial(run_node, KinematicsNode)
