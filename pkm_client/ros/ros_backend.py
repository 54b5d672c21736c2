# SPDX-License-Identifier: Apache-2.0
"""The backend for a robot over ROS: a link with the description and the motions."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

from geometry_msgs.msg import InertiaStamped
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from pkm_client.backend import Result
from pkm_client.ros.link import RosLink
from pkm_control.conveyor.conveyor import BeltState, Conveyor, conveyor_named, read_conveyors
from pkm_control.loop.followed_motion import ERRORS, Tolerances
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import Outcome
from pkm_control.ros import motion_messages
from pkm_control.ros.motion_messages import seconds
from pkm_description.from_urdf import shared_mechanism
from pkm_description.mechanism import Inertial, Mechanism
from pkm_description.ros import topics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_runtime.errors import shortened

_WATCH = 0.2  # s, between two looks whether the controller is still there


class RosGoal:
    """Sends a goal, a message of a motion of some duration [s], repetitions included, and keeps feedback and result.

    `in_executor` calls a function in the spinning thread: an action client notes a request after sending it, so that
    another thread may miss the answer. `silence` says why nobody answers any more; empty while somebody does.
    """

    def __init__(
        self,
        client: ActionClient,
        in_executor: Callable[[Callable[[], Any]], Any],
        goal: Any,
        duration: float,
        silence: Callable[[], str],
    ) -> None:
        self._in_executor = in_executor
        self._duration = duration
        self._silence = silence
        self.share = 0.0  # how much of the motion is done, 0 to 1
        self._begun = threading.Event()
        self._over = threading.Event()
        self._result = Result()
        self._handle: Any = None
        self._cancelled = False
        in_executor(lambda: client.send_goal_async(goal, feedback_callback=self._heard).add_done_callback(self._sent))

    def wait_begun(self) -> bool:
        """Wait until it is admitted or refused; True: admitted."""
        while not (self._begun.wait(_WATCH) or self._over.is_set()):
            self._look()
        return not (self._over.is_set() and self._result.outcome is Outcome.INVALID_GOAL)

    def wait(self) -> Result:
        """Wait for its end."""
        while not self._over.wait(_WATCH):
            self._look()
        return self._result

    def cancel(self) -> None:
        """End it on its path, or keep it from beginning."""
        self._cancelled = True
        if self._handle is not None and not self._over.is_set():
            self._in_executor(self._handle.cancel_goal_async)

    def _look(self) -> None:
        why = self._silence()
        if why and not self._over.is_set():
            self._end(Result(Outcome.STATE_LOST, why))

    def _heard(self, message: Any) -> None:
        if self._duration > 0.0:
            self.share = seconds(message.feedback.reference.time_from_start) / self._duration
        self._begun.set()

    def _sent(self, future: Any) -> None:
        self._handle = future.result()
        if not self._handle.accepted:
            self._end(Result(Outcome.INVALID_GOAL, "the controller did not take the goal"))
            return
        self._handle.get_result_async().add_done_callback(self._done)
        if self._cancelled:
            self._handle.cancel_goal_async()

    def _done(self, future: Any) -> None:
        result = future.result().result
        errors = {name: getattr(result, name) for name in ERRORS}
        self._end(Result(Outcome(result.error_code), result.error_string, **errors))

    def _end(self, result: Result) -> None:
        self._result = result
        self._over.set()
        self._begun.set()


_PATIENCE = 2.0  # s, in which the controller speaks of its belts
_LOOK = 0.01  # s


class RosBackend(RosLink):
    """A link, a description, motions; `conveyor_file` is the controller's or empty (`ConfigurationError`: unusable)."""

    def __init__(self, namespace: str, timeout: float, ready: bool = True, conveyor_file: str = "") -> None:
        self._conveyors = {one.name: one for one in read_conveyors(conveyor_file)}
        self._belts: dict[str, tuple[float, float, float]] = {}  # travel, speed, when that came: s, monotonic clock
        self.payload: Inertial | None = None
        self._refused = "none came"
        self._loads = False  # the controller has said what the platform carries
        self._limits: JointTrajectory | None = None
        super().__init__(namespace, timeout, ready)
        if self._conveyors:
            self._node.create_subscription(JointState, topics.CONVEYOR_STATES, self._conveyed, topics.STREAM_IN)

    def _subscribe(self, node: Node) -> None:
        node.create_subscription(InertiaStamped, topics.PAYLOAD, self._carries, topics.LATCHED)
        node.create_subscription(JointTrajectory, topics.ACTUATOR_LIMITS, self._limited, topics.LATCHED)

    def _missing(self) -> list[str]:
        missing = super()._missing() + ([] if self._loads else [topics.PAYLOAD])
        missing += [] if self._limits is not None else [topics.ACTUATOR_LIMITS]
        return [f"{name} ({self._refused})" if name == topics.ROBOT_DESCRIPTION else name for name in missing]

    def _described(self, message: String) -> None:
        """Keep the first usable text: nodes refuse others too, and go on listening."""
        try:
            if not self._text:
                shared_mechanism(message.data)
        except Exception as error:  # whatever a text brings about, the client goes on listening
            self._refused = f"what came cannot be used: {shortened(str(error))}"
        else:
            super()._described(message)

    def _carries(self, message: InertiaStamped) -> None:
        self.payload, self._loads = payload_of(message.inertia), True

    def _limited(self, message: JointTrajectory) -> None:
        self._limits = message

    @cached_property
    def mechanism(self) -> Mechanism:
        """The robot's description as its nodes have it."""
        return shared_mechanism(self._text)

    @cached_property
    def limits(self) -> ActuatorLimits:
        """Limits of the robot's actuators, as the controller keeps them."""
        assert self._limits is not None
        return motion_messages.limits_of_message(self._limits, ActuatorLimits.of(self.mechanism))

    def belt(self, name: str) -> tuple[Conveyor, BeltState]:
        """A conveyor and its state as the controller tells it, extrapolated to now; waits for the first message."""
        self._require_open()
        conveyor = conveyor_named(self._conveyors, name)
        until = time.monotonic() + _PATIENCE
        while name not in self._belts and time.monotonic() < until:
            time.sleep(_LOOK)
        travel, speed, heard = self._belts.get(name, (math.nan, math.nan, -math.inf))
        passed = time.monotonic() - heard
        if passed > _PATIENCE:
            return conveyor, BeltState(travel, speed, f"the controller says nothing of conveyor '{name}'")
        if not math.isfinite(travel):
            return conveyor, BeltState(
                travel, speed, f"the controller receives no usable readings of conveyor '{name}'"
            )
        return conveyor, BeltState(travel + speed * passed, speed)

    def _conveyed(self, message: JointState) -> None:
        now = time.monotonic()
        for name, travel, speed in zip(message.name, message.position, message.velocity, strict=False):
            self._belts[name] = (travel, speed, now)

    def begin(self, motion: MotionPoints, tolerances: Tolerances, asked: float) -> RosGoal:
        """Send a motion to the controller."""
        self._require_open()
        age, redundant = time.monotonic() - asked, self.mechanism.redundant_joints
        goal = motion_messages.goal_message(motion, tolerances, self.mechanism.base_link, age, redundant)
        duration = float(motion.times[-1]) * motion.repetitions
        return RosGoal(self._action, self._executor.create_task, goal, duration, self._silence)
