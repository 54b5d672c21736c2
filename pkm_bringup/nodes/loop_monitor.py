# SPDX-License-Identifier: Apache-2.0
"""How well a loop keeps its period, published once a second."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from rclpy.time import Time

from pkm_control.loop.between_processes import Figures
from pkm_description.ros import topics
from pkm_description.ros.periodic import steady_timer
from pkm_interfaces.msg import LoopStatistics
from pkm_runtime.fixed_rate import deviation_counts, statistics
from pkm_runtime.scheduling import LoopScheduling


class LoopMonitor:
    """Counts the cycles of a loop, in whichever thread, and publishes LoopStatistics from the executor's."""

    def __init__(self, node: Node, rate: float, look: Callable[[], None] = lambda: None) -> None:
        self._look = look  # called before figures are published: cycles may be noted then
        self.last = LoopStatistics(period=1.0 / rate)
        self._rate = rate
        self._wakes: list[float] = []
        self._work = 0.0
        self._cycles = 0
        self._missed = 0
        self._held = 0
        self._node = node
        self._out = node.create_publisher(LoopStatistics, topics.LOOP_STATISTICS, topics.EVENTS)
        self._timer = steady_timer(node, 1.0, self._publish)

    def cycle(self, wake: float, missed: int, work: float) -> None:
        """Note one cycle: its beginning [s], deadlines missed until then, computing time [s]."""
        self._wakes.append(wake)
        self._work += work
        self._cycles += 1
        self._missed = missed

    def cycles(self, found: Figures) -> None:
        """Note cycles, and count those that the ring lost while nobody looked: a gap without missed deadlines."""
        if len(found.wakes):
            if self._wakes:
                late = found.missed[0] - self._missed
                lost = round((found.wakes[0] - self._wakes[-1]) * self._rate) - 1 - late
                if late >= 0 and lost > 1:
                    self._cycles += int(lost)
                    self._wakes = []
            self._wakes += found.wakes.tolist()
            self._work += float(found.work.sum())
            self._cycles += len(found.wakes)
            self._missed = int(found.missed[-1])

    def hold(self) -> None:
        """Note a cycle that was skipped because an input had not come in time."""
        self._held += 1

    def _publish(self) -> None:
        self._look()
        wakes, self._wakes = self._wakes, self._wakes[-1:]
        work, self._work = self._work, 0.0
        if len(wakes) < 2:
            return
        found = statistics(np.array(wakes), self._rate)
        self.last = LoopStatistics(
            period=1.0 / self._rate,
            rate=found.rate,
            cycles=self._cycles,
            missed_deadlines=self._missed + self._held,
            deviation_p50=found.deviation_p50,
            deviation_p99=found.deviation_p99,
            worst_deviation=found.deviation_max,
            mean_work=work / (len(wakes) - 1),
            deviations=deviation_counts(np.array(wakes), self._rate).tolist(),
        )
        ago = round(1e9 * (time.monotonic() - wakes[-1]))  # the stamp is that of the last cycle which is counted
        self.last.header.stamp = Time(nanoseconds=max(0, self._node.get_clock().now().nanoseconds - ago)).to_msg()
        self._out.publish(self.last)


def loop_scheduling(node: Node, priority: int) -> LoopScheduling:
    """The scheduling of a loop's thread in a node's process."""
    return LoopScheduling(priority, node.get_logger().info)
