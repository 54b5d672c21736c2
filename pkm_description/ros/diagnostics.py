# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a node, once a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from pkm_description.ros.topics import DIAGNOSTICS, EVENTS

OK, WARN, ERROR, STALE = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE

Report = tuple[bytes, str, Mapping[str, object]]  # level, one sentence, values by name


class Diagnostics:
    """Asks `report` for a level, a sentence and values once a second, and publishes them."""

    def __init__(self, node: Node, report: Callable[[], Report]) -> None:
        self._node = node
        self._report = report
        self._publisher = node.create_publisher(DiagnosticArray, DIAGNOSTICS, EVENTS)
        self._timer = node.create_timer(1.0, self.publish)

    def publish(self) -> None:
        """Publish once, now."""
        level, message, values = self._report()
        status = DiagnosticStatus(
            level=level,
            name=f"{self._node.get_fully_qualified_name()}",
            message=message,
            hardware_id=self._node.get_namespace(),
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)
