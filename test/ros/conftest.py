# SPDX-License-Identifier: Apache-2.0
"""A ROS graph of its own for the tests: nodes of the suite in a background thread, a client in front of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
pytest.importorskip("pkm_interfaces.msg", reason="pkm_interfaces is not built; ./pkm test builds it")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from pkm_client.ros.client_node import suite_transport  # noqa: E402
from pkm_description.ros import topics  # noqa: E402

_contexts: list[rclpy.Context] = []


def _context() -> rclpy.Context:
    """One for all graphs of this process, as each is a participant, of which discovery reaches 32.

    A test that signals its own process ends it; then there is another.
    """
    if not (_contexts and _contexts[-1].ok()):
        _contexts.append(rclpy.Context())
        with suite_transport():  # with Fast DDS' own, nodes that start hear of this process 3 s later
            rclpy.init(context=_contexts[-1])
            Node("first", context=_contexts[-1]).destroy_node()  # the profile is read with the first one
    return _contexts[-1]


class Graph:
    """Nodes that spin in one thread each, and a client node whose calls wait for their answers."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.context = _context()
        self._closing = False
        self.client = Node("client", context=self.context, namespace=namespace)
        self._executors: list[SingleThreadedExecutor] = []
        self._nodes: list[Node] = [self.client]
        self._spin(self.client)
        self._keep: list[Any] = []
        self._clients: dict[str, Any] = {}

    def start(self, make: Callable[..., Node], remap: dict[str, str] | None = None, **parameters: Any) -> Node:
        """Start a node of the suite in this graph."""
        arguments = ["--ros-args", "-r", f"__ns:={self.namespace}"]
        for name, other in (remap or {}).items():
            arguments += ["-r", f"{name}:={other}"]
        original = Node.__init__

        def patched(node: Node, name: str, **options: Any) -> None:
            overrides = [Parameter(key, value=value) for key, value in parameters.items()]
            original(node, name, context=self.context, cli_args=arguments, parameter_overrides=overrides, **options)

        Node.__init__ = patched  # the nodes' own constructors take nothing: as processes they get all from ROS
        try:
            node = make()
        finally:
            Node.__init__ = original
        self._nodes.append(node)
        self._spin(node)
        return node

    def _spin(self, node: Node) -> None:
        executor = SingleThreadedExecutor(context=self.context)
        executor.add_node(node)
        self._executors.append(executor)
        threading.Thread(target=self._spin_until_shutdown, args=(executor,), daemon=True).start()

    def _spin_until_shutdown(self, executor: SingleThreadedExecutor) -> None:
        try:
            executor.spin()
        except Exception:
            if not self._closing:
                raise

    def in_executor(self, call: Callable[[], Any]) -> Any:
        """Return what a call returns that is made in the client's own thread.

        rclpy's ActionClient notes a request after sending it: from another thread, the answer may come first.
        """
        task = self._executors[0].create_task(call)
        self.wait(task.done)
        return task.result()

    def describe(self, text: str) -> None:
        """Latch a robot description."""
        publisher = self.client.create_publisher(String, topics.ROBOT_DESCRIPTION, topics.LATCHED)
        publisher.publish(String(data=text))
        self._keep.append(publisher)

    def call(self, service_type: Any, name: str, request: Any, patience: float = 60.0) -> Any:
        """Call a service and return the answer.

        The client of a service is kept: on a busy computer, a server may answer a new one before it has discovered it,
        and the answer is lost.
        """
        if name not in self._clients:
            self._clients[name] = self.client.create_client(service_type, name)
        client = self._clients[name]
        assert client.wait_for_service(timeout_sec=patience), f"no service {name}"
        future = client.call_async(request)
        self.wait(future.done, patience)
        return future.result()

    def listen(self, message_type: Any, topic: str, qos: QoSProfile = topics.STREAM_RECORD) -> list[Any]:
        """Return a list that fills with what is published."""
        heard: list[Any] = []
        self._keep.append(self.client.create_subscription(message_type, topic, heard.append, qos))
        return heard

    @staticmethod
    def wait(condition: Callable[[], Any], patience: float = 60.0) -> None:
        """Wait until a condition holds; fail when it does not come to hold in time."""
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.005)

    def close(self) -> None:
        self._closing = True
        for executor in self._executors:
            executor.shutdown(timeout_sec=30.0)  # what a busy computer has begun is not cut off
        for node in self._nodes:
            node.destroy_node()


@pytest.fixture
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    """A graph in a namespace of its own, which shows that every node works in one."""
    made = Graph("/" + "".join(c if c.isalnum() else "_" for c in request.node.name))
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    made = Graph("/" + request.module.__name__.replace(".", "_"))
    yield made
    made.close()
