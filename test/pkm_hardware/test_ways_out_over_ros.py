# SPDX-License-Identifier: Apache-2.0
"""Over ROS, too, every way out of every driver ends with drives off, by the simulated device's own state.

By day each way of one driver, as a process takes seconds to start; `test_ways_out.py` asks those of all without ROS.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="there is no ROS")

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from std_msgs.msg import Empty

from pkm_description.ros import topics

from .benches import BENCHES, wait_until
from .control_process import Control

UNTOLD = "THE DRIVES COULD NOT BE TOLD"
WATCHDOG = {"dynamixel": "2.5"}  # s, the longest; others get one that does not do what we should do
_numbers = itertools.count()


def begin(kind: str, folder: Path) -> Control:
    """A process whose drives are on."""
    control = Control(kind, folder, f"ways_{os.getpid()}_{next(_numbers)}", watchdog=WATCHDOG.get(kind, "30.0"))
    try:
        control.enable()
    except BaseException:
        control.close()
        raise
    return control


@pytest.fixture(params=BENCHES)
def control(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Control]:
    made = begin(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module", params=BENCHES)
def lasting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    """One process for the ways that do not end it."""
    made = begin(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    made.close()


@pytest.mark.by_day("dynamixel")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_process_that_is_asked_to_end(control: Control, number: signal.Signals) -> None:
    """Also by a launch that ends, which asks so; then its nodes are destroyed."""
    os.kill(control.pid, number)
    assert wait_until(lambda: not control.bench.on(), 2.0), control.text
    assert control.status() == 0, control.text
    assert UNTOLD not in control.text


@pytest.mark.by_day("servos")
def test_a_process_whose_terminal_is_closed(control: Control) -> None:
    os.kill(control.pid, signal.SIGHUP)
    assert wait_until(lambda: not control.bench.on(), 2.0), control.text
    assert control.status() == -signal.SIGHUP


@pytest.mark.by_day("odrive")
def test_a_process_that_is_killed(control: Control) -> None:
    """The loop's process turns them off."""
    os.kill(control.pid, signal.SIGKILL)
    assert wait_until(lambda: not control.bench.on(), 2.0), control.text
    said = "the process that commands the control loop has ended: the drives are off"
    assert wait_until(lambda: said in control.text, 5.0), control.text


def _stop_topic(control: Control) -> None:
    publisher = control.client.node.create_publisher(Empty, topics.EMERGENCY_STOP, topics.EVENTS)
    assert control.client.spin_until(lambda: publisher.get_subscription_count() > 0)
    publisher.publish(Empty())


def _freeze(control: Control) -> None:
    os.kill(control.pid, signal.SIGSTOP)
    try:
        assert wait_until(lambda: not control.bench.on(), 8.0)
    finally:
        os.kill(control.pid, signal.SIGCONT)


WAYS: dict[str, Callable[[Control], object]] = {
    "disable": lambda control: control.client.trigger(topics.DISABLE),
    "emergency stop": lambda control: control.client.trigger(topics.STOP_DRIVES),
    "topic": _stop_topic,
    "deactivate": lambda control: control.client.change_state(Transition.TRANSITION_DEACTIVATE),
    "frozen": _freeze,
}


@pytest.mark.by_day("dynamixel")
@pytest.mark.parametrize("way", WAYS)
def test_a_process_that_goes_on(lasting: Control, way: str) -> None:
    """Its drives stay off, whatever is done but to enable them."""
    lasting.enable()
    WAYS[way](lasting)
    assert wait_until(lambda: not lasting.bench.on(), 2.0), lasting.text
    lasting.client.trigger(topics.RESET)
    time.sleep(0.3)
    assert not lasting.bench.on()
    assert UNTOLD not in lasting.text


@pytest.mark.by_day("dynamixel")
def test_answers_that_are_lost(lasting: Control) -> None:
    """Off without being asked, and nobody believes that they are; with answers they can be enabled again."""
    lasting.enable()
    for device in lasting.bench.devices:
        device.mute = True
    assert wait_until(lambda: not lasting.bench.on(), 5.0), lasting.text
    answer = lasting.client.trigger(topics.STOP_DRIVES)
    assert not answer.success
    assert UNTOLD in answer.message
    for device in lasting.bench.devices:
        device.mute = False
    time.sleep(1.5)
    assert not lasting.bench.on()  # nobody has asked for them
    lasting.enable()


def _says_that_they_may_be_on(control: Control) -> None:
    for name in (topics.STOP_DRIVES, topics.DISABLE):
        answer = control.client.trigger(name)
        assert not answer.success
        assert UNTOLD in answer.message


@pytest.mark.by_day("dynamixel")
def test_a_machine_whose_drives_may_be_on_stays_active(lasting: Control) -> None:
    """They are told again and again; once they hear it, they are off and the machine is inactive."""
    lasting.enable()
    lasting.bench.silence_one()
    for _ in range(2):
        assert not lasting.client.change_state(Transition.TRANSITION_DEACTIVATE)
        assert lasting.client.lifecycle() == "active"
    _says_that_they_may_be_on(lasting)
    assert lasting.client.lifecycle() == "active"
    lasting.bench.hear_again()
    assert wait_until(lambda: not lasting.bench.on(), 5.0), lasting.text
    assert lasting.client.spin_until(lambda: lasting.client.lifecycle() == "inactive"), lasting.text


@pytest.mark.by_day("dynamixel")
def test_transition_to_the_end(lasting: Control) -> None:
    """The last of the tests with this process: `on_shutdown`. Drives that did not hear of it can still be told."""
    lasting.enable()
    lasting.bench.silence_one()
    assert lasting.client.change_state(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    told: list[str] = []

    def hear(message: DiagnosticArray) -> None:
        told.extend(one.message for one in message.status if int.from_bytes(one.level, "little") == 2)

    lasting.client.node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
    assert lasting.client.spin_until(lambda: any(UNTOLD in text for text in told), 10.0), told
    _says_that_they_may_be_on(lasting)
    lasting.bench.hear_again()
    assert lasting.client.trigger(topics.STOP_DRIVES).success
    assert not lasting.bench.on()
    for name in (topics.ENABLE, topics.RESET):
        answer = lasting.client.trigger(name)
        assert (answer.success, answer.message) == (False, "the machine was shut down: start its node anew")
