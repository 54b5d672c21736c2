# SPDX-License-Identifier: Apache-2.0
"""Publishers of a topic that one node alone may publish: a machine has one controller, and one set of readings."""

from __future__ import annotations

import math
import time

from rclpy.node import Node

_PATIENCE = 5.0  # s, that a node which starts may take to tell its name
_REMEMBERED = 30.0  # s: longer than the middleware remembers a node that was killed
_NAMELESS = "_NODE_NAME_UNKNOWN_"  # of a node whose publisher is known before itself


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
        """Look again if `count`, the number of publishers by the node's subscription, has changed: a cheap check.

        An event of the middleware would wake the node's executor with every message.
        """
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
