# SPDX-License-Identifier: Apache-2.0
"""A machine in a process of its own under the real controller_manager: it comes late, dies, and another comes.

Needs the same as `test_ros2_control_stack.py`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from pkm_bringup.ros2_control import FORWARD
from pkm_client import MotionEndedError, RefusedError, Robot
from pkm_description.ros import messages, topics

from .conftest import Graph
from .managed_robot import Stack, launched, needed

pytestmark = needed

_WANTED = ("joint_state_broadcaster", "joint_trajectory_controller")
_FAR = 0.3  # rad from home, where the machine dies; another one is at home
_STILL = 0.01  # rad
_ASIDE = np.array([0.1, 0.0, -0.03])  # m


@contextmanager
def machine(stack: Stack) -> Iterator[subprocess.Popen[bytes]]:
    """A simulated machine, as whoever builds one would start it."""
    program = [sys.executable, "-m", "pkm_bringup.start", "hardware_node", "--ros-args", "-r", "__node:=hardware"]
    program += ["-r", f"__ns:={stack.graph.namespace}", "-p", "rate:=250.0"]
    with subprocess.Popen(program) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module", params=("position", "effort"))
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    graph = Graph(f"/late_machine_by_{request.param}")
    log = tmp_path_factory.mktemp("launch") / "launch.log"
    settings = ("hardware:=none", f"command_interface:={request.param}")
    with launched(graph, "delta", log, *settings, speaks=False) as made:
        yield made
    graph.close()


def are(stack: Stack, state: str) -> bool:
    states = stack.states()
    return all(states.get(name) == state for name in _WANTED)


def reached(stack: Stack, angle: float) -> bool:
    """Whether all drives get to an angle [rad], though a busy computer lets the machine be silent for a moment."""
    for _ in range(5):
        stack.graph.wait(lambda: are(stack, "active"), 60.0)
        handle, _ = stack.offer(np.full((1, 3), angle), 2.0)
        if handle.accepted:
            done = stack.graph.in_executor(handle.get_result_async)
            stack.graph.wait(done.done)
            if done.result().result.error_code == 0:
                stack.graph.wait(lambda: np.abs(stack.here() - angle).max() < _STILL)
                return True
    return False


def test_a_machine_is_waited_for_and_one_in_its_place_is_not_thrown_to_where_it_was(stack: Stack) -> None:
    graph = stack.graph
    graph.wait(lambda: are(stack, "inactive"), 60.0)
    time.sleep(1.0)
    assert are(stack, "inactive"), "nobody has heard a machine"
    with machine(stack) as first:
        graph.wait(lambda: are(stack, "active"), 60.0)
        assert reached(stack, _FAR)
        done, _ = stack.go(np.full((1, 3), _FAR + 0.1), 4.0)
        time.sleep(1.0)
        first.kill()
        graph.wait(lambda: are(stack, "inactive"), 10.0)
        graph.wait(done.done, 10.0)
        assert done.result().result.error_code != 0
    assert stack.here()[0] > _FAR - _STILL
    found: list[JointState] = graph.listen(JointState, topics.HARDWARE_STATES)
    with machine(stack):
        graph.wait(lambda: are(stack, "active") and found, 60.0)
        time.sleep(1.0)
        way = np.array([messages.joint_values(one, stack.names, what="state") for one in found])
        assert np.abs(way).max() < _STILL
        assert reached(stack, 0.1)


def moved(robot: Robot, place: np.ndarray) -> None:
    """Move the platform to a place (3,) [m], though a busy computer ends motions now and then."""
    for _ in range(5):
        try:
            robot.move_to(place)
        except (MotionEndedError, RefusedError):  # the latter while it is not held
            time.sleep(1.0)
            with suppress(RefusedError):
                robot.recover()
        else:
            return
    pytest.fail("it did not get there")


def test_our_controller_does_not_throw_the_machine_that_takes_the_place_of_one_that_died(tmp_path: Path) -> None:
    graph = Graph("/late_machine_by_platform")
    settings = ("hardware:=none", f"controllers:={FORWARD}", "motion:=none")
    with launched(graph, "delta", tmp_path / "launch.log", *settings, speaks=False) as stack:
        with machine(stack) as first:
            graph.wait(lambda: stack.states().get(FORWARD) == "active", 60.0)
            robot = Robot.connect(graph.namespace)
            end = np.array(robot.kinematics.home[:3]) + _ASIDE
            moved(robot, end)
            task = robot.move_to(end - 3.0 * _ASIDE, speed=0.05, block=False)
            first.kill()
            graph.wait(lambda: stack.states()[FORWARD] == "inactive", 10.0)
            with pytest.raises(MotionEndedError):
                task.result(20.0)
        found: list[JointState] = graph.listen(JointState, topics.HARDWARE_STATES)
        with machine(stack):
            graph.wait(lambda: stack.states()[FORWARD] == "active" and found, 60.0)
            time.sleep(1.0)
            way = np.array([messages.joint_values(one, stack.names, what="state") for one in found])
            assert np.abs(way).max() < _STILL
            moved(robot, end)
            robot.close()
    graph.close()


def test_an_empty_goal_is_rejected(stack: Stack) -> None:
    with machine(stack):
        stack.graph.wait(lambda: are(stack, "active"), 60.0)
        assert not stack.offer(np.empty((0, 3)), 1.0)[0].accepted
