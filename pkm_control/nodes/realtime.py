# SPDX-License-Identifier: Apache-2.0
"""Real-time scheduling for the thread of a control loop, where somebody asks for it and the system allows it."""

from __future__ import annotations

import gc
import os
import sys
import threading

from rclpy.node import Node

from pkm_description.ros.parameters import declare

_SWITCH_INTERVAL = 2e-4  # s, after which a thread that waits for the interpreter gets it; Python's default is 5 ms


class RealTime:
    """How the loop of a node is scheduled: `settle` once its robot is built, `request` from the loop's own thread.

    Only that thread goes before ordinary ones, and what it starts does not inherit it: a fault of Python code, or
    kernels that are compiled, must not take the computer from those who would stop them.

    Args:
        node: gets the parameter `realtime_priority`, which is 0 by default: ordinary scheduling.
    """

    def __init__(self, node: Node) -> None:
        sys.setswitchinterval(_SWITCH_INTERVAL)
        self._node = node
        text = "SCHED_FIFO priority of the loop's thread, where permitted; 0: ordinary scheduling"
        self._priority = int(declare(node, "realtime_priority", 0, text, (0, 99), fixed=True))

    def settle(self) -> None:
        """Keep what exists by now out of garbage collection, which would take longer than a period."""
        gc.collect()
        gc.freeze()

    def request(self) -> None:
        """Run the thread that calls before all ordinary ones.

        Without the permission (`ulimit -r`; see the docs of ros2_control on real-time kernels) it runs as any other,
        and the node says so.
        """
        if self._priority == 0 or (os.cpu_count() or 1) < 2:  # on a single core nobody else would get any time
            return
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        try:
            os.sched_setscheduler(threading.get_native_id(), policy, os.sched_param(self._priority))
        except OSError as error:
            text = f"no real-time scheduling ({error.strerror}): deadlines depend on the load of the computer"
            self._node.get_logger().info(text)
