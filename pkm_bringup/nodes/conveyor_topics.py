# SPDX-License-Identifier: Apache-2.0
"""Encoders of conveyors as topics, and the controller's knowledge of their belts."""

from __future__ import annotations

import math
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor import read_conveyors
from pkm_description.ros import topics
from pkm_description.ros.streams.polled import PolledSubscription

_MOST = 50  # readings of one topic in a period


class ConveyorTopics:
    """Subscribes to the encoders of a file's conveyors, and publishes the state of the belts.
    Without a conveyor, or with an empty path, there are no topics. ConfigurationError where the file cannot be used.
    """

    def __init__(self, node: Node, path: str) -> None:
        self.conveyors = read_conveyors(path)
        self._encoders = {
            topic: PolledSubscription(node, JointState, topic, topics.EVENTS)
            for topic in dict.fromkeys(one.topic for one in self.conveyors)
        }
        self._states = node.create_publisher(JointState, topics.CONVEYOR_STATES, topics.STREAM_OUT) if path else None
        self._belts = {one.name: Belt(one) for one in self.conveyors}  # for what is published; the loop has its own

    def hear(self) -> list[tuple[str, float, float]]:
        """Name of the conveyor, stamp [s] and reading of each message since the last call."""
        found = []
        for topic, encoder in self._encoders.items():
            for message, _ in encoder.take_all(_MOST):
                positions = dict(zip(message.name, message.position, strict=False))
                stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
                for one in self.conveyors:
                    if one.topic == topic and one.joint in positions:
                        found.append((one.name, stamp, positions[one.joint]))
                        self._belts[one.name].hear(stamp, positions[one.joint])
        return found

    def publish(self, stamp: Any) -> None:
        """Publish the belts with the stamp of the machine's readings; unknown travel and speed are NaN."""
        if self._states is None:
            return
        time = stamp.sec + 1e-9 * stamp.nanosec
        known = [belt.state(time) for belt in self._belts.values()]
        message = JointState(
            name=list(self._belts),
            position=[math.nan if one.problem else one.travel for one in known],
            velocity=[math.nan if one.problem else one.speed for one in known],
        )
        message.header.stamp = stamp
        self._states.publish(message)

    def report(self, time: float) -> tuple[str, dict[str, str]]:
        """For diagnostics at `time` [s] of the node's clock: the first problem, if any, and words for each belt."""
        states = {name: belt.state(time) for name, belt in self._belts.items()}
        problem = next((one.problem for one in states.values() if one.problem), "")
        return problem, {f"conveyor {name}": one.problem or f"{one.speed:.3f} m/s" for name, one in states.items()}
