# SPDX-License-Identifier: Apache-2.0
"""What must not wait, such as a stop: services and topics of a node in a thread of their own, beside the executor's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from pkm_description.ros import topics
from pkm_description.ros.polled import Unserved

_LONGEST = 5.0  # s, of one wait
_AGAIN = 0.1  # s, after an error


class RequestThread:
    """Serves Trigger services and Empty topics until `end`, which must precede the node's destruction.

    `services` by name: what answers, given request and response. `events` by topic: what any message does; it must not
    wait.
    """

    def __init__(
        self,
        node: Node,
        services: Mapping[str, Callable[[Any, Any], Any]],
        events: Mapping[str, Callable[[], None]] | None = None,
    ) -> None:
        self._node = node
        self._group = Unserved()
        group = self._group
        self._services = [
            (node.create_service(Trigger, name, act, callback_group=group), act) for name, act in services.items()
        ]
        self._events = [
            (node.create_subscription(Empty, topic, lambda _: None, topics.EVENTS, callback_group=group), act)
            for topic, act in (events or {}).items()
        ]
        context = node.context.handle
        assert context is not None
        self._context, self._wake = context, rclpy_implementation.GuardCondition(context)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prompt", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop serving."""
        self._ended.set()
        self._wake.trigger_guard_condition()
        self._thread.join(2.0)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._wait()
                for subscription, act in self._events:
                    self._hear(subscription, act)
                for service, answer in self._services:
                    self._serve(service, answer)
            except Exception as error:
                if not self._node.context.ok():
                    return  # the node is being shut down
                self._node.get_logger().error(f"a request that must not wait: {type(error).__name__}: {error}")
                self._ended.wait(_AGAIN)

    def _wait(self) -> None:
        with contextlib.ExitStack() as used:
            for handle in (self._context, self._wake):
                used.enter_context(handle)
            for service, _ in self._services:
                used.enter_context(service.handle)
            for subscription, _ in self._events:
                used.enter_context(subscription.handle)
            waiting = rclpy_implementation.WaitSet(len(self._events), 1, 0, 0, len(self._services), 0, self._context)
            waiting.clear_entities()
            waiting.add_guard_condition(self._wake)
            for subscription, _ in self._events:
                waiting.add_subscription(subscription.handle)
            for service, _ in self._services:
                waiting.add_service(service.handle)
            waiting.wait(round(1e9 * _LONGEST))

    @staticmethod
    def _hear(subscription: Any, act: Callable[[], None]) -> None:
        with subscription.handle:
            heard = False
            while subscription.handle.take_message(subscription.msg_type, False) is not None:
                heard = True
        if heard:
            act()

    @staticmethod
    def _serve(service: Any, answer: Callable[[Any, Any], Any]) -> None:
        """Answer pending requests; what was asked several times is done as often."""
        while True:
            with service.handle:
                request, header = service.handle.service_take_request(Trigger.Request)
            if header is None:
                return
            response = Trigger.Response()
            try:
                response = answer(request, response)
            except Exception as error:
                response.success, response.message = False, f"{type(error).__name__}: {error}"
            service.send_response(response, header)
