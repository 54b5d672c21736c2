# SPDX-License-Identifier: Apache-2.0
"""The process `control` of a run, with a driver and its simulated device, and a client that asks it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_srvs.srv import Trigger

from pkm_bringup import bringup
from pkm_bringup.runner import ros_arguments, set_up_discovery, write_parameters
from pkm_client.ros.client_node import suite_transport
from pkm_description.ros import topics

from .benches import BENCHES
from .processes import begin, children

(CONTROL,) = (spec for spec in bringup.NODES if spec.name == "control")
PATIENCE = 60.0  # s, of a computer that others use, too


class Client:
    """Asks the services of a namespace."""

    def __init__(self, namespace: str) -> None:
        self._context = rclpy.Context()
        with suite_transport():  # with Fast DDS' own, a process that starts hears of this one 3 s later
            rclpy.init(context=self._context)
            self.node = Node("client", context=self._context, namespace=namespace)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Any] = {}

    def call(self, kind: Any, name: str, request: Any, patience: float = PATIENCE) -> Any:
        """The answer of a service; None where none comes."""
        client = self._clients.get(name) or self.node.create_client(kind, name)
        self._clients[name] = client
        assert client.wait_for_service(timeout_sec=patience), f"no service {name}"
        future = client.call_async(request)
        self._executor.spin_until_future_complete(future, timeout_sec=patience)
        return future.result()

    def trigger(self, name: str, patience: float = PATIENCE) -> Any:
        """The answer of a service without a question."""
        return self.call(Trigger, name, Trigger.Request(), patience)

    def change_state(self, transition: int) -> bool:
        """Ask for a transition of the life cycle of `hardware`."""
        request = ChangeState.Request()
        request.transition.id = transition
        answer = self.call(ChangeState, "hardware/change_state", request)
        return answer is not None and answer.success

    def lifecycle(self) -> str:
        """The state of `hardware`, by its label; empty where it does not answer."""
        answer = self.call(GetState, "hardware/get_state", GetState.Request())
        return "" if answer is None else str(answer.current_state.label)

    def spin_until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Whether a condition comes true in time, while messages are heard."""
        until = time.monotonic() + seconds
        while not condition() and time.monotonic() < until:
            self._executor.spin_once(timeout_sec=0.01)
        return condition()

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)


class Control:
    """Its drives are off at first. `loop` and `pid` are its two processes."""

    def __init__(self, kind: str, folder: Path, namespace: str, priority: str = "0", **keys: str) -> None:
        self.ns = namespace
        set_up_discovery()
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self.bench = BENCHES[kind](folder, **{"silence": "1.0", "watchdog": "2.0", **keys})
        self.bench.__enter__()
        self.output = folder / "output.txt"
        robot = self.bench.kinematics.mechanism
        rate = 1.0 / self.bench.period
        values = bringup.defaults(
            hardware=kind,
            hardware_file=str(folder / "machine.yaml"),
            controller="position",
            rate=f"{rate:g}",
            namespace=namespace,
            realtime_priority=priority,
        )
        description = write_parameters(folder / "description.yaml", robot_description=robot.urdf)
        arguments = [*ros_arguments(CONTROL, values), "--params-file", str(description)]
        self.process = begin(CONTROL.module, arguments, self.output)
        assert self.process.pid is not None
        self.pid = self.process.pid
        self.client = Client(namespace)
        try:
            self.client.trigger(topics.DISABLE)
            (self.loop,) = children(self.pid)
        except BaseException:
            self.process.kill()
            self.client.close()
            self.bench.__exit__(None, None, None)
            raise

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def enable(self) -> None:
        until = time.monotonic() + PATIENCE
        answer = None
        while time.monotonic() < until:
            answer = self.client.trigger(topics.ENABLE)
            if answer.success and len(self.bench.on()) == self.bench.drives:
                return
            self.client.trigger(topics.RESET)
            time.sleep(0.2)
        raise AssertionError(f"{answer}; {self.bench.on()} on; {self.text}")

    def status(self, seconds: float = 40.0) -> int | None:
        """Its exit status; None where it has not ended in time."""
        self.process.join(seconds)
        return self.process.exitcode

    def close(self) -> None:
        """End it, whatever it does."""
        for pid, number in ((self.loop, signal.SIGCONT), (self.pid, signal.SIGCONT), (self.pid, signal.SIGINT)):
            with contextlib.suppress(ProcessLookupError):
                if self.process.exitcode is None:
                    os.kill(pid, number)
        if self.status() is None:
            self.process.kill()
        self.client.close()
        self.bench.__exit__(None, None, None)
