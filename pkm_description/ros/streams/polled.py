# SPDX-License-Identifier: Apache-2.0
"""Subscriptions polled by a loop or a timer of the node, without callbacks of the executor.

For streams of a thousand messages a second of which a node wants the newest, or all of them later: a callback costs the
executor a tenth of a millisecond and more, a poll some microseconds.
"""

from __future__ import annotations

import math
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile

from pkm_description.ros.streams.sources import Sources


class Unserved(CallbackGroup):
    """A callback group that no executor serves."""

    def can_execute(self, entity: Any) -> bool:
        """Never."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Never."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Nothing to do."""


class PolledSubscription:
    """A subscription without a callback. May be polled from one thread other than the executor's.

    With `raw` messages stay bytes (`deserialize_message`). `sources` get the number of publishers at each poll.
    """

    def __init__(
        self,
        node: Node,
        message_type: Any,
        topic: str,
        qos: QoSProfile,
        raw: bool = False,
        sources: Sources | None = None,
    ) -> None:
        self._node, self._raw = node, raw
        self._group = Unserved()
        self._subscription = node.create_subscription(
            message_type, topic, lambda _: None, qos, callback_group=self._group
        )
        self._sources = sources

    def take(self) -> Any | None:
        """The oldest message in the queue, or None."""
        taken = self.take_timed()
        return None if taken is None else taken[0]

    def take_timed(self) -> tuple[Any, float] | None:
        """The oldest message in the queue and its publication time [s, system clock of the sender], or None."""
        with self._subscription.handle:
            if self._sources is not None:
                self._sources.check(self._subscription.handle.get_publisher_count())
            taken = self._subscription.handle.take_message(self._subscription.msg_type, self._raw)
        return None if taken is None else (taken[0], 1e-9 * taken[1]["source_timestamp"])

    def take_all(self, most: int = 500, until: float = math.inf) -> list[tuple[Any, float]]:
        """Waiting messages as by `take_timed`, oldest first, until one published after `until` [s, system clock].

        At most `most`: on a busy computer messages come as fast as they are taken.
        """
        messages: list[tuple[Any, float]] = []
        while len(messages) < most and (message := self.take_timed()) is not None:
            messages.append(message)
            if message[1] > until:
                break
        return messages

    def close(self) -> None:
        """Stop listening."""
        self._node.destroy_subscription(self._subscription)
