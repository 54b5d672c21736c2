# SPDX-License-Identifier: Apache-2.0
"""A pick from a conveyor over ROS: the encoder is a topic, whose stamps err."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_client import Robot
from pkm_control.conveyor.conveyor import ConveyorError
from pkm_control.operator_interface import Outcome

from .conftest import running_nodes

NAMESPACE = "conveyor_test"
SPEED, RATE, JITTER = 0.2, 100.0, 1e-3  # m/s, Hz, s
SOON = 8.0  # s, until an object comes

PICK = """# frame: conveyor
x [m], y [m], z [m], dwell [s], ride
0, 0, 0.03, 0, 1
0, 0, 0, 0.3, 1
0, 0, 0.03, 0, 1
0, 0.03, -0.82, 0, 0
"""
BELT = """
conveyors:
  belt: {direction: [0, 1, 0], origin: [0, -1, -0.85], window: [0.8, 1.2], metres_per_unit: 0.05, silence: 2}
"""

pytestmark = pytest.mark.slow


class Encoder:
    """A belt and its encoder, on the clock of the simulated machine, which stalls where this computer does.

    What the controller measures meanwhile is kept.
    """

    def __init__(self) -> None:
        rclpy = importlib.import_module("rclpy")
        executors = importlib.import_module("rclpy.executors")
        self._joints = importlib.import_module("sensor_msgs.msg").JointState
        topics = importlib.import_module("pkm_description.ros.topics")
        state = importlib.import_module("pkm_interfaces.msg").ControllerState
        self._rclpy, self._context = rclpy, rclpy.Context()
        with importlib.import_module("pkm_client.ros.client_node").suite_transport():
            rclpy.init(context=self._context)
            self._node = rclpy.create_node("encoder", context=self._context, namespace=NAMESPACE)
        self._publisher = self._node.create_publisher(self._joints, "conveyor_encoders", topics.STREAM_OUT)
        self._random = np.random.default_rng(3)
        self.seen: list[tuple[float, np.ndarray]] = []
        self._node.create_subscription(state, topics.CONTROLLER_STATE, self._measured, topics.STREAM_IN)
        self._node.create_subscription(self._joints, topics.HARDWARE_STATES, self._tell, topics.STREAM_IN)
        self._began = self._told = 0.0
        self.speaks = True
        self._executor = executors.SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def travel(self, time: float) -> float:
        return SPEED * (time - self._began)

    def _tell(self, state: Any) -> None:
        now = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        if not self.speaks or now - self._told < 1.0 / RATE:
            return
        self._began, self._told = self._began or now, now
        stamp = self._rclpy.time.Time(nanoseconds=int(1e9 * (now + JITTER * self._random.uniform(-1.0, 1.0))))
        message = self._joints(name=["other", "belt"], position=[1.0, self.travel(now) / 0.05])
        message.header.stamp = stamp.to_msg()
        self._publisher.publish(message)

    def _measured(self, message: Any) -> None:
        place = message.measured_pose.position
        stamp = message.header.stamp
        self.seen.append((stamp.sec + 1e-9 * stamp.nanosec, np.array((place.x, place.y, place.z))))

    @contextmanager
    def running(self) -> Iterator[Encoder]:
        thread = threading.Thread(target=self._executor.spin)
        thread.start()
        try:
            yield self
        finally:
            self._executor.shutdown()
            thread.join()
            self._node.destroy_node()
            self._rclpy.shutdown(context=self._context)


def test_a_pick_and_a_silent_encoder(tmp_path: Path) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
    pytest.importorskip("pkm_interfaces.msg", reason="pkm_interfaces is not built; ./pkm test builds it")
    file, pick = tmp_path / "belt.yaml", tmp_path / "pick.csv"
    file.write_text(BELT)
    pick.write_text(PICK)
    with (
        running_nodes(NAMESPACE, conveyor_file=str(file)),
        Robot.connect(NAMESPACE, timeout=120.0, conveyor_file=str(file)) as robot,
    ):
        assert "receives no usable" in robot.belt("belt").problem
        with Encoder().running() as encoder:
            while robot.belt("belt").problem:
                robot.wait(0.1)
            robot.wait(1.0)
            assert robot.belt("belt").speed == pytest.approx(SPEED, rel=0.05)
            at = robot.belt("belt").travel + SPEED * SOON - 0.8
            assert robot.follow(pick, on="belt", at=at).result().outcome is Outcome.SUCCESSFUL
            objects = np.array([(0.0, encoder.travel(time) - at - 1.0, -0.85) for time, _ in encoder.seen])
            away = np.linalg.norm(np.array([place for _, place in encoder.seen]) - objects, axis=1)
            assert np.sort(away)[:10].max() < 0.5e-3  # of 30, some of which a busy computer loses
            encoder.speaks = False
            while not robot.belt("belt").problem:
                robot.wait(0.1)
            with pytest.raises(ConveyorError, match="receives no usable readings of conveyor 'belt'"):
                robot.follow(pick, on="belt")
