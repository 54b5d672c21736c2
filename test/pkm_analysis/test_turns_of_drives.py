# SPDX-License-Identifier: Apache-2.0
"""In which of its turns a driven arm is: one rule for calls, workspaces and proofs.

The judge leads the robot from home in short steps, each the seed of the next, so that no arm can jump a turn.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_analysis.analysed_robot import PoseEvaluator
from pkm_analysis.analysis import Analysis
from pkm_analysis.kernels.pose_quantities import LIMIT, REACH, WIDTH
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status

STEPS = 150
LONGEST = 0.7  # rad: an arm that turns farther in a step has passed its motor, where both ways are as long
ROBOTS = ["five_bar", "planar_3rrr", "delta", "hexa", "planar_redundant"]


def far_poses(k: Kinematics, n: int) -> Array:
    """Poses that the limbs reach, all over the ranges of the task coordinates."""
    random, chain = np.random.default_rng(0), k.task.chain[1:]
    low, high = np.maximum(chain["lower"], -2.0), np.minimum(chain["upper"], 2.0)
    poses = k.engine.inputs.poses_at(random.uniform(low, high, (40 * n, len(chain))))
    return poses[np.isin(k.inverse(poses).status, (Status.CONVERGED, Status.JOINT_LIMIT))][:n]


def followed(k: Kinematics, pose: Array) -> Array | None:
    """Joints led to a pose on the straight way from home; None where a limb does not reach all along."""
    home = Rotation.from_quat(k.home[3:])
    turn = (Rotation.from_quat(pose[3:]) * home.inv()).as_rotvec()
    joints = np.array(k.home_joints)
    for share in np.linspace(0.0, 1.0, STEPS + 1)[1:]:
        place = k.home[:3] + share * (pose[:3] - k.home[:3])
        at = k.inverse(np.r_[place, (Rotation.from_rotvec(share * turn) * home).as_quat()], seed=joints)
        moved = np.abs(at.joints - joints)[k.engine.actuated_column].max()
        if at.status not in (Status.CONVERGED, Status.JOINT_LIMIT) or not moved < LONGEST:
            return None
        joints = at.joints
    return joints


@pytest.mark.slow
@pytest.mark.by_day("five_bar", "planar_redundant")
@pytest.mark.parametrize("name", ROBOTS)
def test_unseeded_calls_have_the_turns_of_the_way_from_home(name: str) -> None:
    k = Kinematics(load_mechanism(name))
    drives, compared = k.engine.actuated_column, 0
    for pose in far_poses(k, 60):
        joints = followed(k, pose)
        if joints is None:
            continue
        found = k.inverse(pose)
        apart = found.joints[drives] - joints[drives]
        if np.abs(np.angle(np.exp(1j * apart))).max() > 1e-6:
            continue  # led past a dead point, to another working mode
        compared += 1
        np.testing.assert_allclose(found.joints[drives], joints[drives], atol=1e-6)
        if k.engine.ranges.beyond(joints)[drives].any():
            assert found.status == Status.JOINT_LIMIT
    assert compared > 20


def test_a_five_bar_below_its_motors() -> None:
    """The right arm gets there over 180 degrees, and its range ends at 206: the shorter way round is no way."""
    k = Kinematics(load_mechanism("five_bar"))
    found = k.inverse([0.02803, -0.60903])
    assert found.status == Status.JOINT_LIMIT
    assert found.actuated[1] == pytest.approx(3.9785, abs=1e-4)
    assert k.inverse([0.02803, -0.60903], mode=0).ok  # of a mode, nobody says from where its joints came


@pytest.mark.parametrize("name", ["five_bar", "hexa", "agile_eye"])
def test_workspaces_count_turns_as_calls_do(name: str) -> None:
    k = Kinematics(load_mechanism(name))
    poses = far_poses(k, 300)
    solved, evaluator = k.inverse(poses), PoseEvaluator(k)
    wanted = (REACH, LIMIT, *(WIDTH + int(c) for c in k.engine.actuated_column))
    for numbers in (evaluator.numbers(poses, wanted), evaluator.by_kernels(poses, wanted)):
        np.testing.assert_allclose(numbers[2:].T, solved.actuated, atol=1e-6)
        within = ~k.engine.ranges.beyond(solved.joints)[:, k.engine.body_column[2:]].any(axis=1)
        clear = np.abs(numbers[1]) > 1e-6
        np.testing.assert_array_equal((numbers[1] >= 0.0)[clear], within[clear])


def test_proofs_count_turns_as_calls_do() -> None:
    """Small boxes all over a five-bar's workspace and beside it: what is proved inside is CONVERGED all over."""
    k = Kinematics(load_mechanism("five_bar"))
    analysis = Analysis(k)
    random, verdicts = np.random.default_rng(1), {True: 0, False: 0}
    for x, y in random.uniform([-0.5, -0.66], [0.5, 0.6], (40, 2)):
        box = {"x": (x - 0.01, x + 0.01), "y": (y - 0.01, y + 0.01)}
        inside = analysis.prove("inside", box).ok
        within = k.inverse(random.uniform(*np.transpose(list(box.values())), (200, 2))).ok
        assert not inside or within.all()
        verdicts[inside] += 1
    assert min(verdicts.values()) > 5
    assert analysis.prove("inside", {"x": (0.02, 0.04), "y": (-0.62, -0.6)}).verdict == "refuted"
