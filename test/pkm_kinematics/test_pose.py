# SPDX-License-Identifier: Apache-2.0
"""Quaternions of rotation matrices, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_kinematics.pose import pose_of, quaternion_of, transform_of


def test_random_rotations() -> None:
    rotations = Rotation.random(2000, random_state=1)
    found = np.array([quaternion_of(R) for R in rotations.as_matrix()])
    assert np.abs(found - rotations.as_quat(canonical=True)).max() < 1e-15
    assert np.abs(np.linalg.norm(found, axis=1) - 1.0).max() < 1e-15


@pytest.mark.parametrize("axis", [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0.6, 0.0, -0.8], [-0.36, 0.48, 0.8]])
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, 2.0, np.pi - 1e-9, np.pi - 1e-3])
def test_small_turns_and_almost_half_turns(axis: list[float], angle: float) -> None:
    """Where one way to divide would lose digits another one does not."""
    wanted = Rotation.from_rotvec(angle * np.array(axis))
    found = quaternion_of(wanted.as_matrix())
    assert found == pytest.approx(wanted.as_quat(canonical=True), abs=1e-15)


def test_half_turns_have_either_sign() -> None:
    for axis in np.random.default_rng(2).normal(size=(50, 3)):
        u = axis / np.linalg.norm(axis)
        R = 2.0 * np.outer(u, u) - np.eye(3)
        found = quaternion_of(R)
        assert min(np.abs(found[:3] - u).max(), np.abs(found[:3] + u).max()) < 1e-15
        assert found[3] >= 0.0


def test_there_and_back() -> None:
    for rotation in Rotation.random(50, random_state=3):
        pose = np.concatenate([[0.1, -2.0, 30.0], rotation.as_quat(canonical=True)])
        assert pose_of(transform_of(pose)) == pytest.approx(pose, abs=1e-15)
