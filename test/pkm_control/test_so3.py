# SPDX-License-Identifier: Apache-2.0
"""The compiled rotations: the axioms of the group, and scipy as the other opinion."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_control.so3 import displace, displacement_between, exponential, multiply, rotation_between

RANDOM = np.random.default_rng(7)
VECTORS = [
    *RANDOM.normal(size=(8, 3)),
    np.zeros(3),
    np.array([1e-9, 0, 0]),
    np.array([0, 3.1, 0]),
    np.array([9e-5, 0, 0]),
]


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_exponential_agrees_with_scipy(vector) -> None:
    np.testing.assert_allclose(exponential(vector), Rotation.from_rotvec(vector).as_quat(), atol=1e-15)


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_rotation_between_undoes_exponential(vector) -> None:
    start = Rotation.random(rng=3).as_quat()
    end = multiply(exponential(vector), start)
    np.testing.assert_allclose(rotation_between(start, end), vector, atol=1e-14)
    np.testing.assert_allclose(rotation_between(start, -end), vector, atol=1e-14)  # q and -q are one attitude


def test_product_is_associative_and_agrees_with_scipy() -> None:
    a, b, c = Rotation.random(3, rng=4).as_quat()
    np.testing.assert_allclose(multiply(multiply(a, b), c), multiply(a, multiply(b, c)), atol=1e-15)
    product = (Rotation.from_quat(a) * Rotation.from_quat(b)).as_matrix()
    np.testing.assert_allclose(Rotation.from_quat(multiply(a, b)).as_matrix(), product, atol=1e-15)


def test_displacement_leads_from_one_pose_to_the_other() -> None:
    a = np.concatenate([RANDOM.normal(size=3), Rotation.random(rng=5).as_quat()])
    b = np.concatenate([RANDOM.normal(size=3), Rotation.random(rng=6).as_quat()])
    reached = displace(a, displacement_between(a, b))
    np.testing.assert_allclose(reached[:3], b[:3], atol=1e-15)
    assert abs(abs(reached[3:] @ b[3:]) - 1.0) < 1e-15
    assert abs(np.linalg.norm(reached[3:]) - 1.0) < 1e-15
