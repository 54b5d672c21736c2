# SPDX-License-Identifier: Apache-2.0
"""The parameter of a node for the scheduling of its loop."""

from __future__ import annotations

from rclpy.node import Node

from pkm_control.loop.fixed_rate import PRIORITY
from pkm_control.loop.scheduling import LoopScheduling
from pkm_description.ros.parameters import declare


def realtime_priority(node: Node) -> int:
    """Declare the parameter; return its value."""
    text = "SCHED_FIFO priority of the loop, where permitted; 0: ordinary scheduling"
    return int(declare(node, "realtime_priority", PRIORITY, text, (0, 98), fixed=True))


def loop_scheduling(node: Node, priority: int) -> LoopScheduling:
    """The scheduling of a loop's thread in a node's process."""
    return LoopScheduling(priority, node.get_logger().info)
