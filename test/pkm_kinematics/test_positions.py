# SPDX-License-Identifier: Apache-2.0
"""Inverse and forward kinematics of every robot: closure by Pinocchio's placements, round trips, modes, batches."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from bench.states import chain_pose
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.status import closes

CLOSED = 1e-12  # m, and 1 for directions
# Passive joints of a limb, when they are nearly stretched, have two working modes that the actuated ones hardly tell
# apart: where the path begins is then for the caller to say.
HIDDEN_MODES = {"five_dof_3rr_rrr", "navaro"}


def pose_error(found, expected):
    """Distance [m] plus angle [rad] between poses (..., 7)."""
    turn = np.abs(np.sum(found[..., 3:] * expected[..., 3:], axis=-1))
    across = (
        found[..., 3:] - np.sign(np.sum(found[..., 3:] * expected[..., 3:], axis=-1))[..., None] * expected[..., 3:]
    )
    return np.linalg.norm(found[..., :3] - expected[..., :3], axis=-1) + np.where(
        turn > 0.9, 2 * np.linalg.norm(across, axis=-1), 2 * np.arccos(np.clip(turn, 0, 1))
    )


def test_home_is_what_the_description_says(robot):
    kinematics = robot.kinematics
    at_home = kinematics.inverse(kinematics.home)
    assert at_home.status == Status.CONVERGED, at_home.reason()
    q = robot.q(at_home.joints)
    assert robot.judge.closure_gap(q) < CLOSED
    assert pose_error(pin.SE3ToXYZQUAT(robot.judge.platform_pose(q)), kinematics.home) < CLOSED


def test_every_loop_closes(robot):
    states = robot.states
    solved = robot.kinematics.inverse(states.pose)
    assert solved.ok.all()
    assert solved.residual.max() < CLOSED
    for joints, pose in zip(solved.joints, states.pose, strict=True):
        q = robot.q(joints)
        assert robot.judge.closure_gap(q) < CLOSED
        # where the platform has a branch of its own, its joints are the pose
        assert pose_error(pin.SE3ToXYZQUAT(robot.judge.platform_pose(q)), pose) < CLOSED


def test_joints_stay_within_limits(robot):
    """The platform's own branch apart: its ranges are a working box, for pictures and planners."""
    mechanism = robot.kinematics.mechanism
    for name, values in zip(robot.kinematics.joint_names, robot.states.joints.T, strict=True):
        if name in robot.kinematics.task.names:
            continue
        limits = mechanism.joint_named[name].limits
        assert values.min() >= limits.lower - 1e-8
        assert values.max() <= limits.upper + 1e-8


def test_actuated_joints_are_a_selection(robot):
    kinematics = robot.kinematics
    solved = kinematics.inverse(robot.states.pose[:50])
    columns = [kinematics.joint_names.index(name) for name in kinematics.actuated_names]
    assert (solved.actuated == solved.joints[:, columns]).all()
    assert kinematics.actuated_names == kinematics.mechanism.actuated_joints


@pytest.mark.not_for("turning space")  # the platform cannot be moved off in any direction
def test_round_trip_from_nearby(robot):
    """Forward kinematics from a pose a little off finds the pose that the joints came from."""
    kinematics, states = robot.kinematics, robot.states
    chain = [kinematics.joint_names.index(name) for name in kinematics.task.names]
    rng = np.random.default_rng(11)
    chosen = slice(0, 200)
    start = np.array([
        chain_pose(kinematics.mechanism, joints[chain] + 0.02 * states.size * rng.uniform(-1, 1, len(chain)))
        for joints in states.joints[chosen]
    ])  # fmt: skip
    goal = states.pose[chosen]
    reached = kinematics.inverse(start).ok  # to start from a pose beyond the limbs' reach is another matter
    start, goal = start[reached], goal[reached]
    assert len(goal) > 165
    seed = kinematics.inverse(start).joints if robot.name in HIDDEN_MODES else None
    found = kinematics.forward(kinematics.inverse(goal).actuated, near=start, seed=seed)
    assert found.ok.all()
    assert pose_error(found.pose, goal).max() < 1e-9
    assert found.residual.max() < 1e-9
    for joints in found.joints[:20]:
        assert robot.judge.closure_gap(robot.q(joints)) < CLOSED


def test_working_modes(robot):
    """Every working mode closes the loops, no two are the same, each is found again from its own joints."""
    kinematics, states = robot.kinematics, robot.states
    closed_form = (kinematics.tables.blocks["solver"] != NEWTON).all()
    labels = [kinematics.mode_label(mode) for mode in range(kinematics.n_modes)]
    for mode, label in enumerate(labels[:8]):  # as inverse_all and mode_label print it
        np.testing.assert_array_equal(
            kinematics.inverse(kinematics.home, mode=label).joints,
            kinematics.inverse(kinematics.home, mode=mode).joints,
        )
    assert len(set(labels)) == len(labels)
    for pose in states.pose[:3]:
        solutions = kinematics.inverse_all(pose)
        if closed_form:
            assert [s.label for s in solutions] == labels
        assert len({s.label for s in solutions}) == len(solutions)
        real = [s for s in solutions if s.status in (Status.CONVERGED, Status.JOINT_LIMIT)]
        assert real
        for s in real:
            q = robot.q(s.joints)
            assert robot.judge.closure_gap(q) < CLOSED
            assert pose_error(pin.SE3ToXYZQUAT(robot.judge.platform_pose(q)), pose) < CLOSED
            again = kinematics.inverse(pose, seed=s.joints)
            assert np.abs(again.joints - s.joints).max() < 1e-7
        joints = np.array([s.joints for s in real])
        gaps = np.abs(joints[:, None] - joints[None]).max(axis=-1) + 10.0 * np.eye(len(real))
        assert gaps.min() > 1e-6


# What the literature says of the number of working modes, where every limb has a closed form.
@pytest.mark.parametrize(
    ("name", "count"), [("delta", 8), ("five_bar", 4), ("planar_3rrr", 8), ("hexaglide", 64), ("gough_stewart", 1)]
)
def test_number_of_working_modes(name, count, of_gallery):
    assert of_gallery[name].kinematics.n_modes == count


def test_delta_modes_by_hand(delta):
    """The eight arm postures of a Delta: each elbow circle meets the sphere of its rod in two points."""
    base, platform, arm, rod = 0.330, 0.125, 0.420, 1.055
    pose = np.array([0.12, -0.2, -0.9, 0, 0, 0, 1.0])
    roots = []
    for angle in 2 * np.pi / 3 * np.arange(3):
        c, s = np.cos(angle), np.sin(angle)
        # target in the limb's plane frame, relative to the motor axis; the arm falls for positive angles
        x, y, z = c * pose[0] + s * pose[1] + platform - base, -s * pose[0] + c * pose[1], pose[2]
        # (x - arm cos q)^2 + y^2 + (z + arm sin q)^2 = rod^2
        d = (x * x + y * y + z * z + arm * arm - rod * rod) / (2 * arm)  # = x cos q - z sin q
        tip, half = np.arctan2(-z, x), np.arccos(d / np.hypot(x, z))
        roots.append([tip + half, tip - half])
    expected = {
        tuple(np.round(np.angle(np.exp(1j * np.array([roots[0][i], roots[1][j], roots[2][k]]))), 9) + 0.0)
        for i in (0, 1) for j in (0, 1) for k in (0, 1)
    }  # fmt: skip
    found = {tuple(np.round(np.angle(np.exp(1j * s.actuated)), 9) + 0.0) for s in delta.kinematics.inverse_all(pose)}
    assert found == expected
    assert len(found) == 8


def test_batch_is_single(robot):
    kinematics, states = robot.kinematics, robot.states
    batch = kinematics.inverse(states.pose[:12].reshape(3, 4, 7))
    assert batch.joints.shape == (3, 4, len(kinematics.joint_names))
    assert batch.status.shape == (3, 4)
    for k, pose in enumerate(states.pose[:12]):
        assert (kinematics.inverse(pose).joints == batch.joints.reshape(12, -1)[k]).all()
    near = kinematics.forward(batch.actuated, near=states.pose[:12].reshape(3, 4, 7))
    assert near.pose.shape == (3, 4, 7)


def test_large_batches_run_on_all_cores_with_the_same_answer(robot):
    kinematics, states = robot.kinematics, robot.states  # 1,000 poses are above the size at which threads start
    whole = kinematics.inverse(states.pose)
    parts = [kinematics.inverse(states.pose[k : k + 100]) for k in range(0, len(states.pose), 100)]
    assert (whole.joints == np.concatenate([p.joints for p in parts])).all()


def test_calls_from_many_threads(delta):
    kinematics, dynamics, states = delta.kinematics, delta.dynamics, delta.states
    expected = kinematics.inverse(states.pose[:200]).joints
    efforts = dynamics.inverse(states.pose[:200], states.twist[:200], states.acceleration[:200]).effort

    def call(k):
        return (
            kinematics.inverse(states.pose[k]).joints,
            dynamics.inverse(states.pose[k], states.twist[k], states.acceleration[k]).effort,
        )

    with ThreadPoolExecutor(8) as pool:
        for k, (joints, effort) in enumerate(pool.map(call, range(200))):
            assert (joints == expected[k]).all()
            # code that was made for many states, if another test had it made, rounds otherwise
            assert np.abs(effort - efforts[k]).max() <= 1e-12 * np.abs(efforts[k]).max()


def test_lean_calls_are_the_convenient_ones(robot):
    """By formula always; limbs solved by iteration follow from call to call, and from far away may not find the way."""
    kinematics, states = robot.kinematics, robot.states
    iterated = bool((kinematics.tables.blocks["solver"] == NEWTON).any())
    lean = kinematics.lean_inverse()
    q = np.empty(len(kinematics.actuated_names))
    expected = kinematics.inverse(states.pose[:50], mode=0)
    answered = 0
    for k in range(50):
        status = lean(states.pose[k], q)
        if status == Status.CONVERGED:
            answered += 1
            apart = q - expected.actuated[k]
            # a turning joint keeps its turns from call to call
            apart -= np.where(kinematics.engine.actuated_turning, 2.0 * np.pi * np.round(apart / (2.0 * np.pi)), 0.0)
            assert np.abs(apart).max() < (1e-8 if iterated else 1e-12)  # where Newton's method stops, and rounding
        else:
            assert expected.status[k] != Status.CONVERGED or (
                iterated and status in (Status.DIVERGED, Status.UNREACHABLE, Status.NOT_CONNECTED)
            )
    assert answered


def test_empty_request(robot):
    solved = robot.kinematics.inverse(np.empty((0, 7)))
    assert solved.joints.shape == (0, len(robot.kinematics.joint_names))
    found = robot.kinematics.forward(np.empty((0, len(robot.kinematics.actuated_names))))
    assert found.pose.shape == (0, 7)


@pytest.mark.parametrize("name", ["agile_eye", "five_bar", "planar_3rrr", "hexaglide", "planar_redundant", "tripteron"])
def test_what_continues_home_is_in_its_working_mode(name, of_gallery):
    k = of_gallery[name].kinematics
    chain = k.task.chain[1:]
    rng = np.random.default_rng(0)
    poses = rng.uniform(np.maximum(chain["lower"], -3.0), np.minimum(chain["upper"], 3.0), (200, len(chain)))
    default, home_mode = k.inverse(poses), k.inverse(poses, mode=0)
    known = closes(default.status) & closes(home_mode.status)
    assert known.sum() > 20
    apart = default.joints[known] - home_mode.joints[known]
    apart -= 2.0 * np.pi * np.round(apart / (2.0 * np.pi)) * k.engine.joint_turning
    assert np.abs(apart).max() < 1e-9


def test_beyond_the_end_of_the_path_from_home_nothing_is_home_s(of_gallery):
    """A limb solved by iteration that ends on the way: what Newton's method finds behind is of another mode."""
    k = of_gallery["wrist_3ruu"].kinematics
    turns = np.linspace(0.0, 1.6, 161)
    axis = np.array([0.336, 0.5907, 0.7336])
    poses = np.tile(k.home, (len(turns), 1))
    poses[:, 3:] = (Rotation.from_rotvec(turns[:, None] * axis) * Rotation.from_quat(k.home[3:])).as_quat()
    for answer in (k.inverse(poses), k.motion(poses, np.zeros(6))):
        known = closes(answer.status)
        assert known[0]
        first = int(np.argmin(known)) if not known.all() else len(turns)
        assert not known[first:].any()
        assert np.abs(np.diff(answer.joints[:first], axis=0)).max() < 0.5
    default, asked = k.inverse(poses), k.inverse(poses, mode=0)
    np.testing.assert_array_equal(default.status, asked.status)
    gravity = of_gallery["wrist_3ruu"].dynamics.gravity(poses)
    assert not (gravity.ok & ~closes(default.status)).any()


@pytest.mark.parametrize("name", ["agile_eye", "eclipse2"])
def test_platforms_are_read_with_the_pitch_in_its_range(name, of_gallery):
    """By SciPy's angles: yaw and roll are any where the pitch is less than a right angle, which is its range."""
    kinematics, rng = of_gallery[name].kinematics, np.random.default_rng(5)
    wanted = rng.uniform(-1.0, 1.0, (200, 3)) * [3.1, 1.5, 3.1]
    wanted[:50, 1:] *= 0.1
    turns = Rotation.from_quat(kinematics.home[3:]) * Rotation.from_euler("ZYX", wanted)
    found = kinematics.inverse(np.hstack([np.tile(kinematics.home[:3], (200, 1)), turns.as_quat()]))
    solved = closes(found.status)
    assert solved[:50].mean() > 0.5
    columns = [kinematics.joint_names.index(f"platform_{angle}") for angle in ("yaw", "pitch", "roll")]
    np.testing.assert_allclose(found.joints[solved][:, columns], wanted[solved], atol=1e-9)


def test_platforms_are_read_with_all_angles_in_their_ranges():
    """A pitch of any size, and a roll of less than a right angle, which therefore chooses."""
    text = load_mechanism("agile_eye").urdf
    for angle, end in (("pitch", 3.1), ("roll", 0.5)):
        branch = rf'(<joint name="platform_{angle}".*?)lower="[^"]*" upper="[^"]*"'
        text, changed = re.subn(branch, rf'\g<1>lower="-{end}" upper="{end}"', text, count=1, flags=re.DOTALL)
        assert changed
    kinematics, rng = Kinematics(load_mechanism(text)), np.random.default_rng(5)
    wanted = rng.uniform(-1.0, 1.0, (200, 3)) * [3.1, 0.2, 0.45]
    turns = Rotation.from_quat(kinematics.home[3:]) * Rotation.from_euler("ZYX", wanted)
    found = kinematics.inverse(np.hstack([np.tile(kinematics.home[:3], (200, 1)), turns.as_quat()]))
    solved = closes(found.status)
    assert solved.mean() > 0.5
    columns = [kinematics.joint_names.index(f"platform_{angle}") for angle in ("yaw", "pitch", "roll")]
    np.testing.assert_allclose(found.joints[solved][:, columns], wanted[solved], atol=1e-9)
