# SPDX-License-Identifier: Apache-2.0
"""Publishes /robot_description where no robot_state_publisher does."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import String

from pkm_description.load import expand
from pkm_description.ros.parameters import declare
from pkm_description.ros.process import run_node
from pkm_description.ros.topics import LATCHED, ROBOT_DESCRIPTION


class DescriptionNode(Node):
    """Expands the robot's file once and latches the text."""

    def __init__(self) -> None:
        super().__init__("description")
        robot = declare(self, "robot", "delta", "a robot of the gallery, or a .xacro or .urdf file", fixed=True)
        arguments = declare(
            self, "xacro_args", "", "arguments of the xacro file: 'name:=value name:=value'", fixed=True
        )
        pairs = dict(pair.split(":=", 1) for pair in arguments.split())
        text, _ = expand(robot, pairs)
        self._publisher = self.create_publisher(String, ROBOT_DESCRIPTION, LATCHED)
        self._publisher.publish(String(data=text))


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(DescriptionNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
