# SPDX-License-Identifier: Apache-2.0
"""Reckless motions and their judge: what the checks admit breaks nothing, and the judge sees what does."""

from __future__ import annotations

import numpy as np
import pytest

from bench.reckless.__main__ import ROBOTS, Tally, Trial, kind_of, page, total
from bench.reckless.motions import Course
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_kinematics.kernels.compiled_rotations import displace

BY_BLOCKS = ("quattro", "h4")  # blocks of their limbs are singular where the limbs are not: refused without need


def require_all_well(tally: Tally) -> None:
    assert (tally.limit, tally.singularity, tally.other) == (0, 0, 0), tally.notes
    unconfirmed = [note for note in tally.notes if tally.robot not in BY_BLOCKS or "passive joints" not in note]
    assert not unconfirmed
    assert not [kind for kind in tally.refused if kind.startswith("?")]
    assert tally.admitted > 0
    assert tally.looked_into > 0


def test_nothing_is_broken_and_nothing_refused_without_reason() -> None:
    require_all_well(Trial("five_bar").run(0, 75, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_nothing_is_broken_by_any_robot(name: str) -> None:
    require_all_well(Trial(name).run(0, 500, 5))


@pytest.mark.parametrize(
    ("name", "kind", "word", "trials"),
    [("planar_3rrr", "type 2", "singularity", 200), ("delta", "range", "limit", 40)],
)
def test_the_judge_sees_what_was_refused(name: str, kind: str, word: str, trials: int) -> None:
    trial, random = Trial(name), np.random.default_rng(1)
    home = np.array(trial.kinematics.home)
    space = np.asarray(trial.kinematics.subspace(home))
    seen = 0
    for _ in range(trials):
        poses = np.array((home, displace(home, space @ random.uniform(-0.6, 0.6, size=space.shape[1]))))
        trajectory = PointTrajectory(np.array((0.0, 3.0)), poses, np.zeros((2, 6)), np.zeros((2, 6)))
        refusal = trial.check.refusal(trajectory)
        reason = trial.judge.breach(Course.of(trajectory, 2e-3), random)[0]
        assert bool(reason) <= bool(refusal), (reason, refusal)
        seen += kind in kind_of(refusal) and reason.startswith(word)
    assert seen > 0


def test_a_false_reason_is_not_confirmed() -> None:
    trial = Trial("delta")
    pose = np.array(trial.kinematics.home)
    still = PointTrajectory(np.array((0.0, 1.0)), np.array((pose, pose)), np.zeros((2, 6)), np.zeros((2, 6)))
    course = Course.of(still, 0.1)
    for reason in (
        "it begins with 1 m/s and 0 rad/s, not at rest",
        "velocity of limb1_arm would be 9 rad/s",
        "effort of limb1_arm would be 90 N m",
        "joint 'limb1_arm' at 9 rad is outside [0, 1]",
        "it comes too near a type 2 singularity (the actuators no longer control the platform)",
        "limb1_arm would have to jump",
    ):
        assert not trial.judge.confirms(course, reason)


def test_a_page_adds_parts_up() -> None:
    parts = [
        Tally("delta", k, goals=10, admitted=4, streams=2, refused={"speed": 6}, closest=(0.1, 0.5 - 0.1 * k, 0.4, 0.9))
        for k in range(2)
    ]
    whole = total(parts)
    assert (whole.goals, whole.admitted, whole.refused) == (20, 8, {"speed": 12})
    assert "| delta | 24 | 8 + 4 | speed 12 | 0 | 0 | 0 | 0 of 0 | 0.4, 0.4 |" in page(parts)
