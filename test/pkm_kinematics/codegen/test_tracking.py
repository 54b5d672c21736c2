# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics by straight-line steps against the kernel, from near and from far."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.rotations import pose_distance
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import shift_pose

ROBOTS = ["delta", "gough_stewart", "gough_stewart_7", "planar_3rrr", "agile_eye", "tripteron", "hexa"]


@pytest.mark.parametrize("name", ROBOTS)
def test_finds_the_pose_again(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    S, rng, pose = kinematics.task.subspace, np.random.default_rng(8), np.empty(7)
    track, found = kinematics.lean_track(), np.empty(7)
    for step in 0.02 * rng.uniform(-1, 1, (50, S.shape[1])):
        shift_pose(kinematics.home, S @ step, 1.0, pose)
        q = np.ascontiguousarray(kinematics.inverse(pose).actuated)
        found[:] = kinematics.home
        status, miss, iterations = track(q, found)
        assert status == Status.CONVERGED
        assert miss < 1e-12
        assert iterations <= 6
        assert pose_distance(found, pose, 1.0) < 1e-10


def test_what_cannot_be_reached_is_left_to_the_kernel() -> None:
    kinematics = Kinematics(load_mechanism("gough_stewart"))
    track, pose = kinematics.lean_track(), kinematics.home.copy()
    q = np.ascontiguousarray(kinematics.inverse(pose).actuated)
    q[0] += 5.0
    status, _, _ = track(q, pose)
    assert status in (Status.DIVERGED, Status.SINGULAR, Status.UNREACHABLE)
    q[0] = np.nan
    assert track(q, pose)[0] != Status.CONVERGED
