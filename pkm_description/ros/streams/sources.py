# SPDX-License-Identifier: Apache-2.0
"""Which nodes publish a topic that one alone may publish: a machine has one controller, and one set of readings."""

from __future__ import annotations

import contextlib
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
from rclpy.node import Node

_NAMELESS = "_NODE_NAME_UNKNOWN_"  # of a node whose publisher is known before itself


class Sources:
    """The publishers of a topic, looked at when the middleware tells of a change, and whenever `look` is called.

    Nodes of the same name count once: what is left for some seconds of one that was killed is not to stand in the way
    of the one that was started for it.

    `problem` says that there are several, and is empty where there are not. Messages of ROS 2 do not tell who sent
    them, so none of them can be trusted then. It is `sure` unless one of them is a publisher whose node has no name,
    which may be that of a node started anew.

    Args:
        node: that looks.
        topic: name, as the node gives it to its own subscription.
        what: comes on the topic, in words.
    """

    def __init__(self, node: Node, topic: str, what: str) -> None:
        self._node, self._what = node, what
        self._topic = node.resolve_topic_name(topic)
        self._nameless = False
        self.problem = ""
        self.sure = False

    def watch(self, subscription: Any) -> None:
        """Look at once when a publisher comes or goes.

        Args:
            subscription: of the node, to the topic.
        """
        events = SubscriptionEventCallbacks(matched=lambda _: self._see(again=False), use_default_callbacks=False)
        with contextlib.suppress(UnsupportedEventTypeError):  # some middleware does not tell: `look` sees it later
            for handler in events.create_event_handlers(
                self._node.default_callback_group, subscription.handle, self._topic
            ):
                subscription.event_handlers.append(handler)  # they go with it
                self._node.add_waitable(handler)

    def look(self) -> str:
        """Look who publishes now; return the problem."""
        self._see(again=True)
        return self.problem

    def _see(self, again: bool) -> None:
        found = self._node.get_publishers_info_by_topic(self._topic)
        names = {f"{one.node_namespace.rstrip('/')}/{one.node_name}" for one in found if one.node_name != _NAMELESS}
        nameless = any(one.node_name == _NAMELESS for one in found)
        self.sure = len(names) > 1 or (nameless and self._nameless and again)
        self._nameless = nameless
        if nameless:
            names.add("one without a name")
        several = len(names) > 1
        self.problem = f"{self._what} come from {len(names)} nodes: {', '.join(sorted(names))}" if several else ""
