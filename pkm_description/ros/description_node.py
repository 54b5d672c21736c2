# SPDX-License-Identifier: Apache-2.0
"""Publishes /robot_description where no robot_state_publisher does."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import String

from pkm_description.ros.parameters import declare
from pkm_description.ros.process import run_node
from pkm_description.ros.topics import LATCHED, ROBOT_DESCRIPTION


class DescriptionNode(Node):
    """Latches the text that it is given; its starter has expanded the robot's file."""

    def __init__(self) -> None:
        super().__init__("description")
        text = declare(self, "robot_description", "", "URDF+ text, the output of xacro for a robot's file", fixed=True)
        if not text:
            self.get_logger().error("the parameter robot_description is empty: there is no robot")
        self._publisher = self.create_publisher(String, ROBOT_DESCRIPTION, LATCHED)
        self._publisher.publish(String(data=text))


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(DescriptionNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
