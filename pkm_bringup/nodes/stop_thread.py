# SPDX-License-Identifier: Apache-2.0
"""The emergency stop of a node, in a thread of its own: it waits for no callback of the executor's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from pkm_description.ros import topics
from pkm_description.ros.streams.polled import Unserved

_LONGEST = 5.0  # s, of one wait
_AGAIN = 0.1  # s, after an error


class StopThread:
    """Serves a service and a topic, on which any message is a stop, until `end`, which must precede the node's
    destruction. `stop` does it without waiting; `answer` takes the service's request and response.
    """

    def __init__(
        self,
        node: Node,
        service: str,
        answer: Callable[[Any, Any], Any],
        topic: str,
        stop: Callable[[], None],
    ) -> None:
        self._node, self._answer, self._stop = node, answer, stop
        self._group = Unserved()
        self._service = node.create_service(Trigger, service, answer, callback_group=self._group)
        self._topic = node.create_subscription(Empty, topic, lambda _: None, topics.EVENTS, callback_group=self._group)
        context = node.context.handle
        assert context is not None
        self._context, self._wake = context, rclpy_implementation.GuardCondition(context)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="emergency stop", daemon=True)
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
                self._hear()
                self._serve()
            except Exception as error:
                if not self._node.context.ok():
                    return  # the node is being shut down
                self._node.get_logger().error(f"emergency stop: {type(error).__name__}: {error}")
                self._ended.wait(_AGAIN)

    def _wait(self) -> None:
        with self._context, self._wake, self._service.handle, self._topic.handle:
            waiting = rclpy_implementation.WaitSet(1, 1, 0, 0, 1, 0, self._context)
            waiting.clear_entities()
            waiting.add_guard_condition(self._wake)
            waiting.add_subscription(self._topic.handle)
            waiting.add_service(self._service.handle)
            waiting.wait(round(1e9 * _LONGEST))

    def _hear(self) -> None:
        with self._topic.handle:
            heard = False
            while self._topic.handle.take_message(self._topic.msg_type, False) is not None:
                heard = True
        if heard:
            self._stop()

    def _serve(self) -> None:
        """Answer pending requests; the drives are disabled once for each."""
        while True:
            with self._service.handle:
                request, header = self._service.handle.service_take_request(Trigger.Request)
            if header is None:
                return
            self._service.send_response(self._answer(request, Trigger.Response()), header)
