# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics by straight-line steps against the kernel, from near and from far."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.rotations import pose_distance
from pkm_kinematics import Kinematics, Status, kinematics, lean_kinematics
from pkm_kinematics.kernels.compiled_rotations import shift_pose

# in closed form; with iterated limbs; redundantly actuated; with motion spaces that turn, in closed form and iterated
KINDS = ["hexa", "h4", "quattro", "five_dof_3rr_rrr", "wrist_3ruu", "cable_8", "planar_redundant"]
KINDS += ["tricept", "two_tpr", "spatial_4dof_5legs", "tripod_3prs", "capaman", "carpal_wrist", "reactionless_four_bar"]
ROBOTS = ["delta", "gough_stewart", "gough_stewart_7", "planar_3rrr", "agile_eye", "tripteron", "hexa"]


@pytest.mark.by_day("delta", "gough_stewart_7", "planar_3rrr", "agile_eye")
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


@pytest.mark.parametrize("name", KINDS)
def test_follows_what_the_kernels_follow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of a control period, now and then in one that takes several, and over readings that are none."""
    k, left = Kinematics(load_mechanism(name)), [0, 0]
    with monkeypatch.context() as without:
        without.setattr(kinematics, "AVAILABLE", False)
        general = k.lean_track()
    straight, bound = lean_kinematics.straight_track, lean_kinematics.bind

    def counting(kernel, fixed, example):
        call = bound(kernel, fixed, example)

        def count(*arguments):
            found = call(*arguments)
            left[found[0] != Status.CONVERGED] += 1
            return found

        return count if kernel is straight else call

    monkeypatch.setattr(lean_kinematics, "bind", counting)
    track, rng = k.lean_track(), np.random.default_rng(3)
    home, expected, found, far = np.array(k.home_joints), k.home.copy(), k.home.copy(), 0.0
    unit = 0.03 * np.where([k.engine.joint_turning[c] for c in k.engine.actuated_column], 1.0, k.engine.size)
    m, n = len(unit), k.mobility
    phases = rng.normal(size=m)
    for step in range(400):
        far += 0.5 if step % 50 == 49 else 0.02
        if m == n:
            q = home[k.engine.actuated_column] + unit * (np.sin(far + phases) - np.sin(phases))
        else:  # redundant actuators go where a platform allows
            pose = np.empty(7)
            shift_pose(k.home, 0.02 * k.task.subspace @ (np.sin(far + phases[:n]) - np.sin(phases[:n])), 1.0, pose)
            q = np.ascontiguousarray(k.inverse(pose).actuated)
        if step % 70 == 69:
            before = found.copy()
            assert track(np.full(m, np.nan), found)[0] == Status.INVALID_INPUT
            np.testing.assert_array_equal(found, before)
        assert general(q, expected)[0] == track(q, found)[0] == Status.CONVERGED
        assert pose_distance(found, expected, 1.0) < 1e-9
    assert left[0] > 350


def test_what_cannot_be_reached_is_left_to_the_kernel() -> None:
    kinematics = Kinematics(load_mechanism("gough_stewart"))
    track, pose = kinematics.lean_track(), kinematics.home.copy()
    q = np.ascontiguousarray(kinematics.inverse(pose).actuated)
    q[0] += 5.0
    status, _, _ = track(q, pose)
    assert status in (Status.DIVERGED, Status.SINGULAR, Status.UNREACHABLE)
    q[0] = np.nan
    assert track(q, pose)[0] != Status.CONVERGED
