# SPDX-License-Identifier: Apache-2.0
"""An executor that no request and no message ends.

Errors in rclpy's own callbacks leave `spin`: a request with an unknown parameter type or an unknown transition would
end the node, and everything that depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor, await_or_execute
from rclpy.node import Node

from pkm_runtime.errors import shortened

_AGAIN_AFTER = 10.0  # s, after which the same error is logged again


class EnduringExecutor(SingleThreadedExecutor):
    """Runs callbacks, and logs and survives all their errors.

    A failed request is answered by a refusal, so that the client does not wait for ever; see `refusal`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._said: dict[str, float] = {}  # errors, and when they were logged, s

    def add_node(self, node: Node) -> bool:
        """Add a node, whose services answer from now on."""
        for service in node.services:
            service.callback = self._answering(node, service.srv_name, service.callback)
        return bool(super().add_node(node))

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for a callback and run it."""
        try:
            super().spin_once(timeout_sec)
        except ExternalShutdownException:
            raise
        except Exception as error:
            if not self.context.ok():
                raise
            for node in self.get_nodes():
                self._say(node, "a callback failed", error)

    def _answering(self, node: Node, name: str, callback: Callable[..., Any]) -> Callable[..., Any]:
        async def answering(request: Any, response: Any) -> Any:
            try:
                return await await_or_execute(callback, request, response)
            except Exception as error:
                if not self.context.ok():
                    raise
                self._say(node, f"a request to {name} is refused", error)
                return refusal(request, response, _words(error))

        return answering

    def _say(self, node: Node, what: str, error: Exception) -> None:
        line, now = f"{what}: {_words(error)}", time.monotonic()
        if now - self._said.get(line, -_AGAIN_AFTER) >= _AGAIN_AFTER:
            self._said = {one: at for one, at in self._said.items() if now - at < _AGAIN_AFTER}
            self._said[line] = now
            node.get_logger().error(line)


def refusal(request: Any, response: Any, why: str) -> Any:
    """A response that says no, with the reason where it has a field for it.

    Parameters that were not set say so; other responses keep their defaults.
    """
    if hasattr(request, "parameters"):
        refused = SetParametersResult(successful=False, reason=why)
        if hasattr(response, "results"):
            response.results = [*response.results, *[refused] * (len(request.parameters) - len(response.results))]
        else:
            response.result = refused
        return response
    return type(response)()


def _words(error: Exception) -> str:
    return shortened(f"{type(error).__name__}: {' '.join(str(error).split())}", 300)
