# SPDX-License-Identifier: Apache-2.0
"""Stamps follow a clock that steps or runs on through a stall; ages do not care what it says."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import pytest
from sensor_msgs.msg import JointState

from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_description import load_mechanism
from pkm_description.ros.periodic import Age, FollowingStamps

from .conftest import Graph

HOUR = 3600.0
PERIOD = 0.001


class Clock:
    """A clock that the test sets."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return round(self.seconds * 1e9)


def offsets(stamps: FollowingStamps, clock: Clock, begin: float, periods: int) -> list[float]:
    """How far stamps are from the clock in each of some periods, in which both go on alike."""
    found = []
    for k in range(periods):
        clock.seconds += PERIOD
        found.append(1e-9 * stamps.of(begin + k * PERIOD) - clock.seconds)
    return found


@pytest.mark.parametrize("began", [0.0, 1.8e9])
def test_stamps_are_those_of_a_steady_clock(began: float) -> None:
    clock = Clock(began)
    stamps = FollowingStamps(clock)
    assert max(map(abs, offsets(stamps, clock, 0.0, 1000))) < 1e-6
    assert stamps.steps == 0


@pytest.mark.parametrize("step", [HOUR, -HOUR, 1.8e9, -1.7e9])
def test_a_clock_that_is_set_is_followed_at_once(step: float) -> None:
    clock = Clock(1.8e9)
    stamps = FollowingStamps(clock)
    offsets(stamps, clock, 0.0, 100)
    clock.seconds += step
    assert max(map(abs, offsets(stamps, clock, 0.1, 100))) < 1e-6
    assert stamps.steps == 1


@pytest.mark.parametrize("stall", [0.3, -0.3])
def test_a_stall_is_made_up_gently_and_stamps_do_not_go_back(stall: float) -> None:
    """The loop's time stood while the clock went on, or the other way round."""
    clock = Clock(1.8e9)
    stamps = FollowingStamps(clock)
    offsets(stamps, clock, 0.0, 100)
    clock.seconds += stall
    last, at = stamps.of(0.1), 0.1
    for _ in range(20_000):
        clock.seconds += PERIOD
        at += PERIOD
        new = stamps.of(at)
        assert 0.979e6 < new - last < 1.021e6  # ns, of a period of a millisecond
        last = new
    assert 1e-9 * last == pytest.approx(clock.seconds, abs=1e-4)


def node(simulated: bool, clock: Clock) -> Any:
    now = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=clock()))
    return SimpleNamespace(
        has_parameter=lambda name: True,
        get_parameter=lambda name: SimpleNamespace(value=simulated),
        get_clock=lambda: now,
    )


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_the_age_of_a_message_is_that_of_no_clock_that_is_set(step: float) -> None:
    clock = Clock(1.8e9)
    age = Age(node(False, clock))
    assert age.seconds == math.inf
    age.note()
    clock.seconds += step
    assert 0.0 <= age.seconds < 10.0
    time.sleep(0.02)
    assert age.seconds > 0.01


def test_the_age_in_simulated_time_stands_with_it() -> None:
    clock = Clock(5.0)
    age = Age(node(True, clock))
    age.note()
    time.sleep(0.02)
    assert age.seconds == 0.0
    clock.seconds = 5.5
    assert age.seconds == pytest.approx(0.5)
    clock.seconds = 1.0  # played again
    assert age.seconds == math.inf


def test_a_machine_alone_whose_time_stood_still_stamps_by_the_clock_again(graph: Graph) -> None:
    graph.describe(load_mechanism("delta").urdf)
    heard: list[JointState] = graph.listen(JointState, "hardware/joint_states")
    hardware = graph.start(HardwareNode, None, rate=100.0)
    graph.wait(lambda: heard, 120.0)

    def behind() -> float:
        """s, of the newest stamp behind the clock, once another one has come."""
        heard.clear()
        graph.wait(lambda: heard)
        stamp = heard[-1].header.stamp
        return 1e-9 * hardware.get_clock().now().nanoseconds - (stamp.sec + 1e-9 * stamp.nanosec)

    assert abs(behind()) < 0.3
    with hardware._alone.lock:
        time.sleep(2.0)  # its loop stands still, of which a simulated machine makes up some milliseconds
    time.sleep(0.2)
    assert abs(behind()) < 0.3
