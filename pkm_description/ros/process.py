# SPDX-License-Identifier: Apache-2.0
"""Life of a process that holds nodes, in an executor that no request and no message ends.

Errors in rclpy's own callbacks leave `spin`: a request with an unknown parameter type or an unknown transition would
end the node, and everything that depends on it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from types import FrameType
from typing import Any

import rclpy
from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor, await_or_execute
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions

from pkm_runtime.errors import shortened

_AGAIN_AFTER = 10.0  # s, after which the same error is logged again


class EnduringExecutor(SingleThreadedExecutor):
    """Runs callbacks, logs and survives all their errors; a failed request is answered by a `refusal`."""

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
    """A response that says no, with the reason where it has a field for it; others keep their defaults."""
    if hasattr(request, "parameters"):
        refused = SetParametersResult(successful=False, reason=why)
        if hasattr(response, "results"):
            response.results = [*response.results, *[refused] * (len(request.parameters) - len(response.results))]
        else:
            response.result = refused
        return response
    refused = type(response)()
    if hasattr(refused, "message"):
        refused.message = why
    return refused


def _words(error: Exception) -> str:
    return shortened(f"{type(error).__name__}: {' '.join(str(error).split())}", 300)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)  # the last one of a timer
_LOOK_EVERY = 0.5  # s, between two looks whether to end, while nothing else happens
_INSISTING = 1.0  # s: a signal this long after the first one interrupts what the node is doing
_LONGEST = 5.0  # s, of a callback after the first signal, in nodes that have nothing to finish: then it is interrupted
_NUDGE = signal.SIGURG  # ignored by default, so that nothing else of a process depends on it
_NUDGED_AFTER = 0.1  # s
_LAST_RESORT = 30.0  # s, from the last signal or the begin of the end: then a process that hangs shows where, and exits


def _woken_by_signals(executor: EnduringExecutor, unfinished: Callable[[], bool]) -> None:
    """Let signals end the executor's wait, after which alone Python's own handlers run.

    The kernel may deliver a signal to a thread of the middleware, or just before the main thread falls asleep, which
    then sleeps on: it gets a nudge of its own. A compiled call that never returns keeps handlers from running at all:
    unless there is unfinished work, a last resort waits from here on.
    """
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    signal.signal(_NUDGE, lambda number, frame: None)

    def wake() -> None:
        with mouth:  # is kept as long as there is a thread
            while number := ear.recv(1):
                if number[0] == _NUDGE:
                    continue
                if not unfinished():
                    _exit_at_last()
                with contextlib.suppress(Exception):  # of an executor that has ended meanwhile
                    executor.wake()
                time.sleep(_NUDGED_AFTER)
                signal.pthread_kill(threading.main_thread().ident or 0, _NUDGE)

    threading.Thread(target=wake, name="signals", daemon=True).start()


def _exit_at_last() -> None:
    with contextlib.suppress(RuntimeError):  # no memory for its thread: nodes have to end all the same
        faulthandler.dump_traceback_later(_LAST_RESORT, file=2, exit=True)


def _keep_clock(node: Node, parameters: list[Parameter]) -> SetParametersResult:
    """Refuse another clock while a node runs: its stamps would jump, and stand still where nobody publishes /clock."""
    now = node.get_parameter_or("use_sim_time").value
    if any(one.name == "use_sim_time" and one.value != now for one in parameters):
        why = "use_sim_time is read only at start: end the robot, and start it again with use_sim_time"
        return SetParametersResult(successful=False, reason=why)
    return SetParametersResult(successful=True)


class _SecondInterrupt(BaseException):
    pass


def run_node(make: Callable[[], Node]) -> int:
    """`run_nodes` of a single node."""
    return run_nodes(lambda: [make()])


def run_nodes(make: Callable[[], Iterable[Node]]) -> int:
    """Run nodes in one executor until they are interrupted or one of them ends by itself; returns the exit code.

    Ctrl-C and SIGTERM end first the nodes with their threads, then the context; rclpy's own handling would remove
    the context under the threads. A signal waits for the running callback, which may be compiling kernels: until
    another comes, a while later, or for five seconds where no node is `unfinished`. Then each node's `at_exit`, where
    it has one, does the remaining work, unless somebody insists. The exit code is 0, or 1 where the end hangs for
    30 s: then stderr shows the stacks of all threads. A node ends by itself by setting its `exit_code`. Where `make`,
    called with a context, is interrupted, its nodes end as others do.
    """
    stopping: list[float] = []  # when signals came, s
    ending: list[bool] = []  # not empty: nodes are being destroyed, drives off, which nothing interrupts
    nodes: list[Node] = []

    def unfinished() -> bool:
        return any(getattr(node, "unfinished", False) for node in nodes)

    def stop(number: int, frame: FrameType | None) -> None:
        if not stopping and not unfinished():
            signal.setitimer(signal.ITIMER_REAL, _LONGEST)
        stopping.append(time.monotonic())
        if stopping[-1] - stopping[0] > _INSISTING and not ending:
            ending.append(True)
            raise _SecondInterrupt

    for number in _SIGNALS:
        signal.signal(number, stop)
    # who asked has gone, or has not read for long: that is no matter of the node's
    warnings.filterwarnings("ignore", "failed to send response", RuntimeWarning)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    executor = EnduringExecutor()
    _woken_by_signals(executor, unfinished)

    def code() -> int | None:
        return next((ended for node in nodes if (ended := getattr(node, "exit_code", None)) is not None), None)

    try:
        with contextlib.suppress(_SecondInterrupt):
            for node in make():
                nodes.append(node)
                node.add_on_set_parameters_callback(partial(_keep_clock, node))
                executor.add_node(node)
            while not stopping and code() is None:
                executor.spin_once(timeout_sec=_LOOK_EVERY)
        with contextlib.suppress(_SecondInterrupt):
            for node in nodes:
                if stopping and hasattr(node, "at_exit") and not (ending and unfinished()):
                    node.at_exit()
    finally:
        ending.append(True)
        _exit_at_last()
        executor.shutdown()
        with contextlib.ExitStack() as ends:  # each of them, whatever another raises
            ends.callback(rclpy.shutdown)
            for node in reversed(nodes):
                ends.callback(node.destroy_node)
        for number in _SIGNALS:  # which would end Python by force while it clears up
            signal.signal(number, signal.SIG_IGN)
    return int(code() or 0)
