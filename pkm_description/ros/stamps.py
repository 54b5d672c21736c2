# SPDX-License-Identifier: Apache-2.0
"""Times of messages where a clock stands or jumps: stamps that follow it, and ages that do not depend on it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rclpy.node import Node

_FOLLOWS = 0.02  # s per s: so much quicker than planned may a motion be that runs on the time of stamps
_STEPPED = 1.0  # s off: the clock was set, or everything stood still


class FollowingStamps:
    """Stamps of what happens at a loop's own times, which advance steadily: not by the clock's jitter, but by its hour.

    Where the clock is ahead of the loop or behind it, as after a stall, stamps draw near to it gently; where it was
    set to another time, they go there at once.

    Args:
        clock: ns, such as `lambda: node.get_clock().now().nanoseconds`.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._offset: float | None = None  # s, from the loop's time to that of the clock
        self._last = 0.0  # s, of the loop
        self.steps = 0  # of the clock, since the beginning

    def of(self, moment: float) -> int:
        """The stamp of a moment.

        Args:
            moment: s, of the loop's own time, which never goes back.

        Returns:
            ns, of the clock.
        """
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
    """How long ago something was heard: by the node's clock where that is simulated, else by one that nobody sets.

    Args:
        node: that hears.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._at: float | None = None

    def note(self) -> None:
        """It was heard now."""
        self._at = self._now()

    @property
    def seconds(self) -> float:
        """Since it was heard last; infinite where it never was, or where simulated time has gone back since."""
        if self._at is None:
            return math.inf
        passed = self._now() - self._at
        return passed if passed >= 0.0 else math.inf

    def _now(self) -> float:
        simulated = self._node.has_parameter("use_sim_time") and self._node.get_parameter("use_sim_time").value
        return 1e-9 * self._node.get_clock().now().nanoseconds if simulated else time.monotonic()
