# SPDX-License-Identifier: Apache-2.0
"""Subscriptions polled by a loop or a timer of the node, without callbacks of the executor, and who publishes.

For streams of a thousand messages a second of which a node wants the newest, or all of them later: a callback costs the
executor a tenth of a millisecond and more, a poll some microseconds. A machine has one controller, and one set of
readings: one node alone may publish each.
"""

from __future__ import annotations

import math
import time
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile

_PATIENCE = 5.0  # s, that a node which starts may take to tell its name
_REMEMBERED = 30.0  # s: longer than the middleware remembers a node that was killed
_NAMELESS = "_NODE_NAME_UNKNOWN_"  # of a node whose publisher is known before itself


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
    """A subscription to poll from one thread. `raw` messages stay bytes; `sources` get the number of publishers."""

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
        """At most `most` waiting messages as by `take_timed`, until one published after `until` [s, system clock]."""
        messages: list[tuple[Any, float]] = []
        while len(messages) < most and (message := self.take_timed()) is not None:
            messages.append(message)
            if message[1] > until:
                break
        return messages

    def close(self) -> None:
        """Stop listening."""
        self._node.destroy_subscription(self._subscription)


class Sources:
    """The publishers of a topic, checked when their number changes, and at `look`.

    Nodes of the same name count once while one of them may be the remainder of a killed node that the other replaces.

    `problem` names several publishers, and is empty otherwise: ROS 2 messages do not tell their sender, so none can be
    trusted then. It is not `sure` in the first seconds of a nameless only other node, which may be restarting. `what`
    says in words what comes on the topic.
    """

    def __init__(self, node: Node, topic: str, what: str) -> None:
        self._node, self._what = node, what
        self._topic = node.resolve_topic_name(topic)
        self._count = 0
        self._nameless_since = math.inf  # s, on the monotonic clock
        self._known: dict[bytes, float] = {}  # publishers, and since when
        self.problem = ""
        self.sure = False

    def check(self, count: int) -> None:
        """Look again if `count`, the number of publishers by the subscription, has changed: cheaper than events."""
        if count != self._count:
            self._count = count
            self.look()

    def look(self) -> str:
        """Check the publishers now; returns the problem."""
        found = self._node.get_publishers_info_by_topic(self._topic)
        now = time.monotonic()
        self._known = {gid: self._known.get(gid, now) for gid in (bytes(one.endpoint_gid) for one in found)}
        nameless = any(one.node_name == _NAMELESS for one in found)
        self._nameless_since = min(self._nameless_since, now) if nameless else math.inf
        old: list[str] = []  # names of those that are no successors of what is left of others
        young: set[str] = set()
        for one in found:
            if one.node_name != _NAMELESS:
                name = f"{one.node_namespace.rstrip('/')}/{one.node_name}"
                if now - self._known[bytes(one.endpoint_gid)] > _REMEMBERED:
                    old.append(name)
                else:
                    young.add(name)
        names = [*old, *(young - set(old))]
        self.sure = len(names) > 1 or (bool(names) and now - self._nameless_since > _PATIENCE)
        if nameless:
            names.append("one without a name")
        several = len(names) > 1
        self.problem = f"{self._what} come from {len(names)} nodes: {', '.join(sorted(names))}" if several else ""
        return self.problem
