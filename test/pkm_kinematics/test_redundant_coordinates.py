# SPDX-License-Identifier: Apache-2.0
"""Kinematics of robots with redundant joints: held, given, moved; Pinocchio has frames and constraints of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bench.engines.pinocchio_model import PinocchioRobot
from pkm_description import DescriptionError, load_mechanism
from pkm_kinematics import Kinematics, ShapeError, Status
from pkm_kinematics.forward.tracker import AssemblyModeTracker, Tracker
from pkm_runtime.errors import PkmError
from test.oracles.redundant_robots import CASES, REDUNDANT, on_a_rail, planar_3prrr, planar_on_a_rail

STATES = 12


@dataclass(frozen=True, eq=False)
class Moved:
    """A robot at random poses and positions of its redundant joints, moved at random; and its judge."""

    kinematics: Kinematics
    judge: PinocchioRobot
    poses: np.ndarray  # (n, 7 + r)
    rates: np.ndarray  # (n, 6 + r)
    accelerations: np.ndarray


@pytest.fixture(scope="module", params=CASES)
def moved(request) -> Moved:
    mechanism = load_mechanism(REDUNDANT[request.param][0]())
    k = Kinematics(mechanism)
    rng, r, S = np.random.default_rng(1), len(k.redundant_names), k.task.subspace
    poses = np.tile(k.home, (STATES, 1))
    poses[:, :3] += 0.04 * rng.uniform(-1.0, 1.0, (STATES, S.shape[1])) @ S[:3].T
    redundant = k.home_joints[k.engine.redundant_column] + 0.08 * rng.uniform(-1.0, 1.0, (STATES, r))

    def some() -> np.ndarray:
        return np.hstack([rng.uniform(-1, 1, (STATES, S.shape[1])) @ S.T, rng.uniform(-1, 1, (STATES, r))])

    return Moved(k, PinocchioRobot(mechanism), np.hstack([poses, redundant]), some(), some())


def test_the_loops_close_where_redundant_joints_are_given(moved: Moved) -> None:
    at = moved.kinematics.inverse(moved.poses)
    assert (at.status == Status.CONVERGED).all()
    assert np.array_equal(at.redundant, moved.poses[:, 7:])
    for joints in at.joints:
        assert moved.judge.closure_gap(moved.judge.coordinates(moved.kinematics.joint_names, joints)) < 1e-12


def test_without_positions_they_are_where_home_or_the_seed_has_them(moved: Moved) -> None:
    k = moved.kinematics
    pose, given = moved.poses[0, :7], k.inverse(moved.poses[0])
    assert np.array_equal(k.inverse(pose).redundant, k.home_joints[k.engine.redundant_column])
    seeded = k.inverse(pose, seed=given.joints)
    assert np.abs(seeded.joints - given.joints).max() < 1e-12
    home = k.home_joints[k.engine.redundant_column]
    assert np.array_equal(k.inverse(np.append(pose, home), seed=given.joints).redundant, home)


def test_every_working_mode_has_the_given_positions(moved: Moved) -> None:
    k = moved.kinematics
    every = k.inverse_all(moved.poses[0])
    assert len(every) == k.n_modes
    for one in every:
        if one.ok:
            assert np.array_equal(one.redundant, moved.poses[0, 7:])
            q = moved.judge.coordinates(k.joint_names, one.joints)
            assert moved.judge.closure_gap(q) < 1e-12


def test_rates_of_all_joints(moved: Moved) -> None:
    k, judge = moved.kinematics, moved.judge
    at = k.inverse(moved.poses)
    motion = at.motion(moved.rates, moved.accelerations)
    assert motion.ok.all()
    joints = [judge.column[name] for name in k.joint_names]
    redundant = [judge.column[name] for name in k.redundant_names]
    for i in range(STATES):
        q = judge.coordinates(k.joint_names, at.joints[i])
        rates = motion.actuated_velocities[i], motion.actuated_accelerations[i]
        v, vdot = judge.rates_from(q, judge.actuated, *rates)
        rows, drift = judge.platform_rows(q, v)
        assert np.abs(v[joints] - motion.velocities[i]).max() < 1e-11
        assert np.abs(vdot[joints] - motion.accelerations[i]).max() < 1e-10
        assert np.abs(np.append(rows @ v, v[redundant]) - moved.rates[i]).max() < 1e-11
        assert np.abs(np.append(rows @ vdot + drift, vdot[redundant]) - moved.accelerations[i]).max() < 1e-10


def test_they_do_not_move_where_no_rates_of_theirs_are_given(moved: Moved) -> None:
    k = moved.kinematics
    motion = k.motion(moved.poses, moved.rates[:, :6], moved.accelerations[:, :6])
    columns = k.engine.redundant_column
    assert np.abs(motion.velocities[:, columns]).max() < 1e-12
    assert np.abs(motion.accelerations[:, columns]).max() < 1e-11
    assert np.abs(motion.actuated_velocities - np.einsum(
        "nij,nj->ni", k.at(moved.poses).inverse_jacobian, moved.rates[:, :6])).max() < 1e-11  # fmt: skip


def test_jacobians_of_both_kinds_of_coordinates(moved: Moved) -> None:
    k = moved.kinematics
    at, n = k.at(moved.poses), k.engine.freedoms
    assert at.motion_jacobian.shape == (STATES, n, n)
    u = at.motion(moved.rates).actuated_velocities
    S = k.task.subspace
    x = np.hstack([moved.rates[:, :6] @ np.linalg.pinv(S).T, moved.rates[:, 6:]])
    assert np.abs(np.einsum("nij,nj->ni", at.motion_jacobian, x) - u).max() < 1e-11
    assert np.abs(at.coordinate_rates(u) - moved.rates).max() < 1e-11
    assert np.abs(at.platform_twist(u) - moved.rates[:, :6]).max() < 1e-11
    margins = at.singularity
    assert (margins.condition > 0.01).all()
    assert np.allclose(margins.condition, at.drive_condition, rtol=1e-12)


def test_forward_undoes_inverse(moved: Moved) -> None:
    k = moved.kinematics
    at = k.inverse(moved.poses)
    back = k.forward(at.actuated)
    assert back.ok.all()
    assert np.abs(back.pose - moved.poses[:, :7]).max() < 1e-10
    assert np.abs(back.joints - at.joints).max() < 1e-9


def test_readings_are_tracked(moved: Moved) -> None:
    k = moved.kinematics
    tracker, path = Tracker(k), k.at_one(np.append(k.home, k.home_joints[k.engine.redundant_column]))
    goal = moved.poses[0] - np.append(k.home, path.redundant)
    for share in np.linspace(0.0, 1.0, 20):
        at = k.inverse(np.append(k.home, path.redundant) + share * goal)
        motion = at.motion(moved.rates[0])
        found = tracker.observe(at.actuated, motion.actuated_velocities)
        assert found.status is Status.CONVERGED
        assert np.abs(found.joints - at.joints).max() < 1e-9
        assert np.abs(found.velocities - motion.velocities).max() < 1e-9
        assert np.abs(found.twist - moved.rates[0, :6]).max() < 1e-9
    again = tracker.from_pose(at.actuated, motion.actuated_velocities, k.home, k.home_joints)
    assert np.abs(again.velocities - motion.velocities).max() < 1e-9
    named = AssemblyModeTracker(k)
    assert named.observe(at.actuated, motion.actuated_velocities).status is Status.CONVERGED
    assert named.modes.assembly == "redundant"
    # limbs solved by iteration have numbers where redundant joints are at home
    assert named.modes.working == (k.mode_label(0) if not k.engine.iterated else "++??")
    lean, pose = k.lean_track(), k.home.copy()
    assert lean(at.actuated, pose)[0] == Status.CONVERGED
    assert np.abs(pose - at.pose).max() < 1e-9


def test_limits_of_redundant_joints_count() -> None:
    k = Kinematics(load_mechanism(planar_on_a_rail(locked=False)))
    beyond = k.inverse(np.append(k.home + 1.2 * np.eye(7)[0], 1.2))
    assert Status(int(beyond.status)) is Status.JOINT_LIMIT
    assert "rail" in beyond.reason()


def test_a_branch_of_the_platform_begins_at_the_fixed_base() -> None:
    text = on_a_rail("delta")
    first = load_mechanism("delta").platform_chain[0]
    joint = text.index(f'name="{first}"')
    parent = text.index('<parent link="', joint)
    wrong = text[:parent] + text[parent:].replace(f'link="{load_mechanism("delta").base_link}"', 'link="carriage"', 1)
    with pytest.raises(DescriptionError, match="the first of them on the fixed link 'base_link'"):
        Kinematics(load_mechanism(wrong))


def test_a_rail_moves_what_it_carries() -> None:
    """As far as the platform and the rail go together, the limbs see nothing of it."""
    k = Kinematics(load_mechanism(on_a_rail("delta")))
    along = np.array([0.6, 0.8, 0.0])
    at_home, away = k.inverse(k.home), k.inverse(np.append(k.home + 0.4 * np.append(along, np.zeros(4)), 0.4))
    arms = [k.actuated_names.index(name) for name in k.actuated_names if name != "rail"]
    assert np.abs(at_home.actuated[arms] - away.actuated[arms]).max() < 1e-12
    there = k.forward(away.actuated, near=np.append(k.home, 0.0))
    assert np.abs(there.pose - away.pose).max() < 1e-9
    locked = Kinematics(load_mechanism("delta"))
    assert np.abs(at_home.actuated[arms] - locked.inverse(k.home).actuated).max() < 1e-12


def test_shapes_are_explained(moved: Moved) -> None:
    k = moved.kinematics
    with pytest.raises(ShapeError, match=k.redundant_names[0]):
        k.inverse(np.zeros(2))
    for wrong in ("home", [[0.0] * 7, [0.0]], [0.0]):
        with pytest.raises(ShapeError, match="pose: expected an array"):
            k.inverse(wrong)
        with pytest.raises(ShapeError, match="twist: expected an array"):
            k.motion(k.home, wrong)
    motion = k.motion(k.home, np.append(np.zeros(6), np.full(len(k.redundant_names), np.nan)))
    assert Status(int(motion.status)) is Status.INVALID_INPUT


def test_what_is_not_known_of_them_is_refused_by_name() -> None:
    k = Kinematics(load_mechanism(planar_3prrr(locked=False)))
    for call in (
        lambda: k.forward_all(k.home_joints[k.engine.actuated_column]),
        lambda: k.at(k.home).motion_jacobian_rate(np.zeros(6)),
        lambda: k.at(k.home).platform_acceleration(np.zeros(6), np.zeros(6)),
    ):
        with pytest.raises(PkmError, match="redundant joints: limb1_slider, limb2_slider, limb3_slider"):
            call()


def test_motion_spaces_that_turn_are_refused() -> None:
    mechanism = load_mechanism(on_a_rail("tripod_3prs", "0 0 1"))
    assert mechanism.redundant_joints == ("rail",)
    with pytest.raises(DescriptionError, match="motion space depends on the pose: not supported"):
        Kinematics(mechanism)


def test_iterated_limbs_follow_from_home() -> None:
    """The plates of an H4 are solved by iteration, and follow where platform and rail go from home together."""
    k = Kinematics(load_mechanism(on_a_rail("h4")))
    along = np.array([0.6, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0])
    there = k.inverse(np.append(k.home + 0.9 * along, 0.9))
    same = np.delete(np.arange(len(k.joint_names)), [k.joint_names.index(n) for n in ("rail", *k.task.names)])
    assert there.ok
    assert np.abs(there.joints - k.home_joints)[same].max() < 1e-9
    alone = k.inverse(k.home + 0.9 * along)
    assert Status(int(alone.status)) is Status.NOT_CONNECTED
