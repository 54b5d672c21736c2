# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a node, once a second and whenever the level changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from std_msgs.msg import Header

from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.robot_description import RobotDescription
from pkm_description.ros.topics import DIAGNOSTICS, EVENTS

OK, WARN, ERROR, STALE = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE

Report = tuple[bytes, str, Mapping[str, object]]  # level, one sentence, values by name


_LOOK_EVERY = 0.2  # s, at the level: who waits for a node to be ready, or not to fail, is to hear it soon
_LOOK_WELL_EVERY = 0.5  # s, once all is well: each look wakes the node's executor, which costs more than the look
_AT_LEAST_EVERY = 1.0  # s


class Diagnostics:
    """Publishes what `report` returns once a second or when the level changes; a refused `description` is a warning."""

    def __init__(self, node: Node, report: Callable[[], Report], description: RobotDescription | None = None) -> None:
        self._node = node
        self._report = report
        self._description = description
        self._publisher = node.create_publisher(DiagnosticArray, DIAGNOSTICS, EVENTS)
        self._level: bytes | None = None
        self._silent = 0.0  # s, since the last message
        self._every = _LOOK_EVERY
        self._timer = steady_timer(node, _LOOK_EVERY, self._look)

    def _look(self) -> None:
        level, message, values = self._report()
        refused = self._description.refused if self._description is not None else ""
        if self._description is not None and refused and self._description.mechanism is not None:
            values = {**values, "refused robot description": refused}
            message = f"{message}; another robot description is refused: {refused}"
            level = WARN if level == OK else level
        if self._timeless():
            level, message = ERROR, f"use_sim_time is set, and no time has come on /clock; {message}"
        self._silent += self._every
        if level != self._level or self._silent >= _AT_LEAST_EVERY - 1e-6:
            self._level, self._silent = level, 0.0
            self._publish(level, message, values)
        every = _LOOK_WELL_EVERY if level == OK else _LOOK_EVERY
        if every != self._every:
            self._every = every
            self._timer.timer_period_ns = round(1e9 * every)

    def update_soon(self) -> None:
        """Publish at the next check, for a change beside the level. Thread-safe."""
        self._silent = _AT_LEAST_EVERY

    def _timeless(self) -> bool:
        sim_time = self._node.has_parameter("use_sim_time") and self._node.get_parameter("use_sim_time").value
        return bool(sim_time) and self._node.get_clock().now().nanoseconds == 0

    def _publish(self, level: bytes, message: str, values: Mapping[str, object]) -> None:
        status = DiagnosticStatus(
            level=level,
            name=f"{self._node.get_fully_qualified_name()}",
            message=message,
            hardware_id=self._node.get_namespace(),
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        header = Header(stamp=self._node.get_clock().now().to_msg())
        self._publisher.publish(DiagnosticArray(header=header, status=[status]))
