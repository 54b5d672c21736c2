# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics stays in the assembly mode of the pose it starts from, or says that nothing continues it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.round_trips import pose_error
from bench.strange_robots import SOLVED
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.status import closes


@pytest.mark.parametrize("name", ["delta", "five_bar", "planar_3rrr", "gough_stewart", "agile_eye", "tripod_3prs"])
def test_far_targets_are_where_small_steps_lead(name, of_gallery):
    """Whatever the length of the way, the answer is the end of the path that hundreds of small steps follow."""
    k = of_gallery[name].kinematics
    rng = np.random.default_rng(5)
    home = k.home_joints[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.characteristic_length)
    arrived = 0
    for _ in range(15):
        span = unit * rng.uniform(-1.2, 1.2, len(home))
        found = k.forward(home + span)
        pose, joints, status = k.home, k.home_joints, Status.CONVERGED
        for fraction in np.linspace(0.0, 1.0, 301)[1:]:
            step = k.forward(home + fraction * span, near=pose, seed=joints)
            status = step.status
            if not closes(status):
                break
            # no jump: a regular path moves a little at a time
            assert np.linalg.norm(step.pose[:3] - pose[:3]) < 0.2 * k.characteristic_length
            pose, joints = step.pose, step.joints
        assert closes(found.status) == closes(status)
        if closes(found.status):
            arrived += 1
            assert pose_error(found.pose[None], pose[None])[0] < 1e-8
    assert arrived > 0


def test_a_symmetric_path_does_not_pass_a_singularity_unseen(of_gallery):
    """All arms of the 3-URU moved alike: a singularity lies across the path, and Newton's corrections never see it."""
    k = of_gallery["dymo_3uru"].kinematics
    q = k.home_joints[k.engine.actuated_column]
    assert closes(k.forward(q + 0.5).status)
    for far in (0.7, 1.0, 1.5):
        found = k.forward(q + far)
        assert found.status == Status.SINGULAR
        assert np.isnan(found.pose).all()
        assert 0.0 < found.residual < far
        assert "type 2" in found.reason()


def test_starts_out_of_reach_give_no_other_mode(of_gallery):
    """A Delta's assembly modes lie on the two sides of the plane of its elbows: no answer crosses it from its start."""
    k = of_gallery["delta"].kinematics
    rng = np.random.default_rng(1)
    tried = 0
    for _ in range(100):
        goal = k.inverse([*rng.uniform(-0.3, 0.3, 2), rng.uniform(-1.1, -0.8), 0, 0, 0, 1.0])
        assert goal.ok
        start = np.array([*rng.uniform(-0.2, 0.2, 2), rng.choice([-1, 1]) * rng.uniform(1.4, 1.48), 0, 0, 0, 1.0])
        if k.inverse(start).status != Status.UNREACHABLE:
            continue
        tried += 1
        found = k.forward(goal.actuated, near=start)
        if not closes(found.status):
            assert found.status in (Status.SINGULAR, Status.UNREACHABLE)
            assert np.isnan(found.pose).all()
            continue
        angles = 2 * np.pi / 3 * np.arange(3)
        arms = 0.330 - 0.125 + 0.420 * np.cos(goal.actuated)  # elbows as the platform's origin sees them
        elbows = np.column_stack([arms * np.cos(angles), arms * np.sin(angles), -0.420 * np.sin(goal.actuated)])
        normal = np.cross(elbows[1] - elbows[0], elbows[2] - elbows[0])
        assert normal @ (start[:3] - elbows[0]) * (normal @ (found.pose[:3] - elbows[0])) > 0.0
    assert tried > 20


def test_a_singular_start_has_no_continuation(of_gallery):
    """With its actuators locked a Griffis-Duffy platform moves: no pose is the one that continues another."""
    k = of_gallery["griffis_duffy"].kinematics
    q = k.home_joints[k.engine.actuated_column]
    assert k.forward(q).status == Status.SINGULAR
    modes = k.forward_all(q)
    assert not modes.certified
    assert "self-motion" in modes.caution
    assert any(mode.status == Status.SINGULAR for mode in modes)


def test_lists_of_assembly_modes_say_what_they_are_worth(of_gallery):
    k = of_gallery["gough_stewart"].kinematics
    modes = k.forward_all(k.home_joints[k.engine.actuated_column])
    assert modes.certified
    assert modes.caution == ""
    assert modes.method == "distances"
    k = of_gallery["reactionless_four_bar"].kinematics
    modes = k.forward_all(k.home_joints[k.engine.actuated_column])
    assert not modes.certified
    assert "search" in modes.caution


@pytest.mark.parametrize("name", ["h4", "quattro"])
def test_plates_have_all_working_modes(name, of_gallery):
    """Two postures of each of four arms, 16 in all: the arms of a Par4 or H4 are those of a Delta."""
    k = of_gallery[name].kinematics
    assert k.n_modes == 16
    solutions = [s for s in k.inverse_all(k.home) if np.isfinite(s.joints).all()]
    postures = {tuple(np.round(np.angle(np.exp(1j * s.actuated)), 6)) for s in solutions}
    values = [sorted({p[a] for p in postures}) for a in range(4)]
    assert [len(v) for v in values] == [2, 2, 2, 2]
    assert len(postures) == 16


def test_a_rod_pair_that_hangs_straight_down_does_not_fold_over(of_gallery):
    """There the pair does not hold its plate, and could turn into a bow tie; the plate's other pair forbids it.

    Newton's method on the pair alone takes the one for the other at about half of these poses.
    """
    k = of_gallery["h4"].kinematics
    yaw = 0.75206503
    centre = np.array([-0.35050602, -0.33850668, -0.65349492, 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)])
    poses = np.repeat(centre[None], 40, axis=0)
    poses[:, :3] += 1e-4 * np.random.default_rng(7).uniform(-1.0, 1.0, (40, 3))
    for mode in (0, 5):
        found = k.inverse(poses, mode=mode)
        assert np.isfinite(found.joints).all(), found.reason()
        assert found.residual.max() < 1e-11
        hinges = found.joints[:, [k.joint_names.index(name) for name in ("plate1_hinge", "plate2_hinge")]]
        assert np.abs(hinges + yaw).max() < 1e-7  # both half plates keep their orientation


# -- the nearest configuration ---------------------------------------------------------------------------------------


@pytest.mark.by_day("delta", "gough_stewart", "quattro", "tripod_3prs")
def test_reachable_poses_are_their_own_nearest(robot):
    k = robot.kinematics
    for pose in robot.states.pose[:5]:
        found = k.nearest(pose, seed=k.inverse(pose).joints)
        assert closes(found.status)
        assert pose_error(found.pose[None], pose[None])[0] < 1e-8


@pytest.mark.parametrize("name", ["tripod_3prs", "platform hangs on a limb", "plain"])
def test_no_configuration_beside_the_nearest_is_nearer(name, of_gallery):
    """Poses up to 5 cm off what exists; distances as the solver measures them, with the platform on any branch."""
    k = of_gallery[name].kinematics if name in of_gallery else Kinematics(load_mechanism(SOLVED[name]))
    length = k.characteristic_length
    rng = np.random.default_rng(2)
    for off in (0.005, 0.01, 0.02, 0.05):
        wanted = k.home.copy()
        wanted[:3] += off * rng.uniform(-1.0, 1.0, 3)
        found = k.nearest(wanted)
        assert closes(found.status), found.reason()
        assert k.inverse(found.pose, seed=found.joints).residual < 1e-11

        def distance(pose, wanted=wanted):
            turn = (Rotation.from_quat(pose[3:]) * Rotation.from_quat(wanted[3:]).inv()).magnitude()
            return np.hypot(np.linalg.norm(pose[:3] - wanted[:3]), length * turn)

        q = found.joints[k.engine.actuated_column]
        assert distance(found.pose) < distance(k.home)
        for step in np.vstack([np.eye(len(q)), -np.eye(len(q))]):
            beside = k.forward(q + 1e-3 * step, near=found.pose, seed=found.joints)
            assert beside.ok
            # angles are measured by the coordinates of the platform's branch, which differ in the third order
            assert distance(beside.pose) > distance(found.pose) - 1e-4 * off


def test_drives_are_where_they_are_asked_for_beside_a_singularity_of_a_block(of_gallery) -> None:
    """Rods of an H4 nearly in a plane: their equations tell joints to 1e-12 only, and a drive is off by 5e-12."""
    robot = of_gallery["h4"].kinematics
    pose = np.array([0.06854165626641376, 0.03242568994430538, -0.5276746257595996, 0.0, 0.0, 0.2444310491628387, 0.0])
    pose[6] = np.sqrt(1.0 - pose[5] ** 2)
    there, random = robot.inverse(pose, mode=13), np.random.default_rng(0)
    starts = np.tile(pose, (200, 1))
    starts[:, :3] += random.uniform(-2e-5, 2e-5, (200, 3))
    back = robot.forward(np.tile(there.actuated, (200, 1)), near=starts, seed=there.joints)
    assert np.isin(back.status, (Status.CONVERGED, Status.JOINT_LIMIT)).all()
    assert np.abs(back.pose - pose).max() < 2e-10
    assert np.abs(robot.inverse(back.pose, seed=there.joints).actuated - there.actuated).max() < 3e-13
