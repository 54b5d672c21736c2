# SPDX-License-Identifier: Apache-2.0
"""Periodic work of a node, by a timer or in a thread of its own; stamps and ages under a clock that stands or jumps."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.timer import Timer

_SWITCH_INTERVAL = 1e-3  # s, after which a thread that waits for the interpreter gets it; Python's default is 5 ms
_FOLLOWS = 0.02  # s per s: so much quicker than planned may a motion be that runs on the time of stamps
_STEPPED = 1.0  # s off: the clock was set, or everything stood still


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


class FollowingStamps:
    """Stamps of a loop's steady times that approach the `clock` [ns] gradually, and at once where it was set."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._offset: float | None = None  # s, from the loop's time to that of the clock
        self._last = 0.0  # s, of the loop
        self.steps = 0  # of the clock, since the beginning

    def of(self, moment: float) -> int:
        """Stamp [ns] of a moment [s] of the loop's own, monotonic time."""
        wanted = 1e-9 * self._clock() - moment
        if self._offset is None or abs(wanted - self._offset) > _STEPPED:
            self.steps += self._offset is not None
            self._offset = wanted
        else:
            most = _FOLLOWS * max(moment - self._last, 0.0)
            self._offset += min(max(wanted - self._offset, -most), most)
        self._last = moment
        return round((self._offset + moment) * 1e9)


class Age:
    """Time since a message was heard: by the node's clock if simulated, else by one that nobody sets."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._at: float | None = None

    def note(self) -> None:
        """Record a message."""
        self._at = self._now()

    @property
    def seconds(self) -> float:
        """Seconds since the last message; infinite before any, or where simulated time has gone back since."""
        if self._at is None:
            return math.inf
        passed = self._now() - self._at
        return passed if passed >= 0.0 else math.inf

    def _now(self) -> float:
        simulated = self._node.has_parameter("use_sim_time") and self._node.get_parameter("use_sim_time").value
        return 1e-9 * self._node.get_clock().now().nanoseconds if simulated else time.monotonic()
