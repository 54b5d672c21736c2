# SPDX-License-Identifier: Apache-2.0
"""A robot over ROS, with what planning and motions need."""

from __future__ import annotations

from functools import cached_property

from geometry_msgs.msg import InertiaStamped

from pkm_control.client.ros.goal import RosGoal
from pkm_control.client.ros.link import RosLink
from pkm_control.hardware.make_machine import limits_by_file
from pkm_control.loop.follower import Tolerances
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.nodes import motion_messages
from pkm_control.operation.motion_points import MotionPoints
from pkm_description.load import shared_mechanism
from pkm_description.mechanism import Inertial, Mechanism
from pkm_description.ros import topics
from pkm_dynamics.ros.dynamics_services import payload_of


class RosBackend(RosLink):
    """A link, the robot's description, and its motions.

    Args:
        namespace: of the robot's nodes.
        timeout: how long it may take to find them [s].
        hardware_file: path of the machine's file, for its limits; empty: none.
        ready: wait for the first reading of the machine, too, as long as the timeout lets.

    Raises:
        NoRobotError: they do not answer in that time; says what is missing.
        ValueError: no such namespace can be.
    """

    def __init__(self, namespace: str, timeout: float, hardware_file: str = "", ready: bool = True) -> None:
        super().__init__(namespace, timeout, ready)
        self._hardware_file = hardware_file
        self.payload: Inertial | None = None
        self._node.create_subscription(InertiaStamped, topics.PAYLOAD, self._carries, topics.LATCHED)

    def _carries(self, message: InertiaStamped) -> None:
        self.payload = payload_of(message.inertia)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The robot as its nodes have it."""
        return shared_mechanism(self._text)

    @cached_property
    def limits(self) -> ActuatorLimits:
        """Of its actuators."""
        return limits_by_file(self.mechanism, self._hardware_file)

    def begin(self, motion: MotionPoints, tolerances: Tolerances) -> RosGoal:
        """Send a motion to the controller."""
        self._require_open()
        goal = motion_messages.goal_message(motion, tolerances, self.mechanism.base_link)
        duration = float(motion.times[-1]) * motion.repetitions
        return RosGoal(self._action, self._executor.create_task, goal, duration, self._silence)
