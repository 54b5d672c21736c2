# SPDX-License-Identifier: Apache-2.0
"""Every answer tells how regular the matrix was that its solve divided by, by the one number for that."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.solve.singularity import per_unit_speed

ROBOTS = ("delta", "gough_stewart", "five_bar", "quattro", "agile_eye", "tripod_3prs", "cable_8")


def reciprocal_condition(A: np.ndarray) -> float:
    return A.shape[1] / float(np.linalg.norm(A) * np.linalg.norm(np.linalg.pinv(A)))


@pytest.mark.parametrize("name", ROBOTS)
def test_every_answer_has_the_condition_of_its_solve(name: str) -> None:
    dynamics = Dynamics(load_mechanism(name))
    k = dynamics.kinematics
    space, random = np.asarray(k.subspace(k.home)), np.random.default_rng(4)
    poses = np.array(
        [displace(k.home, space @ (0.05 * k.characteristic_length * random.normal(size=k.mobility))) for _ in range(9)]
    )
    if not k.constant_space:
        poses = np.array([k.nearest(pose).pose for pose in poses])
    poses = poses.reshape(3, 3, 7)
    inverse = k.inverse(poses)
    assert inverse.ok.all()
    motion = k.motion(poses, np.zeros(6))
    np.testing.assert_allclose(inverse.condition, motion.limb_regularity, rtol=1e-9)
    np.testing.assert_allclose(
        dynamics.direct(poses, np.zeros(6), np.zeros(len(k.actuated_names))).condition,
        motion.limb_regularity,
        rtol=1e-9,
    )
    forward = k.forward(inverse.actuated, near=poses)
    np.testing.assert_allclose(forward.condition, dynamics.inverse(poses).condition, rtol=1e-5)
    one = poses[1, 2]
    S = np.asarray(k.subspace(one))
    K = per_unit_speed(np.asarray(k.at(one).inverse_jacobian) @ S, S, k.characteristic_length)
    units = k.engine.drive_units[:, None]
    assert float(forward.condition[1, 2]) == pytest.approx(reciprocal_condition(units * K), rel=1e-5)
    assert np.ndim(k.inverse(one).condition) == 0
    assert np.ndim(k.forward(k.inverse(one).actuated).condition) == 0


def test_where_nothing_is_found_it_is_0() -> None:
    dynamics = Dynamics(load_mechanism("delta"))
    k = dynamics.kinematics
    poses = np.array([k.home, k.home])
    poses[1, 0] += 10.0
    found = k.inverse(poses)
    assert found.status[1] == Status.UNREACHABLE
    assert found.condition[0] > 0.1
    assert found.condition[1] == 0.0
    assert dynamics.direct(poses, np.zeros(6), np.zeros(3)).condition[1] == 0.0
    q = np.array([k.inverse(k.home).actuated, (1.5, -1.5, np.nan)])
    assert k.forward(q).condition[1] == 0.0
    assert all(mode.condition > 0.0 for mode in k.forward_all(q[0]))
