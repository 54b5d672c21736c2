# SPDX-License-Identifier: Apache-2.0
"""Jogs on robots of many kinds: reckless hands included, the platform stays where it can be."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.loop.jogging import LINEAR, Jog
from pkm_control.operator_interface import Mode
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_runtime.errors import PkmError
from test.conftest import VARIED

PERIOD = 4e-3  # s

ROBOTS = (
    *VARIED,
    "planar_redundant",
    "tricept",
)


@pytest.fixture(params=ROBOTS)
def robot(request: pytest.FixtureRequest, steered):
    return steered(request.param)


@pytest.fixture
def delta(steered):
    return steered("delta")


@pytest.mark.by_day("cable_8")
def test_a_reckless_hand_stays_inside(robot) -> None:
    random = np.random.default_rng(4)
    robot.run(2 * PERIOD)
    for _ in range(2):
        twist = random.normal(size=6) * (10.0, 10.0, 10.0, 30.0, 30.0, 30.0)
        for _ in range(6):
            assert robot.follower.steer(twist, robot.machine.time) == ""
            robot.run(0.1)
    robot.run(1.2)
    assert robot.actions[-1].mode is Mode.HOLDING
    moved = np.abs(robot.references - robot.references[0]).max()
    assert moved > 1e-3
    robot.assert_well()


def test_a_twist_that_is_not_renewed_ends(delta) -> None:
    delta.run(2 * PERIOD)
    assert delta.follower.steer(np.array((0.1, 0.0, 0.0, 0.0, 0.0, 0.0)), delta.machine.time) == ""
    assert delta.run(0.2).mode is Mode.JOGGING
    assert delta.actions[-1].reference.twist[0] > 0.05
    delta.run(0.8)
    assert delta.actions[-1].mode is Mode.HOLDING
    assert not delta.actions[-1].reference.twist.any()
    delta.assert_well()


@pytest.mark.parametrize("rate", [50.0, 1000.0])
def test_a_jog_begins_at_once_at_any_rate(delta, rate: float) -> None:
    jog, moved = Jog(delta.follower.check), 0.0
    jog.steer(np.array((0.02, 0.0, 0.0, 0.0, 0.0, 0.0)), 0.0)
    while not jog.reference(0.0).twist.any():
        moved += 1.0 / rate
        jog.advance(1.0 / rate, moved)
        assert moved < 0.05


def test_speed_is_limited_and_blocked_freedoms_stay_at_rest(delta) -> None:
    delta.run(2 * PERIOD)
    for _ in range(6):
        delta.follower.steer(np.array((0.0, 5.0, 0.0, 3.0, 3.0, 3.0)), delta.machine.time)
        delta.run(0.1)
    twists = np.array([one.reference.twist for one in delta.actions])
    assert 0.5 * LINEAR * delta.kinematics.characteristic_length < np.abs(twists).max() <= LINEAR * (1.0 + 1e-6)
    assert np.abs(twists[:, 3:]).max() < 1e-12


def test_a_held_stick_comes_to_rest_at_the_border(delta) -> None:
    delta.run(2 * PERIOD)
    for _ in range(40):
        delta.follower.steer(np.array((0.0, 0.0, 1.0, 0.0, 0.0, 0.0)), delta.machine.time)
        delta.run(0.1)
    assert "range" in delta.actions[-1].reason
    assert np.abs(delta.actions[-1].reference.twist).max() < 1e-6
    delta.assert_well()


def test_a_pose_is_reached_and_a_newer_one_replaces_it(delta) -> None:
    delta.run(2 * PERIOD)
    assert delta.follower.jog_to(delta.follower.jog.nearest(delta.offset(0.1), delta.follower.hold)) == ""
    delta.run(0.4)
    goal = delta.offset(0.0, 0.03, 0.02)
    assert delta.follower.jog_to(delta.follower.jog.nearest(goal, delta.follower.hold)) == ""
    delta.run(4.0)
    assert delta.actions[-1].mode is Mode.HOLDING
    np.testing.assert_allclose(delta.machine.pose[:3], goal[:3], atol=1e-5)
    delta.assert_well()


def test_a_pose_outside_is_approached(delta) -> None:
    delta.run(2 * PERIOD)
    goal = delta.offset(0.02)
    goal[3:] = 0.0, 0.0, np.sin(0.1), np.cos(0.1)  # the Delta does not turn
    assert delta.follower.jog_to(delta.follower.jog.nearest(goal, delta.follower.hold)) == ""
    delta.run(3.0)
    assert np.linalg.norm(delta.machine.pose[:3] - goal[:3]) < 0.01
    np.testing.assert_allclose(delta.machine.pose[3:], delta.kinematics.home[3:], atol=1e-9)
    delta.assert_well()


@pytest.mark.slow
def test_a_pose_far_away_is_approached_to_the_border(delta) -> None:
    delta.run(2 * PERIOD)
    goal = delta.offset(0.0, 3.0, 0.1)
    assert delta.follower.jog_to(delta.follower.jog.nearest(goal, delta.follower.hold)) == ""
    delta.run(12.0)
    assert delta.actions[-1].mode is Mode.HOLDING
    assert delta.machine.pose[1] > 0.15
    assert "the jog ended: " in delta.actions[-1].reason
    delta.assert_well()


@pytest.mark.parametrize("fraction", [5e-324, -0.0])
def test_fractions_that_are_next_to_nothing(delta, fraction: float) -> None:
    answer = delta.follower.set_override(fraction)
    assert bool(answer) == (fraction > 0.0)
    assert str(delta.follower.override) == ("1.0" if fraction else "0.0")


@pytest.mark.by_day("tripod_3prs")
@pytest.mark.parametrize("name", ["tripod_3prs", "tricept"])
def test_a_pose_in_a_space_that_turns(steered, name: str) -> None:
    robot = steered(name)
    robot.run(2 * PERIOD)
    home = np.array(robot.kinematics.home)
    goal = robot.follower.jog.nearest(displace(home, np.array((0.002, 0.0, 0.01, 0.03, 0.04, 0.0))), home)
    assert robot.follower.jog_to(goal) == ""
    robot.run(4.0)
    assert robot.actions[-1].mode is Mode.HOLDING
    assert np.abs(displacement_between(robot.machine.pose, goal)).max() < 1e-4
    robot.assert_well()


def test_what_is_not_finite_is_refused(delta) -> None:
    delta.run(2 * PERIOD)
    assert "finite" in delta.follower.steer(np.full(6, np.nan), delta.machine.time)
    assert "beyond" in delta.follower.steer(np.full(6, 1e308), delta.machine.time)
    assert delta.run(PERIOD).mode is Mode.HOLDING


@pytest.mark.parametrize("far", [1e308, -1e200, 1e9])
def test_a_pose_that_is_nonsense_is_refused_without_computing_with_it(delta, far: float) -> None:
    home = delta.offset(0.0)
    pose = home.copy()
    pose[:3] = far
    with np.errstate(all="raise"), pytest.raises(PkmError, match="times the robot's size"):
        delta.follower.jog.nearest(pose, home)
