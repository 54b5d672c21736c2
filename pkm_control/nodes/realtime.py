# SPDX-License-Identifier: Apache-2.0
"""The parameter of a node that says how its loop is scheduled."""

from __future__ import annotations

from rclpy.node import Node

from pkm_control.loop.fixed_rate import PRIORITY
from pkm_control.loop.scheduling import LoopScheduling
from pkm_description.ros.parameters import declare


def loop_scheduling(node: Node) -> LoopScheduling:
    """What gives the loop of a node its priority; the node gets the parameter `realtime_priority`."""
    text = "SCHED_FIFO priority of the loop's thread, where permitted; 0: ordinary scheduling"
    priority = int(declare(node, "realtime_priority", PRIORITY, text, (0, 98), fixed=True))
    return LoopScheduling(priority, node.get_logger().info)
