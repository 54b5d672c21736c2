# SPDX-License-Identifier: Apache-2.0
"""Back from outside, found again, and that a change to the present working mode is none."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bench.reckless.seen_follower import planned_change, seen
from pkm_control.loop.jogging import LOW
from pkm_control.loop.operator import RecoveryError, recovery_pose
from pkm_control.operator_interface import Mode
from pkm_hardware.machine import Lifecycle

PERIOD = 4e-3  # s


@pytest.fixture
def delta(steered):
    robot = steered("delta")
    robot.run(2 * PERIOD)
    return robot


def test_nothing_is_wrong_at_home(delta) -> None:
    assert recovery_pose(seen(delta.follower)) is None


@pytest.mark.parametrize(
    ("life", "way_out"), [(Lifecycle.INACTIVE, "pkm enable"), (Lifecycle.FAULT, r"\(it broke\): reset .*pkm reset")]
)
def test_drives_that_are_off_are_to_be_enabled_first(delta, life: Lifecycle, way_out: str) -> None:
    running = seen(delta.follower)
    running.situation.mode = Mode.WAITING
    running.situation.state = SimpleNamespace(lifecycle=life, fault="it broke" if life is Lifecycle.FAULT else "")
    with pytest.raises(RecoveryError, match=f"the drives are off.*{way_out}"):
        recovery_pose(running)


def test_a_platform_outside_a_limit_is_led_back_in(delta) -> None:
    """Held just above where the arms' range ends, as if it had been pushed there."""
    check = delta.follower.check
    heights = np.linspace(0.2, 0.3, 201)
    lacks = check.deficits(np.array([delta.offset(0.0, 0.0, h) for h in heights]))
    outside = delta.offset(0.0, 0.0, heights[np.flatnonzero(lacks[:, 0] > 0.0)[0]])
    follower = delta.follower
    positions = np.array(delta.kinematics.inverse(outside).actuated)
    rest = np.zeros(len(positions))
    far = 0.5 * (np.array(delta.kinematics.inverse(delta.offset()).actuated) + positions)
    for time, q in ((4.0, far), (4.3, positions)):  # no quicker than arms turn
        follower.update(time, time, q, rest)
    assert follower.mode is Mode.HOLDING  # where it is found after a silence
    assert follower.mode is Mode.HOLDING
    there = recovery_pose(seen(follower))
    assert there is not None
    assert not check.deficits(there[None]).any()
    assert follower.jog_to(there, LOW) == ""
    before, reached = check.deficits(outside[None])[0, 0], []
    for k in range(2000):
        now = 5.0 + (k + 1) * PERIOD
        action = follower.update(now, now, positions, rest)
        positions = np.array(delta.kinematics.inverse(action.reference.pose).actuated)  # a machine that follows exactly
        lack = check.deficits(action.reference.pose[None])[0, 0]
        assert lack <= before + 1e-9
        before = lack
        reached.append(np.abs(action.reference.twist).max())
        if action.mode is Mode.HOLDING:
            break
    assert follower.mode is Mode.HOLDING
    assert before == 0.0
    assert max(reached) < 0.1  # at low speed


def test_without_readings_nothing_can_be_done(delta) -> None:
    delta.follower.silent(10.0)
    with pytest.raises(RecoveryError, match="no usable reading"):
        recovery_pose(seen(delta.follower))
    assert "stopped" in delta.follower.jog_to(delta.offset(0.01))


def test_a_platform_that_was_lost_is_found_from_home(delta) -> None:
    follower = delta.follower
    end = np.array(delta.kinematics.inverse(delta.offset(0.1, 0.1, 0.1)).actuated)
    lost = follower.update(1.0, 1.0, np.array((2.5, -2.5, 2.5)), np.zeros(3))
    assert lost.mode is Mode.STOPPED
    follower.relocate()
    found = follower.update(1.1, 1.1, end, np.zeros(3))
    assert found.mode is Mode.HOLDING
    np.testing.assert_allclose(found.measured.pose[:3], delta.offset(0.1, 0.1, 0.1)[:3], atol=1e-8)


def test_the_present_working_mode_needs_no_change(delta) -> None:
    assert planned_change(delta.follower, "+++") is None


def test_a_drive_that_slips_is_told_by_the_others_and_drives_stay_off(steered) -> None:
    robot = steered("cable_8")
    follower, rest = robot.follower, np.zeros(8)
    good, slipped = np.array(robot.kinematics.inverse(robot.kinematics.home).actuated), np.eye(8)[2]

    def read(way: float) -> None:
        read.time += PERIOD
        read.action = follower.update(read.time, read.time, good + way * slipped, rest)

    read.time = 1.0
    for way in np.arange(0.0, 0.02, 1e-3):  # m: what a cable may stretch
        read(way)
        assert follower.mode is Mode.HOLDING
    for way in np.arange(0.02, 0.12, 1e-3):
        read(way)
    assert follower.mode is Mode.STOPPED
    assert read.action.withhold_command
    assert read.action.reason.startswith("the drives contradict each other by 0.0")
    for way in np.arange(0.12, 0.0, -1e-3):
        read(way)
    assert follower.mode is Mode.STOPPED  # until it is recovered
    assert read.action.withhold_command
