# SPDX-License-Identifier: Apache-2.0
"""The kinds of robots that tests leave out hold the robots they should: no robot is spared by mistake."""

from __future__ import annotations

import numpy as np
import pytest

from bench.states import NoRegularStatesError, random_states


def no_regular_states(robot) -> bool:
    try:
        random_states(robot.kinematics, robot.judge, 10, seed=20)
    except NoRegularStatesError:
        return True
    return False


def turns_only(robot) -> bool:
    k = robot.kinematics
    return k.constant_space and not (np.abs(k.subspace(k.home)[:3]).max(axis=0) > 0.5).any()


def by_search(robot) -> bool:
    return robot.kinematics.assembly_method == "search"


RULES = {
    "singular everywhere": no_regular_states,
    "turning space": lambda robot: not robot.kinematics.constant_space,
    "fixed centre": turns_only,
    "redundantly actuated": lambda robot: len(robot.kinematics.actuated_names) > robot.kinematics.mobility,
    "modes by search": lambda robot: robot.kinematics.assembly_method == "search",
    "modes without sides": lambda robot: not by_search(robot) and robot.kinematics.assembly.unsigned,
    "without straight lines": lambda robot: not robot.kinematics.straight,
    "loaded branch": lambda robot: bool(robot.kinematics.mechanism.mobility.left_out),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(RULES))
def test_a_kind_is_the_robots_that_its_rule_names(kind, kinds, of_gallery):
    assert {name for name, robot in of_gallery.items() if RULES[kind](robot)} == set(kinds[kind])


def test_every_kind_has_a_rule(kinds):
    assert set(RULES) == set(kinds)


@pytest.mark.parametrize("kind", "abc")
@pytest.mark.parametrize("way", range(5))
def test_combinations(kind, way):
    """What the next test looks at."""


def test_each_value_is_asked_by_day_and_each_combination_by_night_or_day(request):
    asked = [item.callspec.params for item in request.session.items if item.originalname == "test_combinations"]
    assert len(asked) == 5
    assert {one["kind"] for one in asked} == set("abc")
    assert {one["way"] for one in asked} == set(range(5))


@pytest.mark.slow
def test_every_robot_has_masses(of_gallery):
    for robot in of_gallery.values():
        assert not all(link.inertial.massless for link in robot.kinematics.mechanism.links)
