# SPDX-License-Identifier: Apache-2.0
"""Workspaces over orientations: a planar robot's dexterous workspace is known, and the kinds lie in each other."""

from __future__ import annotations

from functools import cache
from math import pi, sqrt

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.requirements.conditions import over_orientations
from pkm_description import load_mechanism

BASES = ((0.0, 0.0), (1.0, 0.0), (0.5, sqrt(3.0) / 2.0))
INNER, OUTER, RADIUS = 0.2, 1.0, 0.4 / sqrt(3.0)  # of a limb's reach, and of the platform's corners about its centre


@cache
def analysis(name: str) -> Analysis:
    return Analysis(load_mechanism(name))


@pytest.mark.slow
def test_dexterous_workspace_of_a_planar_robot() -> None:
    a = analysis("planar_3rrr")
    steps, tolerance = 25, 2e-3
    found = a.positions("dexterous", {"yaw": (-pi, pi)}, steps=steps, tolerance=tolerance, resolution=80)
    points = np.random.default_rng(0).uniform([0.2, 0.0], [0.8, 0.6], (300_000, 2))
    distance = np.array([np.hypot(*(points - base).T) for base in BASES])
    inside = ((distance >= INNER + RADIUS) & (distance <= OUTER - RADIUS)).all(axis=0)
    size = 0.36 * inside.mean()
    assert size > 0.0
    missed = RADIUS * (1.0 - np.cos(pi / (steps - 1)))  # between two orientations that are tried
    around = 2.0 * pi * (OUTER - RADIUS)
    joints = size - found.size  # limits of joints take their part, and only take
    assert found.size <= size + found.error + missed * around
    assert joints < size


def test_kinds_lie_in_each_other() -> None:
    a, options = analysis("planar_3rrr"), {"steps": 5, "resolution": 50}
    turn = {"yaw": (-0.4, 0.4)}
    total = a.positions("total", turn, **options)  # type: ignore[arg-type]
    inclusive = a.positions("inclusive", turn, **options)  # type: ignore[arg-type]
    reachable = a.positions("reachable", steps=9, resolution=50)
    still = a.workspace(vary="xy", resolution=80)
    assert total.size < still.size < inclusive.size < reachable.size
    points = np.random.default_rng(1).uniform([0.0, -0.3], [1.0, 1.0], (400, 2))
    poses = np.column_stack([np.repeat(points, 5, axis=0), np.tile(np.linspace(-0.4, 0.4, 5), 400)])
    ok = (a.robot.kinematics.inverse(poses).status == 0).reshape(400, 5)
    assert (total.contains(points) == ok.all(axis=1)).all()
    assert (inclusive.contains(points) == ok.any(axis=1)).all()


@pytest.mark.parametrize(
    ("name", "kind", "angles", "answer"),
    [
        ("delta", "dexterous", None, "cannot be turned"),
        ("planar_3rrr", "total", None, "needs a range of orientations"),
        ("planar_3rrr", "whole", None, "no such kind"),
        ("planar_3rrr", "total", {"yaw": (0.4, -0.4)}, "is empty"),
        ("gough_stewart", "total", {"tilt": (0.0, 0.1)}, "none of that name"),
    ],
)
def test_kinds_without_an_answer(name: str, kind: str, angles: dict[str, tuple[float, float]], answer: str) -> None:
    with pytest.raises(AnalysisError, match=answer):
        analysis(name).positions(kind, angles)


def test_what_is_said_of_orientations_is_true_of_them() -> None:
    found = analysis("planar_3rrr").positions("total", {"yaw": (-0.4, 0.4)}, steps=5, resolution=20)
    words = found.to_dict()["domain"]
    assert words in str(found)
    assert words.endswith("in every one of 5 orientations: yaw -22.92 to 22.92 deg in 5 values")
    assert "held" not in words


def test_why_a_position_is_outside_is_said_of_the_orientation_that_is_not_possible() -> None:
    a = analysis("planar_3rrr")
    bound = a.requirement("joint:limb1_arm < 2.4 rad")  # at home it stands at 2.387 rad
    membership = over_orientations(a.robot, "dexterous", None, 9, [bound])
    home = np.array([c.home for c in membership.domain.coordinates])
    said = membership.why(int(membership.codes(home[None])[0]), home)
    assert "joint:limb1_arm < 2.4 rad does not hold, it is " in said
    assert ", at yaw " in said
    assert float(said.partition("it is ")[2].split()[0]) > np.degrees(2.4)
