# SPDX-License-Identifier: Apache-2.0
"""Pose to joints to pose at random poses in every working mode, singular neighbourhoods and joint limits included."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.round_trips import BACK, CLOSED, Tally, moved, pose_error, travel
from pkm_description.gallery import robot_names

SINGULAR_EVERYWHERE = {"griffis_duffy"}
FEW = 40
MANY = 100_000


def check(tally: Tally, poses: int) -> None:
    assert tally.wrong == 0, tally.example
    assert tally.gap < CLOSED
    if tally.robot in SINGULAR_EVERYWHERE:
        assert tally.back == 0  # whatever came back would be one pose of a motion
        assert tally.refused == tally.trips
        return
    assert tally.back >= 0.98 * max(tally.trips, poses) - 2


@pytest.mark.parametrize("name", robot_names())
def test_there_and_back(name, of_gallery):
    check(travel(of_gallery[name].kinematics, name, FEW, seed=3), FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", robot_names())
def test_there_and_back_many_times(name, of_gallery):
    check(travel(of_gallery[name].kinematics, name, MANY, seed=4), MANY)


class Faulty:
    """A robot whose forward kinematics answers some requests wrongly, and all else as it should."""

    def __init__(self, kinematics, wrong):
        self.kinematics = kinematics
        self.wrong = wrong  # of a pose (7,)
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self.kinematics, name)

    def forward(self, q, near=None, seed=None):
        found = self.kinematics.forward(q, near, seed)
        for pose in found.pose.reshape(-1, 7)[self.calls % 10 :: 10]:
            pose[:] = self.wrong(pose)
        self.calls += 1
        return found


def mirrored(pose):
    """The other assembly mode of a Delta, or nearly."""
    return pose * [1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0]


def aside(pose):
    """A pose off by a little more than a trip may be."""
    return np.add(pose, [3.0 * BACK, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("wrong", [mirrored, aside])
def test_the_judge_sees_a_wrong_answer_in_ten(wrong, of_gallery):
    with pytest.raises(AssertionError):
        check(travel(Faulty(of_gallery["delta"].kinematics, wrong), "delta", FEW, seed=3), FEW)


def test_the_judge_sees_small_errors():
    """The error of a pose moved by a known twist is the length of that twist."""
    rng = np.random.default_rng(0)
    poses = np.hstack([rng.uniform(-1, 1, (50, 3)), Rotation.random(50, rng=0).as_quat()])
    for length in (1e-11, 1e-6, 1e-2):
        twist = rng.normal(size=(50, 6))
        twist *= length / (np.linalg.norm(twist[:, :3], axis=1) + np.linalg.norm(twist[:, 3:], axis=1))[:, None]
        beside = moved(poses, twist)
        turned = Rotation.from_rotvec(twist[:, 3:]) * Rotation.from_quat(poses[:, 3:])
        exact = np.hstack([poses[:, :3] + twist[:, :3], turned.as_quat()])
        assert pose_error(beside, exact).max() < length**3 + 1e-15
        assert np.abs(pose_error(beside, poses) - length).max() < 1e-4 * length + 1e-15
        beside[:, 3:] *= -1.0  # the same orientation
        assert np.abs(pose_error(beside, poses) - length).max() < 1e-4 * length + 1e-15
