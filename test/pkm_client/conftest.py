# SPDX-License-Identifier: Apache-2.0
"""A Delta for the client, in this process and over ROS: the same tests are asked of both."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from pkm_bringup import bringup
from pkm_bringup.runner import ProcessGroup, ros_arguments
from pkm_client import Robot
from pkm_control.loop_settings import Setup
from pkm_description import load_mechanism

NAMESPACE = "client_test"
RATE, FREQUENCY = 250.0, 40.0  # Hz and rad/s: so that a busy computer keeps it


def suite_transport() -> AbstractContextManager[None]:
    """As nodes are launched: else what begins within is found up to 3 s later."""
    found: AbstractContextManager[None] = importlib.import_module("pkm_client.ros.client_node").suite_transport()
    return found


@contextmanager
def described(namespace: str, *texts: str) -> Iterator[None]:
    """Publishers of robot descriptions, one of each text."""
    rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
    pytest.importorskip("pkm_interfaces.msg", reason="pkm_interfaces is not built; ./pkm test builds it")
    topics = importlib.import_module("pkm_description.ros.topics")
    message = importlib.import_module("std_msgs.msg").String
    context = rclpy.Context()
    with suite_transport():
        rclpy.init(context=context)
        node = rclpy.create_node("description", context=context, namespace=namespace)
    for text in texts:
        node.create_publisher(message, topics.ROBOT_DESCRIPTION, topics.LATCHED).publish(message(data=text))
    try:
        yield
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


@contextmanager
def running_nodes(namespace: str, text: str = "", **settings: str) -> Iterator[ProcessGroup]:
    """Machine and controller of a robot, a Delta without a `text`, as processes, and its description."""
    values = bringup.defaults(namespace=namespace, rate=str(RATE), natural_frequency=str(FREQUENCY), **settings)
    group = ProcessGroup()
    with described(namespace, text or load_mechanism("delta").urdf):
        try:
            for spec in bringup.NODES:
                if spec.name == "control":
                    command = [sys.executable, "-m", "pkm_bringup.start", spec.executable, *ros_arguments(spec, values)]
                    with suite_transport():
                        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
                    group.start(spec, process)
            yield group
        finally:
            group.stop()


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """That of a Delta over ROS."""
    with running_nodes(NAMESPACE):
        yield NAMESPACE


@pytest.fixture(scope="module", params=["one process", "ros"])
def connected(request: pytest.FixtureRequest) -> Iterator[Robot]:
    """A robot that lives for a module."""
    if request.param == "one process":
        with Robot.simulated("delta", False, Setup(rate=RATE, natural_frequency=FREQUENCY)) as robot:
            yield robot
        return
    with Robot.connect(request.getfixturevalue("namespace"), timeout=120.0) as robot:
        yield robot


@pytest.fixture
def robot(connected: Robot) -> Robot:
    """The robot at home, holding, at full speed; and whatever a test left is ended."""
    connected.set_speed(1.0)
    connected.stop()
    connected.move_to(connected.kinematics.home)
    return connected
