# SPDX-License-Identifier: Apache-2.0
"""Real-time scheduling for the process of a control loop, where the system allows it."""

from __future__ import annotations

import gc
import os
import sys

from rclpy.node import Node

from pkm_description.ros.parameters import declare

_SWITCH_INTERVAL = 2e-4  # s, after which a thread that waits for the interpreter gets it; Python's default is 5 ms


def declare_priority(node: Node) -> int:
    """Declare the parameter that sets the priority, and return it."""
    text = "SCHED_FIFO priority of the process, where permitted; 0: ordinary scheduling"
    return int(declare(node, "realtime_priority", 40, text, (0, 99), fixed=True))


def request_realtime(node: Node, priority: int) -> None:
    """Run this process before all ordinary ones: SCHED_FIFO at `priority` (1 to 99); 0 leaves things as they are.

    All threads that exist by now, those of DDS too, which carry the messages; later ones inherit it. Without the
    permission (`ulimit -r`; see the docs of ros2_control on real-time kernels) the node runs as any other and says so.
    Objects that exist by now are kept out of garbage collection, which would take longer than a period.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()
    if priority == 0 or (os.cpu_count() or 1) < 2:  # on a single core nobody else would get any time
        return
    try:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        text = f"no real-time scheduling ({error.strerror}): deadlines depend on the load of the computer"
        node.get_logger().info(text)
