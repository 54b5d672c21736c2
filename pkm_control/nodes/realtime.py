# SPDX-License-Identifier: Apache-2.0
"""Scheduling of the thread of a control loop: short slices, and real time where the system allows it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import struct
import sys
import threading
from pathlib import Path

from rclpy.node import Node

from pkm_control.loop.fixed_rate import PRIORITY
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer

_SWITCH_INTERVAL = 2e-4  # s, after which a thread that waits for the interpreter gets it; Python's default is 5 ms
_FOLLOW_AFTER = 0.2  # s
_MIDDLEWARE = "dds."  # how Fast DDS begins the names of its threads, without which a loop waits for its messages

_SLICE = 100_000  # ns: what a loop computes in a period is two or three of them
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # number of the system call, which libc does not wrap everywhere
_SCHED_ATTR = struct.Struct("IIQiIQQQII")  # struct sched_attr of linux/sched/types.h, with size and policy before all


def ask_for_short_slices() -> bool:
    """Have the thread that calls go before ordinary ones as soon as it wakes, for short turns; needs no permission.

    The scheduler of Linux 6.12 and later (EEVDF) lets who asks for short slices preempt those with longer ones, and
    gives nobody more time for it. Before, a thread that woke waited for the end of somebody's slice of 3 ms.

    Returns:
        Whether this system takes the request; older ones ignore it.
    """
    call = _SCHED_SETATTR.get(platform.machine()) if sys.platform == "linux" else None
    if call is None:
        return False
    niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    attributes = _SCHED_ATTR.pack(_SCHED_ATTR.size, os.SCHED_OTHER, 0, niceness, 0, _SLICE, 0, 0, 0, 0)
    return bool(ctypes.CDLL(None).syscall(call, 0, ctypes.create_string_buffer(attributes), 0) == 0)


class RealTime:
    """How the loop of a node is scheduled: `settle` once its robot is built, `request` from the loop's own thread.

    Only that thread goes before ordinary ones, and those that it waits for: the middleware's, which receive its
    messages, and the executor's, which has the interpreter now and then. What they start does not inherit it, so that
    motions are judged, and kernels compiled, as ordinary work.

    Args:
        node: gets the parameter `realtime_priority`; 0 is ordinary scheduling.
    """

    def __init__(self, node: Node) -> None:
        sys.setswitchinterval(_SWITCH_INTERVAL)
        self._node = node
        text = "SCHED_FIFO priority of the loop's thread, where permitted; 0: ordinary scheduling"
        self._priority = int(declare(node, "realtime_priority", PRIORITY, text, (0, 98), fixed=True))
        self._granted = False
        self._follow = steady_timer(node, _FOLLOW_AFTER, self._executor_follows)

    def settle(self) -> None:
        """Keep what exists by now out of garbage collection, which would take longer than a period."""
        gc.collect()
        gc.freeze()

    def request(self) -> None:
        """Run the thread that calls before all ordinary ones; in short slices where that is not permitted.

        Without the permission (`ulimit -r`; see the docs of ros2_control on real-time kernels) it runs as any other,
        and the node says so.
        """
        ask_for_short_slices()
        alone = (os.cpu_count() or 1) < 2  # on a single core nobody else would get any time
        if self._priority == 0 or alone or not hasattr(os, "sched_setscheduler"):  # as on macOS
            self._follow.cancel()
            return
        try:
            for thread in _middleware():
                _go_before(thread, self._priority + 1)
            _go_before(threading.get_native_id(), self._priority)
            self._granted = True
        except OSError as error:
            self._follow.cancel()
            text = f"no real-time scheduling ({error.strerror}): deadlines depend on the load of the computer"
            self._node.get_logger().info(text)

    def _executor_follows(self) -> None:
        """In a callback, so in the executor's thread: behind the loop's, before ordinary ones."""
        if self._granted:
            self._follow.cancel()
            _go_before(threading.get_native_id(), max(1, self._priority - 1))


def _go_before(thread: int, priority: int) -> None:
    os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))


def _middleware() -> list[int]:
    """The threads of this process that receive messages; none where the system does not tell."""
    found = []
    for name in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            if name.read_text("utf-8", errors="replace").startswith(_MIDDLEWARE):
                found.append(int(name.parent.name))
    return found
