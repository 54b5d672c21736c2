# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that a loop or a timer of the node asks for messages, instead of the executor calling back for each.

For a stream of a thousand messages a second of which a node wants the newest now and then, or all of them at leisure,
this saves nearly all of the cost: a callback takes the executor a tenth of a millisecond and more, a look some
microseconds.
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

    Args:
        node: that subscribes.
        message_type: of the topic.
        topic: its name.
        qos: quality of service that is asked for.
        raw: messages stay as they came, as bytes, for who records now and reads later (`deserialize_message`).
        sources: that are told at each look how many publish.
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
        """Return the oldest message that waits in the queue, or None."""
        taken = self.take_timed()
        return None if taken is None else taken[0]

    def take_timed(self) -> tuple[Any, float] | None:
        """Return the oldest message that waits and when it was published [s, system clock of the sender], or None."""
        with self._subscription.handle:
            if self._sources is not None:
                self._sources.heed(self._subscription.handle.get_publisher_count())
            taken = self._subscription.handle.take_message(self._subscription.msg_type, self._raw)
        return None if taken is None else (taken[0], 1e-9 * taken[1]["source_timestamp"])

    def take_all(self, most: int = 500, until: float = math.inf) -> list[tuple[Any, float]]:
        """Return what waits, as `take_timed` does: on a busy computer messages come as fast as they go.

        Args:
            most: messages to take.
            until: what was published after this time [s, system clock] is the last to be taken.

        Returns:
            Messages, oldest first, and when they were published.
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
