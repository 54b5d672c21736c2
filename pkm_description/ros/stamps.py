# SPDX-License-Identifier: Apache-2.0
"""Times of messages under a clock that stands or jumps: stamps that follow it, and ages independent of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rclpy.node import Node

_FOLLOWS = 0.02  # s per s: so much quicker than planned may a motion be that runs on the time of stamps
_STEPPED = 1.0  # s off: the clock was set, or everything stood still


class FollowingStamps:
    """Stamps of a loop's own times, which advance steadily but follow the `clock` [ns].

    They approach a clock that is ahead or behind, as after a stall, gradually, and one that was set at once.
    """

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
