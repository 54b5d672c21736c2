# SPDX-License-Identifier: Apache-2.0
"""Actuator readings that jump: what trackers accept is where forward kinematics gets, and a refusal leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.loop.platform_locator import PlatformObserver
from pkm_description.rotations import pose_distance
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.status import closes

FAR = 0.5  # of the characteristic length, and rad
SAME = 1e-8  # of the characteristic length


def readings(kinematics, n, rng):
    """Random actuator positions (about n, n_actuated): of reachable poses, and as many that need belong to none."""
    k, size = kinematics, kinematics.characteristic_length
    pose, found = np.empty(7), []
    for _ in range(n // 2):
        step = k.task.subspace @ rng.uniform(-1.0, 1.0, k.mobility)
        shift_pose(k.home, FAR * rng.uniform() * np.array([size] * 3 + [1.0] * 3) * step, 1.0, pose)
        at = k.inverse(pose, mode=0)
        if closes(at.status):
            found.append(at.actuated)
    assert len(found) > n // 10
    home = k.home_joints[k.engine.actuated_column]
    # positions of redundant actuators hardly ever agree by chance: a few are enough to see them refused
    others = n // 2 if len(home) == k.mobility else 3
    unit = np.where(k.engine.actuated_turning, 1.0, size)
    return np.concatenate([found, home + FAR * unit * rng.uniform(-1.0, 1.0, (others, len(home)))])


def is_what_forward_finds(kinematics, pose, forward, k):
    """Whether an accepted pose is row k of an answer of `forward`."""
    near = pose_distance(pose, forward.pose[k], kinematics.characteristic_length)
    return closes(forward.status[k]) and near < SAME * kinematics.characteristic_length


@pytest.mark.by_day("cable_8", "delta", "five_bar", "quattro")
@pytest.mark.not_for("turning space", "singular everywhere")
@pytest.mark.parametrize("n", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_observers_and_lean_loops_answer_a_jump_as_forward_kinematics_does(robot_name, of_gallery, n):
    k = of_gallery[robot_name].kinematics
    home, still = k.home_joints[k.engine.actuated_column], np.zeros(len(k.actuated_names))
    jumps = readings(k, n, np.random.default_rng(5))
    wanted = k.forward(jumps, near=k.home, seed=k.home_joints)
    track, accepted = k.lean_track(), 0
    for i, q in enumerate(jumps):
        seen = PlatformObserver(k).observe(q, still)
        assert seen is None or is_what_forward_finds(k, seen.pose, wanted, i)
        assert (seen is not None) == closes(wanted.status[i])
        pose = k.home.copy()
        if track(q, pose)[0] != Status.CONVERGED:  # also where only `forward` goes on, through singularities of type 1
            assert (pose == k.home).all()
            continue
        accepted += 1
        assert is_what_forward_finds(k, pose, wanted, i)
        if track(home, pose)[0] != Status.CONVERGED or not pose_distance(pose, k.home, 1.0) < SAME:
            track = k.lean_track()  # not every path leads back
    assert accepted > n // 10


@pytest.mark.by_day("gough_stewart", "quattro")
@pytest.mark.parametrize("name", ["five_dof_3rr_rrr", "gough_stewart", "planar_3rrr", "quattro"])
def test_a_refused_reading_leaves_the_limbs_where_they_were(name, of_gallery):
    k = of_gallery[name].kinematics
    home = k.home_joints[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.characteristic_length)
    rng = np.random.default_rng(6)
    track, refused = k.lean_track(), 0
    for size in 5.0 * rng.uniform(size=20):
        pose = k.home.copy()
        if track(home + size * unit * rng.uniform(-1.0, 1.0, len(home)), pose)[0] == Status.CONVERGED:
            track = k.lean_track()
            continue
        refused += 1
        assert track(home, pose)[0] == Status.CONVERGED
        assert pose_distance(pose, k.home, 1.0) < SAME
    assert refused > 5
