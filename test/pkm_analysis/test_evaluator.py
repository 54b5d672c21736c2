# SPDX-License-Identifier: Apache-2.0
"""Numbers of many poses are those that the kinematics gives one by one."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_analysis.analysed_robot import PoseEvaluator
from pkm_analysis.kernels.pose_quantities import HOLD, LIMIT, REACH, REGULARITY, TYPE1, TYPE2, UNLIMITED, WIDTH
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_runtime.chunks import slices
from pkm_runtime.sweeps import Sweeps

# in closed form, redundantly actuated, redundant and flat, with a plate, turning, overconstrained, on iterated limbs
ROBOTS = ("delta", "five_bar", "gough_stewart_7", "hexa", "orthoglide", "planar_3rrr", "quattro", "tripod_3prs")


def poses_around_home(kinematics: Kinematics, n: int) -> Array:
    """Poses (n, 7) in the motion space, some of them out of reach."""
    rng, engine = np.random.default_rng(1), kinematics.engine
    if not engine.constant_space:
        wanted = np.tile(kinematics.home, (n, 1))
        wanted[:, :3] += 0.05 * engine.size * rng.uniform(-1.0, 1.0, (n, 3))
        return np.array([np.asarray(kinematics.nearest(one).pose) for one in wanted])
    space, poses = kinematics.task.subspace, np.empty((n, 7))
    for pose in poses:
        turn = rng.uniform(-1.0, 1.0, space.shape[1]) * 0.25 * engine.size
        shift_pose(np.array(kinematics.home), space @ turn, 1.0, pose)
    return poses


@pytest.mark.by_day("five_bar", "planar_redundant", "tripod_3prs")
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one in ("hexa", "planar_3rrr") else one for one in ROBOTS]
)
def test_numbers_are_those_of_the_kinematics(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    evaluator = PoseEvaluator(kinematics)
    poses = poses_around_home(kinematics, 12)
    columns = [int(c) + WIDTH for c in kinematics.engine.body_column[2:]]
    reach, limit, type1, type2, hold, regularity, *joints = evaluator.numbers(
        poses, (REACH, LIMIT, TYPE1, TYPE2, HOLD, REGULARITY, *columns)
    )
    solution, margins = kinematics.inverse(poses), kinematics.singularity(poses)
    reached = np.isin(solution.status, (Status.CONVERGED, Status.JOINT_LIMIT))
    assert reached.any()
    assert ((reach >= 0.0) == reached).all()
    inside = ~kinematics.engine.ranges.beyond(solution.joints)[:, [c - WIDTH for c in columns]].any(axis=1)
    assert ((limit >= 0.0) == inside)[reached].all()
    np.testing.assert_allclose(np.array(joints).T[reached], solution.joints[reached][:, [c - WIDTH for c in columns]])
    use = reached & np.isfinite(margins.type1)
    np.testing.assert_allclose(type1[use], margins.type1[use], rtol=1e-5)
    np.testing.assert_allclose(np.abs(type2)[use], margins.type2[use], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(hold[use], np.minimum(margins.constraint_hold, UNLIMITED)[use], rtol=1e-5)
    np.testing.assert_allclose(regularity[use], margins.limb_regularity[use], rtol=1e-9)
    if len(kinematics.actuated_names) == kinematics.mobility:
        home = kinematics.singularity(kinematics.home).determinant_sign
        assert (np.sign(type2) == margins.determinant_sign * home)[use].all()


@pytest.mark.by_day("delta", "five_bar")
@pytest.mark.parametrize("name", ["delta", "gough_stewart", "five_bar"])
def test_code_and_kernels_say_the_same(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    evaluator, poses = PoseEvaluator(kinematics), poses_around_home(kinematics, 60)
    assert evaluator.quick
    joints = (int(column) + WIDTH for column in kinematics.engine.body_column[2:])
    asked = (REACH, LIMIT, TYPE1, TYPE2, HOLD, REGULARITY, *joints)
    quick, slow = evaluator.numbers(poses, asked), evaluator.by_kernels(poses, asked)
    slow[asked.index(TYPE2)] *= evaluator._home_sign
    assert ((quick[0] >= 0.0) == (slow[0] >= 0.0)).all()
    use = quick[0] >= 0.0
    assert use.any()
    np.testing.assert_allclose(quick[:, use], slow[:, use], rtol=1e-7, atol=1e-9)


def test_another_working_mode_has_its_own_numbers() -> None:
    kinematics = Kinematics(load_mechanism("five_bar"))
    pose = np.tile(kinematics.home, (3, 1))
    for mode in range(kinematics.n_modes):
        (angle,) = PoseEvaluator(kinematics, mode).numbers(pose, (WIDTH + 2,))
        np.testing.assert_allclose(angle, kinematics.inverse(pose, mode=mode).joints[:, 2])


def test_many_poses_on_all_cores_are_the_same() -> None:
    kinematics = Kinematics(load_mechanism("delta"))
    evaluator = PoseEvaluator(kinematics)
    poses = np.tile(poses_around_home(kinematics, 101), (1500, 1))
    chunks = (poses[at] for at in slices(len(poses), 10_000))
    parts = Sweeps(3).map(lambda chunk: evaluator.numbers(chunk, (REACH, LIMIT)), chunks)
    np.testing.assert_array_equal(
        np.concatenate(list(parts), axis=1)[:, -101:], evaluator.numbers(poses[:101], (REACH, LIMIT))
    )
