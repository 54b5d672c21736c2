# SPDX-License-Identifier: Apache-2.0
"""A client's own node, and its requests: all that `pkm estop` imports where the robot runs on another computer."""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.type_support import check_for_type_support
from std_srvs.srv import Trigger

from pkm_client.client_errors import NoRobotError
from pkm_control.operator_interface import Answer
from pkm_description.ros.transport import clock_problem, log_environment, transport_environment
from pkm_runtime.local_services import elsewhere

_GENERATOR = "rosidl_generator_py.generate_py_impl"  # makes code of messages, with a parser and NumPy
_PATIENCE = 10.0  # s, for an answer
LOOK = 0.02  # s
_numbers = itertools.count(1)


@contextmanager
def suite_transport() -> Iterator[None]:
    """Within this context a new node uses the suite's transport; the environment is restored afterwards."""
    before = dict(os.environ)
    os.environ.update(transport_environment(os.environ, "SUBNET") | log_environment(os.environ))
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def _load_trigger() -> None:
    """Load the type support of `Trigger` without its neighbours, and NumPy, which take longer than the request."""
    generator = sys.modules.setdefault(_GENERATOR, cast(Any, None))
    event = type(Trigger.Event)
    before, event._TYPE_SUPPORT = event._TYPE_SUPPORT, event  # as if it was there
    try:
        check_for_type_support(Trigger)
    finally:
        event._TYPE_SUPPORT = before
        if generator is None:
            del sys.modules[_GENERATOR]


class ClientNode:
    """Node, context and executor of its own, apart from other ROS use in the process. ValueError: invalid namespace."""

    def __init__(self, namespace: str) -> None:
        self._closing = False
        if problem := clock_problem():
            raise NoRobotError(problem)
        _load_trigger()
        self._context = rclpy.Context()
        with suite_transport():
            rclpy.init(args=[], context=self._context)
            self._node = Node(
                f"robot_client_{os.getpid()}_{next(_numbers)}",
                context=self._context,
                namespace=namespace,
                use_global_arguments=False,
                start_parameter_services=False,
                parameter_overrides=[Parameter("start_type_description_service", value=False)],
            )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="robot client", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # a thread that spins while Python ends takes the process down

    def trigger(self, name: str, timeout: float) -> Answer:
        """Ask a service without a question; NoRobotError where nobody offers it within `timeout` [s], or answers."""
        client = self._node.create_client(Trigger, name)
        self._find(lambda: [] if client.service_is_ready() else [name], timeout)
        return self._call(client, Trigger.Request())

    def close(self) -> None:
        """Destroy the node; the robot continues what it does."""
        if self._closing:
            return
        self._closing = True
        atexit.unregister(self.close)
        self._executor.wake()
        self._thread.join(2.0)
        self._executor.shutdown(timeout_sec=2.0)
        self._release()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _release(self) -> None:
        return

    def _spin(self) -> None:
        while not self._closing and self._context.ok():
            self._executor.spin_once(timeout_sec=0.1)

    def _find(self, missing: Callable[[], list[str]], timeout: float) -> None:
        """Wait until nothing is missing; NoRobotError after `timeout` [s], with what is."""
        deadline = time.monotonic() + timeout
        while names := missing():
            if time.monotonic() > deadline:
                where, domain = self._node.get_namespace(), os.environ.get("ROS_DOMAIN_ID", "0")
                self.close()
                remedy = elsewhere(where) or f"is it running, and in this ROS_DOMAIN_ID ({domain})?"
                raise NoRobotError(
                    f"no robot answers in namespace '{where}' within {timeout:g} s: nothing of {', '.join(names)}; "
                    f"{remedy}"
                )
            time.sleep(LOOK)

    def _require_open(self) -> None:
        if self._closing:
            raise NoRobotError("the client was closed")

    def _call(self, client: Any, request: Any, patience: float = _PATIENCE) -> Answer:
        self._require_open()
        name = client.srv_name.rpartition("/")[2]
        if not client.service_is_ready():
            raise NoRobotError(f"'{name}' is no longer available")
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        try:
            answered = done.wait(patience)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"'{name}' was asked, and has not been answered: 'pkm state' tells what is"
            ) from None
        if not answered:
            client.remove_pending_request(future)
            raise NoRobotError(f"'{name}' is not answered within {patience:g} s")
        return Answer(future.result().success, future.result().message)
