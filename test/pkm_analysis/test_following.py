# SPDX-License-Identifier: Apache-2.0
"""Poses whose coordinates follow from some of them: those of the way straight from home, whoever asked before."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_analysis.domain import Lattice, TaskCoordinates
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_kinematics import Status

NAMES = ("tripod_3prs", "tricept", "two_tpr")


@cache
def analysis(name: str) -> Analysis:
    return Analysis(load_mechanism(name))


def some_points(name: str, n: int = 60) -> Array:
    domain = analysis(name).conditions().domain
    size = analysis(name).robot.kinematics.engine.size
    reach = np.array([0.5 * size if c.unit == "m" else 1.2 for c in domain.coordinates])
    home = np.array([c.home for c in domain.coordinates])
    return home + reach * np.random.default_rng(4).uniform(-1.0, 1.0, (n, len(home)))


@pytest.mark.parametrize("name", NAMES)
def test_they_are_those_of_the_straight_way_from_home(name: str) -> None:
    domain, points = analysis(name).conditions().domain, some_points(name)
    poses, known = domain.poses(points)
    assert known.sum() > 30
    engine = analysis(name).robot.kinematics.engine
    names = [*(c.name for c in domain.coordinates), *domain.held]
    columns = [[c.name for c in domain.task.all].index(one) for one in names]
    start = engine.inputs.in_whole_graph_at(engine.home_joints, engine.home)
    for pose, values in zip(poses[known], domain.values(points[known])[:, columns], strict=True):
        way = engine.whole_graph.follow(start, names, values, engine.size)
        assert way.status[0] == Status.CONVERGED
        same = 1.0 if pose[3:] @ way.pose[0, 3:] > 0.0 else -1.0  # both signs of a quaternion are one
        np.testing.assert_allclose(np.r_[pose[:3], same * pose[3:]], way.pose[0], atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_they_do_not_depend_on_what_was_asked_before(name: str) -> None:
    domain, points = analysis(name).conditions().domain, some_points(name)
    engine = analysis(name).robot.kinematics.engine
    names = [*(c.name for c in domain.coordinates), *domain.held]
    columns = [[c.name for c in domain.task.all].index(one) for one in names]
    values = domain.values(points)[:, columns]
    together = Lattice(engine, names).poses(values)
    one_by_one = Lattice(engine, names)
    for k in reversed(range(len(values))):
        pose, known = one_by_one.poses(values[k : k + 1])
        assert known[0] == together[1][k]
        np.testing.assert_allclose(pose[0], together[0][k], rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("name", [*NAMES, "delta", "gough_stewart", "five_bar", "carpal_wrist"])
def test_coordinates_are_read_from_poses(name: str) -> None:
    task = TaskCoordinates(analysis(name).robot.kinematics)
    values = np.array([c.home for c in task.all]) + np.random.default_rng(5).uniform(-0.3, 0.3, (8, len(task.all)))
    np.testing.assert_allclose(task.read(task.poses(values)[0]), values, atol=1e-9)
