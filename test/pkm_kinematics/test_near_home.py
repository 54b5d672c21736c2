# SPDX-License-Identifier: Apache-2.0
"""Quick ways to solve iterated limbs lead where the general ones do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import load_mechanism
from pkm_description.corrections import Displacement, corrected, corrected_text
from pkm_description.from_urdf import mechanism_from_urdf
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace, shift_pose, write_displacement
from pkm_kinematics.status import Status, closes


def moved(k, size, n):
    """Poses (n, 7) of random drives, up to `size` [rad, and of the robot's size] from home's."""
    unit = size * np.where(k.engine.actuated_turning, 1.0, k.engine.size)
    drives = k.engine.home_joints[k.engine.actuated_column]
    found = k.forward(drives + unit * np.random.default_rng(3).uniform(-1.0, 1.0, (n, len(unit))))
    return found.pose[found.ok]


@pytest.mark.parametrize("name", ["capaman", "five_dof_3rr_rrr", "h4", "irsbot2"])
@pytest.mark.parametrize("size", [0.05, 0.8])
def test_limbs_get_where_steps_from_home_lead(of_gallery, name: str, size: float) -> None:
    k = of_gallery[name].kinematics
    home, poses = k.engine.from_home, moved(k, size, 200)
    for mode in {0, k.n_modes - 1}:
        start, branch = k.modes.start(mode), k.modes.branch(mode)
        quick, found = home.found(poses, start, branch)
        stepped, expected = home._found_far(poses, start, branch)
        assert (quick.certain == stepped.certain).all()
        assert (found.status == expected.status).all()
        np.testing.assert_allclose(found.q, expected.q, atol=1e-10)
        if size < 0.1 and mode == 0:
            solved = home.positions.unsolved(len(poses))
            at_home = home._at_home(start, branch)
            assert home._solve_near_home(k.engine.model, at_home, poses, branch, solved) < 0.2 * len(poses)


@pytest.mark.parametrize("name", ["capaman", "five_dof_3rr_rrr", "h4", "irsbot2"])
def test_lean_calls_on_a_way_that_turns_back(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    turns = np.sin(np.linspace(0.0, 7.0, 500)) ** 3 * 0.2
    unit = np.where(k.engine.actuated_turning, 1.0, k.engine.size) * (1.0 + 0.1 * np.arange(len(k.actuated_names)))
    poses = k.forward(k.engine.home_joints[k.engine.actuated_column] + turns[:, None] * unit).pose
    call, q = k.lean_inverse(), np.empty(len(k.actuated_names))
    seed = k.inverse(k.home).joints
    for pose in poses[np.isfinite(poses).all(axis=1)]:
        assert call(np.ascontiguousarray(pose), q) == Status.CONVERGED
        expected = k.inverse(pose, seed=seed)
        seed = expected.joints
        np.testing.assert_allclose(q, expected.actuated, atol=1e-11)


def test_lean_calls_leap_though_a_straight_way_leaves_the_motion_space(of_gallery) -> None:
    """Loops had to close on the way, which they cannot: who was once too far away was so for ever."""
    k = of_gallery["capaman"].kinematics
    poses = moved(k, 0.1, 200)
    expected = k.inverse(poses, mode=0)
    call, q = k.lean_inverse(), np.empty(len(k.actuated_names))
    for pose, drives in zip(poses, expected.actuated, strict=True):
        assert call(np.ascontiguousarray(pose), q) == Status.CONVERGED
        np.testing.assert_allclose(q, drives, atol=1e-9)


def test_limbs_stretched_at_home_stay_in_their_mode() -> None:
    """Blocks of more equations than joints: an iteration that leapt over their singularity was not seen."""
    k = Kinematics(load_mechanism("wrist_3ruu", xacro_args={"home_swing": "0.03"}))
    directions = np.random.default_rng(0).normal(size=(120, 3))
    lengths = np.linspace(0.02, 0.3, 120)[:, None]
    paths = lengths * directions / np.linalg.norm(directions, axis=1, keepdims=True)  # rad
    poses = np.repeat(k.home[None], len(paths), axis=0)
    seeds, followed = np.repeat(k.inverse(k.home).joints[None], len(paths), axis=0), np.ones(len(paths), dtype=bool)
    home = Rotation.from_quat(k.home[3:])
    for part in np.linspace(0.0, 1.0, 201)[1:]:  # at most 1.5 mrad each
        poses[:, 3:] = (Rotation.from_rotvec(part * paths) * home).as_quat()
        found = k.inverse(poses, seed=seeds)
        with np.errstate(invalid="ignore"):
            followed &= found.ok & (np.abs(found.joints - seeds).max(axis=1) < 0.25)
        seeds[followed] = found.joints[followed]
    assert followed.sum() > 10
    here = k.inverse(poses[followed])
    assert (here.status == Status.CONVERGED).all()
    np.testing.assert_allclose(here.joints, seeds[followed], atol=1e-7)


@pytest.mark.parametrize("name", ["h4", "capaman"])
def test_a_lean_call_begins_elsewhere_than_at_home(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    poses = moved(k, 0.4, 60)
    there, q = k.inverse(poses, mode=0), np.empty(len(k.actuated_names))
    assert there.ok.sum() > 20
    for pose, joints, drives in zip(poses[there.ok], there.joints[there.ok], there.actuated[there.ok], strict=True):
        assert k.lean_inverse(0, np.array(joints), np.array(pose))(np.array(pose), q) == Status.CONVERGED
        np.testing.assert_allclose(q, drives, atol=1e-9)


def test_joints_go_round_a_singularity_beside_the_way() -> None:
    """Where a long step leapt over it, limbs came out beyond it: 2 of 100 poses of such an Eclipse II were wrong."""
    random = np.random.default_rng(1)
    moved = [Displacement(f"limb{i}_turn", "origin", 2e-3 * random.standard_normal(6)) for i in (1, 2, 3)]
    k = Kinematics(corrected(load_mechanism("eclipse2"), moved))
    home, size = np.array(k.home), np.repeat([k.engine.size, 1.0], 3)
    poses = np.array([displace(home, step * size) for step in random.uniform(-0.5, 0.5, (300, 6))])
    found = k.inverse(poses, mode=0)
    at, paths, q = poses.copy(), np.empty((300, 6)), np.tile(k.modes.start(0), (300, 1))
    for row in range(300):
        write_displacement(home, poses[row], paths[row])
    followed = np.ones(300, dtype=bool)
    for part in np.linspace(0.0, 1.0, 101)[1:]:
        for row in range(300):
            shift_pose(home, paths[row], part, at[row])
        there = k.inverse(at, seed=q)
        followed &= closes(there.status) & (np.abs(there.joints - q).max(axis=1) < 0.3)
        q = there.joints
    assert followed.sum() > 200
    assert closes(found.status)[followed].all()
    np.testing.assert_allclose(np.exp(1j * found.joints[followed]), np.exp(1j * q[followed]), atol=1e-9)


def test_a_level_platform_that_has_yawed_far_is_read_as_level() -> None:
    """Without ranges, its yaw was read nearer to home's, half a turn off, with half a turn of pitch and one of roll."""
    drawn = load_mechanism("gough_stewart")
    k = Kinematics(mechanism_from_urdf(corrected_text(drawn, [], free_platform=True), drawn.source))
    found = k.inverse(displace(np.array(k.home), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.0])))
    angles = [k.joint_names.index(f"platform_{name}") for name in ("yaw", "pitch", "roll")]
    np.testing.assert_allclose(found.joints[angles], [2.0, 0.0, 0.0], atol=1e-9)
