# SPDX-License-Identifier: Apache-2.0
"""Periodic work of a node: by a timer, or in a thread independent of the executor's callbacks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.timer import Timer

_SWITCH_INTERVAL = 1e-3  # s, after which a thread that waits for the interpreter gets it; Python's default is 5 ms


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """A timer, `period` in s, that works while `/clock` stands still, jumps or is missing."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


class OwnThread:
    """Calls `work` once per `period` [s], or after as many seconds as it returns, until `end`, which must come before
    the node is destroyed.

    Longer work is repeated at once. Its errors are logged and end nothing. It may use publishers and each
    `PolledSubscription`.
    """

    def __init__(self, node: Node, period: float, work: Callable[[], float | None]) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
        self._node, self._period, self._work = node, period, work
        self._stop = threading.Event()
        self._failed = ""
        self._thread = threading.Thread(target=self._run, name=f"{node.get_name()} work", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the current work, and start no more."""
        self._stop.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            pause = None
            try:
                pause = self._work()
            except Exception as error:
                if not self._node.context.ok():
                    return  # the node is being shut down
                if repr(error) != self._failed:
                    self._failed = repr(error)
                    self._node.get_logger().error(f"{type(error).__name__}: {error}")
            due = max(due + (self._period if pause is None else pause), time.monotonic())
