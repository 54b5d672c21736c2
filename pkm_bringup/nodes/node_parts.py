# SPDX-License-Identifier: Apache-2.0
"""Parts of several nodes: settings as parameters, requests that must not wait, figures of a loop."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.time import Time
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from pkm_client.options import SETTING, SWITCH, typed_value
from pkm_control.loop.between_processes import Figures
from pkm_description.ros import topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.polled import Unserved
from pkm_interfaces.msg import LoopStatistics
from pkm_runtime import local_services
from pkm_runtime.fixed_rate import deviation_counts, statistics
from pkm_runtime.scheduling import LoopScheduling

_LONGEST = 5.0  # s, of one wait
_AGAIN = 0.1  # s, after an error


def declare_settings(node: Node, names: Mapping[str, str], **defaults: Any) -> dict[str, Any]:
    """Declare parameters, given by the names of their settings, some with other `defaults`; their values."""
    values = {}
    for name, setting in names.items():
        one = SETTING[setting]
        default = defaults.get(name, typed_value(one.default))
        choices = () if one.choices == SWITCH else [text for text in one.choices if text != "none"]  # which has no node
        values[name] = declare(node, name, default, one.description, one.span, choices, fixed=not one.live)
    return values


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


class LocalService:
    """Answers `local_services` in a thread until `end`. OSError: another process does, or there are no such sockets."""

    def __init__(self, service: str, answer: Callable[[], Any]) -> None:
        self._answer = answer
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._line.bind(local_services.address(service))
            self._line.listen()
        except OSError:
            self._line.close()
            raise
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="local service", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop serving."""
        self._ended.set()
        self._line.shutdown(socket.SHUT_RDWR)
        self._thread.join(2.0)
        self._line.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                asking, _ = self._line.accept()
                with asking:
                    if local_services.is_trusted(asking):
                        asking.settimeout(_AGAIN)
                        asking.send(self._packet())
            except OSError:  # who asked has gone, or there are too many open files
                self._ended.wait(_AGAIN)

    def _packet(self) -> bytes:
        response = self._answer()
        text: str = response.message
        return (b"1" if response.success else b"0") + text.encode()[: local_services.LONGEST - 1]


class RequestThread:
    """Serves Trigger `services` (name: what answers, given request and response), also locally, and Empty topics
    (`events`: what any message does; it must not wait) until `end`, which must precede the node's destruction.
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
        self._local = [self._locally(node.resolve_service_name(name), act) for name, act in services.items()]
        context = node.context.handle
        assert context is not None
        self._context, self._wake = context, rclpy_implementation.GuardCondition(context)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prompt", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop serving."""
        for service in filter(None, self._local):
            service.end()
        self._ended.set()
        self._wake.trigger_guard_condition()
        self._thread.join(2.0)

    def _locally(self, service: str, answer: Callable[[Any, Any], Any]) -> LocalService | None:
        try:
            return LocalService(service, lambda: self._answered(answer, Trigger.Request()))
        except OSError as error:
            self._node.get_logger().info(f"'{service}' is asked for over ROS alone: {error}")
            return None

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
    def _answered(answer: Callable[[Any, Any], Any], request: Any) -> Any:
        response = Trigger.Response()
        try:
            response = answer(request, response)
        except Exception as error:
            response.success, response.message = False, f"{type(error).__name__}: {error}"
        return response

    def _serve(self, service: Any, answer: Callable[[Any, Any], Any]) -> None:
        """Answer pending requests; what was asked several times is done as often."""
        while True:
            with service.handle:
                request, header = service.handle.service_take_request(Trigger.Request)
            if header is None:
                return
            service.send_response(self._answered(answer, request), header)
