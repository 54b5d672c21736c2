# SPDX-License-Identifier: Apache-2.0
"""Whether the positions at which drives are commanded to stay belong to a configuration of the robot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription
from pkm_kinematics.forward.tracker import TrackedMotion
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError

Array = NDArray[np.float64]

_STILL = 1e-6  # rad or m, between two looks
_APART = 1e-3  # rad, or of the characteristic length: by so much drives may be from where they can all be
_SILENT = 5  # looks


class CommandedPositions:
    """Subscriber to commands for drives with one loop each, which take any positions; logs problems.

    Between the points of a trajectory, positions are interpolated joint by joint, so that redundant drives are asked
    for what they cannot do all at once; what counts is where they stay. Commands by effort or velocity tell nothing.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self._node = node
        self._commands = PolledSubscription(node, JointState, topic, topics.STREAM_IN)
        self._wanted: Array | None = None
        self._judged = False
        self._silent = 0  # looks
        self.problem = ""

    def look(self, kinematics: Kinematics, last: TrackedMotion) -> None:
        """Process the received commands, with the robot at `last`; to be called a few times a second."""
        message = self._commands.take()
        self._silent = self._silent + 1 if message is None else 0
        if message is None:
            if self._silent > _SILENT:  # nobody commands any more
                self._wanted, self.problem = None, ""
            return
        try:
            wanted = messages.joint_values(message, kinematics.actuated_names, what="command")
        except PkmError:  # by effort, or NaN, as ros2_control sends until a controller commands
            self._wanted, self.problem = None, ""
            return
        if self._wanted is None or np.abs(wanted - self._wanted).max() > _STILL:
            self._wanted, self._judged, self.problem = wanted, False, ""
        elif not self._judged:
            self._judged, self.problem = True, unsuitable(kinematics, wanted, last)
            if self.problem:
                self._node.get_logger().warn(self.problem)


def unsuitable(kinematics: Kinematics, wanted: Array, last: TrackedMotion) -> str:
    """Why a robot at `last` cannot be held with its drives at `wanted` (n_actuated,) [rad or m]; empty if it can."""
    found = kinematics.forward(wanted, near=last.pose, seed=last.joints)
    if not closes(found.status):
        return f"the commanded drive positions have no pose of the platform: {found.reason(0)}"
    turning = kinematics.engine.actuated_turning
    had = kinematics.inverse(found.pose, seed=found.joints).actuated  # redundant drives come near to `wanted` at best
    apart = np.abs(np.asarray(had) - wanted)
    worst = int(np.argmax(apart / np.where(turning, 1.0, kinematics.characteristic_length)))
    name = kinematics.actuated_names[worst]
    if apart[worst] > _APART * (1.0 if turning[worst] else kinematics.characteristic_length):
        off = f"{1e3 * apart[worst]:.3g} {'mrad' if turning[worst] else 'mm'}"
        return f"the commanded drive positions are inconsistent: {name} is off by {off}; the drives push each other"
    beyond = kinematics.limit_violations(found.joints)
    return f"the commanded drive positions are beyond limits: {'; '.join(beyond)}" if beyond else ""
