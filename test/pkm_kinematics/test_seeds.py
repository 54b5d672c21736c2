# SPDX-License-Identifier: Apache-2.0
"""A seed that is a configuration at the pose is the nearest there is, and so the answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.tracker import Tracker
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.status import Status

ROBOTS = ("agile_eye", "delta", "gough_stewart", "planar_3rpr", "planar_3rrr", "tricept", "tripod_3prs")
SAME = 1e-6  # rad or m
STEP = 1e-5  # of actuator rates, for difference quotients


@pytest.mark.parametrize("name", ROBOTS)
def test_every_assembly_mode_is_answered_with_its_own_joints(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    home = k.home_joints[k.engine.actuated_column]
    random = np.random.default_rng(1)
    for q in (home, home + 0.05 * random.normal(size=len(home))):
        modes = k.forward_all(q)
        assert len(modes) >= 2
        for mode in modes:
            solved = k.inverse(mode.pose, seed=mode.joints)
            assert solved.status == mode.status, mode.label
            np.testing.assert_allclose(solved.joints, mode.joints, atol=SAME, err_msg=mode.label)
            moved = k.motion(mode.pose, np.zeros(6), seed=mode.joints)
            np.testing.assert_allclose(moved.joints, mode.joints, atol=SAME, err_msg=mode.label)


@pytest.mark.parametrize("name", ["delta", "planar_3rrr", "orthoglide", "agile_eye"])
def test_a_seed_does_not_open_the_motion_space(of_gallery, name: str) -> None:
    """A pose that the platform cannot have is refused, though the seed closes the loops at one beside it."""
    k, d = of_gallery[name].kinematics, of_gallery[name].dynamics
    scale = k.engine.spaces.rate_scale
    normal = np.linalg.svd((np.asarray(k.subspace(k.home)) * scale[:, None]).T)[2][-1] / scale
    outside = displace(k.home, 0.1 * k.characteristic_length * normal)
    for pose in (outside, np.tile(outside, (3, 1))):
        answers = k.inverse(pose, seed=k.home_joints), k.motion(pose, np.zeros(6), seed=k.home_joints)
        for answer in (*answers, d.inverse(d.kinematics.at(pose, seed=k.home_joints))):
            assert np.all(answer.status != Status.CONVERGED)
        assert np.all(answers[0].status == Status.INVALID_INPUT)
        assert np.isnan(answers[0].joints).all()
        assert np.isnan(k.at(pose, seed=k.home_joints).inverse_jacobian).all()


def test_many_poses_with_a_seed_each(of_gallery) -> None:
    k = of_gallery["tricept"].kinematics
    modes = k.forward_all(k.home_joints[k.engine.actuated_column])
    assert len(modes) == 8
    poses, joints = np.array([m.pose for m in modes]), np.array([m.joints for m in modes])
    solved = k.inverse(poses, seed=joints)
    assert solved.status.tolist() == [Status.CONVERGED] + 7 * [Status.JOINT_LIMIT]
    np.testing.assert_allclose(solved.joints, joints, atol=SAME)
    one_seed = k.inverse(poses, seed=joints[2])
    np.testing.assert_allclose(one_seed.joints[[0, 2]], joints[[0, 2]], atol=SAME)
    assert one_seed.status[1] == Status.UNREACHABLE  # a seed beside the configuration leads to the sides at home alone


def test_rates_go_with_the_joints_of_the_seed(of_gallery) -> None:
    """On sides that no closed form takes, rates are those of the joints returned: differences along the path agree."""
    k = of_gallery["tricept"].kinematics
    step = 1e-5
    q = k.home_joints[k.engine.actuated_column]
    before, at, after = (k.forward_all(q + d * np.array([1.0, -0.5, 0.3])) for d in (-step, 0.0, step))
    for label in [mode.label for mode in at]:
        first, middle, last = (next(m for m in modes if m.label == label) for modes in (before, at, after))
        velocity = (last.pose[:3] - first.pose[:3]) / (2.0 * step)
        a, b = first.pose[3:], last.pose[3:] * np.sign(first.pose[3:] @ last.pose[3:])
        spin = 2.0 * (a[3] * b[:3] - b[3] * a[:3] - np.cross(b[:3], a[:3])) / (2.0 * step)  # of b after a
        moved = k.motion(middle.pose, [*velocity, *spin], seed=middle.joints)
        rates = moved.velocities[k.engine.actuated_column]
        np.testing.assert_allclose(rates, [1.0, -0.5, 0.3], atol=1e-6, err_msg=label)


def test_where_a_limb_can_move_on_its_own_the_seed_stays_and_is_singular(of_gallery) -> None:
    k = of_gallery["agile_eye"].kinematics
    modes = k.forward_all(k.home_joints[k.engine.actuated_column])
    singular = [mode for mode in modes if mode.status == Status.SINGULAR]
    assert len(singular) == 4
    for mode in singular:
        for angle in (0.0, 0.7, -2.0):  # any angle of the motor will do, the middle joint following
            seed = mode.joints.copy()
            seed[k.joint_names.index("limb1_motor")] += angle
            solved = k.inverse(mode.pose, seed=seed)
            assert solved.status == Status.SINGULAR
            np.testing.assert_allclose(solved.joints, seed, atol=SAME)


def test_jacobians_and_dynamics_are_those_of_the_seed(of_gallery) -> None:
    """On sides that no closed form takes: power of the actuators is the power that the platform's motion takes."""
    k, d = of_gallery["tricept"].kinematics, of_gallery["tricept"].dynamics
    modes = k.forward_all(k.home_joints[k.engine.actuated_column] + np.array([0.02, -0.01, 0.03]))
    assert len(modes) == 8
    for mode in modes:
        S = k.subspace(mode.pose, seed=mode.joints)
        K = k.at(mode.pose, seed=mode.joints).inverse_jacobian
        twist = S @ np.array([0.3, -0.2, 0.5])
        moved = k.motion(mode.pose, twist, seed=mode.joints)
        np.testing.assert_allclose(moved.velocities[k.engine.actuated_column], K @ twist, atol=1e-9)
        push = np.array([10.0, -20.0, 30.0, 1.0, 2.0, -3.0])
        loaded = d.inverse(d.kinematics.at(mode.pose, seed=mode.joints), wrench=push)
        free = d.inverse(d.kinematics.at(mode.pose, seed=mode.joints))
        assert loaded.ok
        assert free.ok
        power = (loaded.effort - free.effort) @ (K @ twist)
        np.testing.assert_allclose(power, -push @ twist, atol=1e-9)
        back = d.direct(d.kinematics.at(mode.pose, seed=mode.joints), np.zeros(6), free.effort)
        np.testing.assert_allclose(back.acceleration, np.zeros(6), atol=1e-9)


def legs_turned_over(k: Kinematics) -> list[tuple[Array, Array]]:
    """Poses and joints of a robot with legs that may stand through their joints, at negative lengths."""
    if k.mechanism.name == "planar_mixed":
        return [(mode.pose, mode.joints) for mode in k.forward_all([0.27524, 3.16918, 2.88483])]
    turn, leg = (k.joint_names.index(f"limb1_{part}") for part in ("turn", "leg"))
    joints = k.home_joints.copy()
    joints[turn], joints[leg] = joints[turn] + np.pi, -joints[leg]
    return [(k.home, joints)]


@pytest.mark.parametrize("name", ["planar_mixed", "two_rpr"])
def test_legs_turned_over_are_followed_and_differentiated(of_gallery, name: str) -> None:
    k, d = of_gallery[name].kinematics, of_gallery[name].dynamics
    places = legs_turned_over(k)
    assert any(joints[k.joint_names.index(leg)] < 0.0 for _, joints in places for leg in k.joint_names if "leg" in leg)
    for pose, joints in places:
        q = joints[k.engine.actuated_column]
        rates = 0.1 + 0.1 * np.arange(len(q))
        there = k.forward(q, near=pose, seed=joints)
        np.testing.assert_allclose(there.pose, pose, atol=1e-9)
        np.testing.assert_allclose(there.joints, joints, atol=1e-9)
        ahead, behind = (k.forward(q + h * rates, near=pose, seed=joints) for h in (STEP, -STEP))
        turned = Rotation.from_quat(ahead.pose[3:]) * Rotation.from_quat(behind.pose[3:]).inv()
        twist = np.concatenate([ahead.pose[:3] - behind.pose[:3], turned.as_rotvec()]) / (2.0 * STEP)
        np.testing.assert_allclose(k.at(pose, seed=joints).forward_jacobian @ rates, twist, atol=1e-7)
        seen = Tracker(k, pose, joints).observe(q, rates)
        np.testing.assert_allclose(seen.twist, twist, atol=1e-7)
        np.testing.assert_allclose(seen.joints, joints, atol=1e-9)
        push = k.subspace(pose, seed=joints) @ np.ones(k.mobility)
        loaded, free = (d.inverse(d.kinematics.at(pose, seed=joints), wrench=wrench) for wrench in (push, np.zeros(6)))
        np.testing.assert_allclose((loaded.effort - free.effort) @ rates, -push @ twist, atol=1e-7)
        at_joints = d.reactions(d.kinematics.at(pose, seed=joints), wrench=push)
        np.testing.assert_allclose(at_joints.effort, loaded.effort, atol=1e-7)
