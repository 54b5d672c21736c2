# SPDX-License-Identifier: Apache-2.0
"""What is refused, and how: a status and a reason per pose, an exception only for arrays of the wrong shape."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics, ShapeError, Status
from pkm_kinematics.forward.tracker import Tracker
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.solve.working_modes import ModeError
from pkm_runtime.errors import PkmError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("at", range(7))
def test_poses_that_are_not_finite(value, at, delta):
    pose = delta.kinematics.home.copy()
    pose[at] = value
    solved = delta.kinematics.inverse(pose)
    assert solved.status == Status.INVALID_INPUT
    assert np.isnan(solved.joints).all()
    assert np.isnan(solved.residual)
    assert "finite" in solved.reason()
    assert all(s.status == Status.INVALID_INPUT for s in delta.kinematics.inverse_all(pose))
    assert delta.dynamics.inverse(pose).status == Status.INVALID_INPUT
    assert delta.kinematics.forward(np.zeros(3), near=pose).status == Status.INVALID_INPUT
    assert np.isnan(delta.kinematics.at(pose).inverse_jacobian).all()


@pytest.mark.parametrize("length", [0.0, 0.99, 1.01, 2.0])
def test_quaternions_that_are_not_of_unit_length(length, robot):
    pose = robot.kinematics.home.copy()
    pose[3:] *= length
    solved = robot.kinematics.inverse(pose)
    assert solved.status == Status.INVALID_INPUT
    assert "unit" in solved.reason()
    assert robot.dynamics.inverse(pose).status == Status.INVALID_INPUT


def test_rounded_quaternions_are_mended(robot):
    """Single precision leaves a quaternion 1e-7 from unit length: that is rounding, not a mistake."""
    kinematics = robot.kinematics
    pose = kinematics.home.copy()
    pose[3:] *= 1.0 + 1e-7
    solved = kinematics.inverse(pose)
    assert solved.status == Status.CONVERGED
    assert np.abs(solved.joints - kinematics.inverse(kinematics.home).joints).max() < 1e-6


def test_poses_in_single_precision_are_rounded_into_the_motion_space(robot):
    """They are off by 6e-8 of themselves, which limbs that hold the platform notice where the motion space turns."""
    k, d = robot.kinematics, robot.dynamics
    pose = robot.states.pose[::50]
    given = pose.astype(np.float32)
    exact, taken = k.inverse(pose), k.inverse(given)
    assert taken.status.tolist() == exact.status.tolist()
    regular = k.motion(pose, np.zeros(6)).limb_regularity > 1e-2
    assert np.abs(taken.joints - exact.joints)[regular].max() < 1e-4
    assert np.isfinite(k.at(given).inverse_jacobian).all()
    assert np.isfinite(k.subspace(given)).all()
    assert d.gravity(given).status.tolist() == d.gravity(pose).status.tolist()
    if not k.constant_space:
        S = np.asarray(k.subspace(pose[0]))
        scale = k.engine.spaces.rate_scale
        normal = np.linalg.svd((S * scale[:, None]).T)[2][-1] / scale  # square to the space
        apart = displace(pose[0], 1e-4 * k.engine.size * normal)
        assert k.inverse(apart).status in (Status.UNREACHABLE, Status.NOT_CONNECTED, Status.DIVERGED)


def test_quaternions_written_with_four_figures_are_taken(robot):
    """0.7071 twice is 1e-5 from unit length: meant to be a quarter turn, and solved as one, whoever is asked."""
    kinematics, dynamics = robot.kinematics, robot.dynamics
    for pose in (kinematics.home, robot.states.pose[3]):
        shortened = np.array(pose)
        shortened[3:] *= 0.99999
        both = np.array([shortened, pose])
        for given in (shortened, both):
            exact, taken = kinematics.inverse(np.broadcast_to(pose, given.shape)), kinematics.inverse(given)
            assert taken.status.tolist() == exact.status.tolist()
            np.testing.assert_allclose(taken.joints, exact.joints, atol=1e-9)
            efforts = dynamics.inverse(np.broadcast_to(pose, given.shape)).effort
            np.testing.assert_allclose(dynamics.inverse(given).effort, efforts, rtol=1e-6, atol=1e-6)
    assert np.array_equal(both[0], shortened)  # what a caller gave stays as it is


def test_either_sign_of_a_quaternion_is_the_same_pose(robot):
    pose = robot.states.pose[3].copy()
    other = pose.copy()
    other[3:] *= -1.0
    assert np.abs(robot.kinematics.inverse(pose).actuated - robot.kinematics.inverse(other).actuated).max() < 1e-9


def test_a_turned_pose_is_not_the_deltas(delta):
    pose = delta.kinematics.home.copy()
    pose[3:] = [np.sin(0.05), 0, 0, np.cos(0.05)]
    solved = delta.kinematics.inverse(pose)
    assert solved.status == Status.INVALID_INPUT
    assert "motion space" in solved.reason()
    assert solved.residual == pytest.approx(0.1, rel=1e-3)  # it says by how much: 0.1 rad


def test_a_pose_off_the_plane_is_not_a_planar_robots(of_gallery):
    kinematics = of_gallery["planar_3rrr"].kinematics
    pose = kinematics.home.copy()
    pose[2] += 0.01
    assert kinematics.inverse(pose).status == Status.INVALID_INPUT


@pytest.mark.not_for("turning space", "fixed centre")  # whose far poses are outside the motion space
def test_unreachable_poses(robot):
    """A kilometre away no limb reaches, whatever the robot."""
    kinematics = robot.kinematics
    S = kinematics.subspace(kinematics.home)
    slides = np.flatnonzero(np.abs(S[:3]).max(axis=0) > 0.5)
    assert len(slides) > 0
    for column in slides:
        pose = kinematics.home.copy()
        pose[:3] += 1000.0 * S[:3, column]
        solved = kinematics.inverse(pose)
        assert solved.status in (Status.UNREACHABLE, Status.NOT_CONNECTED, Status.JOINT_LIMIT, Status.DIVERGED)
        if solved.status != Status.JOINT_LIMIT:  # a rail may be long, but then its range says no
            assert np.isnan(solved.joints).all()
        assert solved.reason()


def test_delta_beyond_its_reach(delta):
    kinematics = delta.kinematics
    pose = kinematics.home.copy()
    pose[2] = -1.47  # arm and rod, stretched from a joint at 0.330 to one at 0.125, reach 1.461
    solved = kinematics.inverse(pose)
    assert solved.status == Status.UNREACHABLE
    assert "m)" in solved.reason()
    assert all(np.isnan(s.joints).all() for s in kinematics.inverse_all(pose))
    assert delta.dynamics.inverse(pose).status == Status.UNREACHABLE
    assert np.isnan(delta.dynamics.inverse(pose).effort).all()


def test_delta_beyond_a_joint_limit(delta):
    """The configuration exists and is given, with the joint that is out of range and its value."""
    kinematics = delta.kinematics
    lower = kinematics.mechanism.joint_named["limb1_arm"].limits.lower
    pose = kinematics.home.copy()
    for height in np.arange(-0.85, -0.4, 0.01):
        pose[2] = height
        solved = kinematics.inverse(pose)
        if solved.status != Status.CONVERGED:
            break
    assert solved.status == Status.JOINT_LIMIT
    assert solved.actuated.min() < lower
    assert "limb1_arm" in solved.reason()
    assert f"{lower:.4g}" in solved.reason()


def test_one_bad_pose_does_not_spoil_a_batch(robot):
    whole = np.tile(robot.states.pose[:200], (3, 1))  # above the size at which threads start
    poses = whole.copy()
    poses[7, 0] = NAN
    poses[300, 3:] = 0.0
    solved = robot.kinematics.inverse(poses)
    expected = robot.kinematics.inverse(whole)
    bad = np.zeros(600, dtype=bool)
    bad[[7, 300]] = True
    assert (solved.status[bad] == Status.INVALID_INPUT).all()
    assert (solved.status[~bad] == Status.CONVERGED).all()
    assert (solved.joints[~bad] == expected.joints[~bad]).all()


@pytest.mark.parametrize("shape", [(), (6,), (8,), (2, 6), (7, 1), (0,)])
def test_poses_of_the_wrong_shape(shape, delta):
    for call in (delta.kinematics.inverse, delta.kinematics.singularity, delta.dynamics.inverse):
        with pytest.raises(ShapeError, match="pose"):
            call(np.zeros(shape))


def test_arrays_that_do_not_fit_together(delta):
    kinematics, dynamics, home = delta.kinematics, delta.dynamics, delta.kinematics.home
    with pytest.raises(ShapeError, match="q: expected"):
        kinematics.forward(np.zeros(4))
    for rows in (0, 2):  # a list of modes belongs to one set of joint positions
        with pytest.raises(ShapeError, match="q: expected a single set"):
            kinematics.forward_all(np.zeros((rows, 3)))
    with pytest.raises(ShapeError, match="twist"):
        kinematics.motion(home, np.zeros(3))
    with pytest.raises(ShapeError, match="seed"):
        kinematics.inverse(home, seed=np.zeros(5))
    with pytest.raises(ShapeError):
        kinematics.motion(np.tile(home, (4, 1)), np.zeros((3, 6)))
    with pytest.raises(PkmError):
        dynamics.inverse(np.tile(home, (4, 1)), np.zeros((3, 6)))
    with pytest.raises(PkmError):
        dynamics.direct(home, np.zeros(6), np.zeros(2))
    with pytest.raises(ShapeError, match="could not convert"):
        kinematics.inverse(["a"] * 7)


def test_twists_the_platform_cannot_have(delta):
    twist = np.array([0.1, 0, 0, 0, 0.2, 0])
    motion = delta.kinematics.motion(delta.kinematics.home, twist)
    assert motion.status == Status.INVALID_INPUT
    assert np.isnan(motion.velocities).all()
    assert delta.dynamics.inverse(delta.kinematics.home, twist).status == Status.INVALID_INPUT


@pytest.mark.parametrize("value", [NAN, INF])
def test_rates_efforts_and_joints_that_are_not_finite(value, robot):
    kinematics, dynamics, home = robot.kinematics, robot.dynamics, robot.kinematics.home
    bad = np.zeros(6)
    bad[0] = value
    effort = np.zeros(len(kinematics.actuated_names))
    assert kinematics.motion(home, bad).status == Status.INVALID_INPUT
    assert kinematics.motion(home, np.zeros(6), bad).status == Status.INVALID_INPUT
    assert dynamics.inverse(home, bad).status == Status.INVALID_INPUT
    assert dynamics.inverse(home, np.zeros(6), np.zeros(6), wrench=bad).status == Status.INVALID_INPUT
    assert dynamics.direct(home, bad, effort).status == Status.INVALID_INPUT
    effort[0] = value
    assert dynamics.direct(home, np.zeros(6), effort).status == Status.INVALID_INPUT
    found = kinematics.forward(effort)
    assert found.status == Status.INVALID_INPUT
    assert np.isnan(found.pose).all()
    assert np.isnan(found.residual)
    assert kinematics.forward_all(effort) == []


def test_joints_that_no_pose_fits(delta):
    """Arms turned so far apart that the rods cannot meet in the platform."""
    apart = np.array([3.1, 0.0, 0.0])
    assert delta.kinematics.forward_all(apart) == []
    found = delta.kinematics.forward(apart)
    assert found.status == Status.SINGULAR  # where the way of the arms ends, the platform is lost
    assert np.isnan(found.pose).all()
    assert "type 2" in found.reason()


def test_inputs_are_left_alone(delta):
    states = delta.states
    pose, twist, acceleration = states.pose[:5].copy(), states.twist[:5].copy(), states.acceleration[:5].copy()
    for array in (pose, twist, acceleration):
        array.setflags(write=False)
    delta.kinematics.motion(pose, twist, acceleration)
    effort = delta.dynamics.inverse(pose, twist, acceleration).effort
    effort.setflags(write=False)
    delta.dynamics.direct(pose, twist, effort)
    assert (pose == states.pose[:5]).all()


def test_calls_for_a_single_pose_refuse_several(delta):
    k, d = delta.kinematics, delta.dynamics
    poses, twists = np.tile(k.home, (2, 1)), np.zeros((2, 6))
    calls = (
        lambda: k.nearest(poses),
        lambda: k.inverse_all(poses),
        lambda: d.coriolis(poses, twists),
        lambda: d.coriolis(poses, twists[0]),
    )
    for call in calls:
        with pytest.raises(ShapeError, match="pose: expected a single pose, got 2"):
            call()
    with pytest.raises(ShapeError, match="twist"):
        d.coriolis(k.home, twists)
    assert np.array_equal(d.coriolis(k.home[None], twists[0]), d.coriolis(k.home, twists[0]))


def test_rates_and_joints_of_the_wrong_shape(delta):
    k = delta.kinematics
    n = len(k.actuated_names)
    for rates in (np.ones(n + 1), 1.0, "fast"):
        with pytest.raises(ShapeError, match=rf"rates: expected an array of shape \(\.\.\., {n}\)"):
            k.at(k.home).platform_twist(rates)
    with pytest.raises(ShapeError, match=r"rates: leading axes \(3,\) do not go with those of the poses, \(2,\)"):
        k.at(np.tile(k.home, (2, 1))).platform_twist(np.ones((3, n)))
    joints = k.inverse(k.home).joints
    with pytest.raises(ShapeError, match="joints: expected an array"):
        k.limit_violations(joints[:n])
    with pytest.raises(ShapeError, match="joints: expected a single set of joint positions, got 2"):
        k.limit_violations(np.tile(joints, (2, 1)))
    assert k.limit_violations(np.full_like(joints, NAN)) == []  # nowhere, and so outside nothing


@pytest.mark.parametrize("mode", [-1, 8, 100_000, True, 0.5])
def test_working_modes_that_are_none(mode, delta):
    k = delta.kinematics
    assert k.n_modes == 8
    for call in (k.mode_label, lambda mode: k.inverse(k.home, mode=mode), k.lean_inverse):
        with pytest.raises(ModeError, match=f"no working mode {mode!r}: the robot has 8"):
            call(mode)


@pytest.mark.parametrize("value", [NAN, 1e12])
def test_reasons_name_the_seed_where_there_is_one(value, delta):
    k = delta.kinematics
    seed = np.full(len(k.joint_names), value)
    for answer in (k.inverse(k.home, seed=seed), k.motion(k.home, np.zeros(6), seed=seed)):
        assert answer.status == Status.INVALID_INPUT
        assert "the seed is not finite or too large" in answer.reason()
    for answer in (k.inverse(k.home * NAN), k.motion(k.home * NAN, np.zeros(6))):
        assert "seed" not in answer.reason()


@pytest.mark.parametrize("value", [NAN, INF, 1e12])
@pytest.mark.parametrize("name", ["delta", "gough_stewart", "tricept"])
def test_seeds_of_forward_kinematics_that_are_not_usable(name, value):
    k = Kinematics(load_mechanism(name))
    q = k.home_joints[k.engine.actuated_column]
    seed = np.array(k.home_joints)
    seed[-1] = value
    alone = k.forward(q, seed=seed)
    assert alone.status == Status.INVALID_INPUT
    assert np.isnan(alone.pose).all()
    assert "seed" in alone.reason()
    both = k.forward(np.array([q, q]), seed=np.array([seed, k.home_joints]))
    assert both.status.tolist() == [Status.INVALID_INPUT, Status.CONVERGED]


@pytest.mark.parametrize("name", ["delta", "delta_rr", "gough_stewart", "orthoglide", "quattro", "tricept"])
@pytest.mark.parametrize("value", [NAN, INF, 1e6, 1e17])
def test_readings_that_are_no_joint_positions(name, value):
    """Trackers refuse what `forward` refuses, keep the pose that they had, and take the next reading."""
    k = Kinematics(load_mechanism(name))
    q = np.array(k.home_joints[k.engine.actuated_column])
    absurd = q.copy()
    absurd[-1] += value * k.engine.size
    assert k.forward(absurd).status == Status.INVALID_INPUT
    tracker = Tracker(k)
    assert tracker.observe(q, np.zeros(len(q))).status == Status.CONVERGED
    refused = tracker.observe(absurd, np.zeros(len(q)))
    assert refused.status == Status.INVALID_INPUT
    np.testing.assert_allclose(refused.pose, k.home, atol=1e-9)
    assert tracker.observe(q, np.zeros(len(q))).status == Status.CONVERGED
    if k.constant_space:
        call, pose = k.lean_track(), k.home.copy()
        assert call(absurd, pose)[0] == Status.INVALID_INPUT
        np.testing.assert_array_equal(pose, k.home)
        assert call(q, pose)[0] == Status.CONVERGED


@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "agile_eye", "wrist_3ups_s"])
def test_reasons_of_what_is_too_large(name):
    k = Kinematics(load_mechanism(name))
    assert "too large" in k.forward(np.full(len(k.actuated_names), 1e9)).reason()
    for far in (1e160, 1e300):
        pose = k.home.copy()
        pose[0] += far
        reason = k.inverse(pose).reason()
        assert "nan" not in reason
        assert "inf" not in reason


@pytest.mark.parametrize("value", [1e308, -1e308])
@pytest.mark.parametrize("name", ["hexaglide", "delta", "planar_3rrr"])
def test_a_tracker_never_answers_without_numbers(of_gallery, name, value):
    k = of_gallery[name].kinematics
    q, qd = k.inverse(k.home).actuated, np.zeros(len(k.actuated_names))
    qd[1] = value
    tracker = Tracker(k)
    moving = tracker.observe(q, qd)
    assert np.isfinite(moving.twist).all()
    assert np.isfinite(moving.velocities).all()
    assert tracker.observe(q, 0.0 * qd).status == Status.CONVERGED


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", [0.0, 0.5, 0.99, 1.01, 2.0, 1e100, 1e154, 1e308, INF, NAN])
@pytest.mark.parametrize("name", ["planar_3rrr", "tricept", "delta", "gough_stewart"])
def test_nearest_takes_the_poses_that_inverse_takes(of_gallery, name, length):
    k = of_gallery[name].kinematics
    pose = k.home.copy()
    pose[3:] = [0.0, 0.0, 0.0, length]
    found = k.nearest(pose)
    assert found.status == k.inverse(pose).status == Status.INVALID_INPUT
    assert np.isnan(found.pose).all()
    assert "unit length" in found.reason()
    nearly = k.home.copy()
    nearly[3:] *= 1.0009
    assert k.nearest(nearly).status == Status.CONVERGED


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [NAN, INF, 1e200])
@pytest.mark.parametrize("name", ["tricept", "delta"])
def test_nearest_says_that_a_seed_or_a_position_is_not_usable(of_gallery, name, value):
    k = of_gallery[name].kinematics
    seed, pose = k.home_joints.copy(), k.home.copy()
    seed[-1] = pose[0] = value
    found = k.nearest(k.home, seed)
    assert found.status == Status.INVALID_INPUT
    assert "seed" in found.reason()
    assert not k.nearest(pose).ok


@pytest.mark.parametrize("mode", ["0", None, 1.0, True, -1, 2**70, [0], np.array([0])])
@pytest.mark.parametrize("name", ["delta", "orthoglide"])
def test_lean_calls_are_refused_for_what_is_no_number_of_a_mode(of_gallery, name, mode):
    k, d = of_gallery[name].kinematics, of_gallery[name].dynamics
    lean = (k.lean_inverse, k.lean_track, d.lean_inverse, d.lean_direct, lambda mode: d.lean_step(1e-3, mode))
    for call in (k.mode_label, *lean):
        with pytest.raises(ModeError, match="no working mode"):
            call(mode)
    if mode is None:
        return
    for call in (k.inverse, k.singularity, k.at):
        with pytest.raises(ModeError, match="no working mode"):
            call(k.home, mode=mode)


def test_complex_numbers_are_refused(delta):
    k, d = delta.kinematics, delta.dynamics
    pose, q = k.home + 1j, k.inverse(k.home).actuated + 0j
    for values in (pose, list(pose), [pose, pose], pose.astype(np.complex64)):
        for call in (k.inverse, k.singularity, d.inverse, d.mass_matrix):
            with pytest.raises(ShapeError, match="complex"):
                call(values)
        with pytest.raises(ShapeError, match="complex"):
            k.forward(k.home_joints[k.engine.actuated_column], near=values)
    for call in (k.forward, k.forward_all, lambda twist: k.motion(k.home, twist)):
        with pytest.raises(ShapeError, match="complex"):
            call(q)
