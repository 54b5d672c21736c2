# SPDX-License-Identifier: Apache-2.0
"""The axioms of the rotations and poses, in every form in which the suite has them, and scipy as the other opinion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import rotations
from pkm_description.mechanism import Array
from pkm_kinematics.kernels import compiled_rotations

ROUNDING = 4e-15


@dataclass(frozen=True)
class Group:
    """Rotations or poses: product (the second first), inverse, identity, exponential map and logarithm."""

    product: Callable[[Array, Array], Array]
    inverse: Callable[[Array], Array]
    identity: Array
    exponential: Callable[[Array], Array]
    logarithm: Callable[[Array], Array]
    scipy: Callable[[Array], Rotation]
    error: Callable[[Array], float]  # how far an element is from being one

    def apart(self, a: Array, b: Array) -> float:
        """Distance of two elements: quaternions of either sign are one."""
        sign = -1.0 if a.shape == (4,) and a @ b < 0.0 else 1.0
        return float(np.abs(a - sign * b).max())


def orthogonality(R: Array) -> float:
    return float(max(np.abs(R @ R.T - np.eye(3)).max(), abs(np.linalg.det(R) - 1.0)))


def turn_between(a: Array, b: Array) -> Array:
    """Rotation vector from one quaternion to another, of poses at one place."""
    return compiled_rotations.displacement_between(*(np.append(np.zeros(3), q) for q in (a, b)))[3:]


NO_TURN = np.array([0.0, 0.0, 0.0, 1.0])
ONE = {"scipy": Rotation.from_quat, "error": lambda q: abs(np.linalg.norm(q) - 1.0)}
GROUPS = {
    "matrices": Group(
        np.matmul,
        np.transpose,
        np.eye(3),
        rotations.rotation_from_vector,
        rotations.vector_from_rotation,
        Rotation.from_matrix,
        orthogonality,
    ),
    "quaternions": Group(
        rotations.quaternion_product,
        rotations.quaternion_inverse,
        NO_TURN,
        lambda v: rotations.quaternion_from_rotation(rotations.rotation_from_vector(v)),
        lambda q: rotations.vector_from_rotation(rotations.rotation_from_quaternion(q)),
        **ONE,
    ),
    "compiled quaternions": Group(
        compiled_rotations.multiply,
        rotations.quaternion_inverse,
        NO_TURN,
        compiled_rotations.exponential,
        lambda q: turn_between(NO_TURN, q),
        **ONE,
    ),
}
RANDOM = np.random.default_rng(7)
AXES = [np.array(v) / np.linalg.norm(v) for v in ([1, 0, 0], [0, -1, 0], [0, 0, 1], [3, 0, -4], [-9, 12, 20])]
ANGLES = [0.0, 1e-300, 1e-16, 1e-12, 1e-9, 9e-5, 1e-4, 1.1e-4, 0.5, 2.0, 3.0, np.pi - 1e-3, np.pi - 1e-6, np.pi - 1e-9]
ELEMENTS = RANDOM.normal(size=(20, 3, 3))


@pytest.fixture(params=GROUPS)
def group(request: pytest.FixtureRequest) -> Group:
    return GROUPS[request.param]


def test_closure_identity_inverse_associativity(group: Group) -> None:
    for vectors in ELEMENTS:
        a, b, c = (group.exponential(v) for v in vectors)
        assert group.error(a) < ROUNDING
        assert group.error(group.product(a, b)) < ROUNDING
        for neutral in (group.product(a, group.identity), group.product(group.identity, a)):
            assert group.apart(neutral, a) < ROUNDING
        for nothing in (group.product(a, group.inverse(a)), group.product(group.inverse(a), a)):
            assert group.apart(nothing, group.identity) < ROUNDING
        left, right = group.product(group.product(a, b), c), group.product(a, group.product(b, c))
        assert group.apart(left, right) < ROUNDING


def test_products_agree_with_scipy(group: Group) -> None:
    for v, w, _ in ELEMENTS:
        found = group.scipy(group.product(group.exponential(v), group.exponential(w)))
        wanted = Rotation.from_rotvec(v) * Rotation.from_rotvec(w)
        assert found.as_matrix() == pytest.approx(wanted.as_matrix(), abs=ROUNDING)


@pytest.mark.every_combination
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_exponential_and_logarithm(group: Group, axis: Array, angle: float) -> None:
    vector = angle * axis
    element = group.exponential(vector)
    assert group.scipy(element).as_matrix() == pytest.approx(Rotation.from_rotvec(vector).as_matrix(), abs=1e-15)
    assert group.logarithm(element) == pytest.approx(vector, rel=1e-14, abs=ROUNDING)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_half_turns_have_either_axis(group: Group, axis: Array) -> None:
    half = group.exponential(np.pi * axis)
    found = group.logarithm(half)
    assert min(np.abs(found - np.pi * axis).max(), np.abs(found + np.pi * axis).max()) < ROUNDING
    assert group.apart(group.exponential(found), half) < ROUNDING


def test_small_turns_keep_all_digits_of_a_quaternion() -> None:
    """The logarithm of a compiled quaternion is relatively exact, however small the turn."""
    for angle in (1e-12, 1e-9, 1e-5):
        vector = angle * AXES[4]
        found = turn_between(NO_TURN, compiled_rotations.exponential(vector))
        assert found == pytest.approx(vector, rel=1e-15, abs=0.0)


def test_either_sign_of_a_quaternion_is_the_same_attitude() -> None:
    start, v = Rotation.random(rng=3).as_quat(), np.array([0.3, -2.0, 0.5])
    end = compiled_rotations.multiply(compiled_rotations.exponential(v), start)
    for sign in (1.0, -1.0):
        assert turn_between(start, sign * end) == pytest.approx(v, abs=ROUNDING)


def test_quaternions_of_random_rotations() -> None:
    wanted = Rotation.random(2000, rng=1)
    found = np.array([rotations.quaternion_from_rotation(R) for R in wanted.as_matrix()])
    assert np.abs(found - wanted.as_quat(canonical=True)).max() < 1e-15
    assert np.abs(np.linalg.norm(found, axis=1) - 1.0).max() < 1e-15


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 5, 3)])
@pytest.mark.parametrize("kind", [float, complex])
def test_skew_is_the_cross_product(shape: tuple[int, ...], kind: Any) -> None:
    a, b = RANDOM.normal(size=(2, *shape)).astype(kind)
    if kind is complex:
        a = a + 1j * RANDOM.normal(size=shape)
    found = rotations.skew(a)
    assert found.dtype == kind
    np.testing.assert_allclose(np.einsum("...ij,...j", found, b), np.cross(a, b), atol=1e-15)


def test_products_of_many_quaternions() -> None:
    a, b = Rotation.random(6, rng=1).as_quat().reshape(2, 3, 4)
    expected = [rotations.quaternion_product(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(rotations.quaternion_product(a, b), expected)


@pytest.mark.parametrize(
    "rpy", [[0.1, 0.2, 0.3], [-3.0, 1.5, 3.1], [0.4, np.pi / 2, 0.7], [0.4, -np.pi / 2, 0.7]], ids=str
)
def test_roll_pitch_yaw(rpy: list[float]) -> None:
    R = rotations.rotation_from_rpy(np.array(rpy))
    np.testing.assert_allclose(R, Rotation.from_euler("xyz", rpy).as_matrix(), atol=1e-15)  # extrinsic: fixed axes
    again = rotations.rpy_from_rotation(R)
    np.testing.assert_allclose(rotations.rotation_from_rpy(again), R, atol=1e-15)
    if abs(rpy[1]) == np.pi / 2:
        assert again[2] == 0.0
    else:
        np.testing.assert_allclose(again, rpy, atol=1e-14)


def random_pose(seed: int) -> Array:
    return np.concatenate(
        [np.random.default_rng(seed).normal(size=3), Rotation.random(rng=seed).as_quat(canonical=True)]
    )


def test_poses_and_transforms() -> None:
    for seed in range(50):
        pose = random_pose(seed)
        frame = rotations.transform_from_pose(pose)
        np.testing.assert_allclose(frame[:3, :3], Rotation.from_quat(pose[3:]).as_matrix(), atol=1e-15)
        np.testing.assert_allclose(rotations.pose_from_transform(frame), pose, atol=1e-15)
        np.testing.assert_allclose(frame @ rotations.inverse_transform(frame), np.eye(4), atol=1e-15)


def test_displacements_lead_from_one_pose_to_the_other() -> None:
    for seed in range(20):
        a, b = random_pose(seed), random_pose(seed + 100)
        displacement = compiled_rotations.displacement_between(a, b)
        reached = compiled_rotations.displace(a, displacement)
        assert rotations.pose_distance(reached, b, 1.0) < 1e-14
        assert abs(np.linalg.norm(reached[3:]) - 1.0) < 1e-15
        turn = Rotation.from_quat(b[3:]) * Rotation.from_quat(a[3:]).inv()
        np.testing.assert_allclose(displacement, [*(b - a)[:3], *turn.as_rotvec()], atol=ROUNDING)
        angle = float(turn.magnitude())
        assert rotations.pose_distance(a, b, 0.3) == pytest.approx(np.hypot(np.linalg.norm((b - a)[:3]), 0.3 * angle))
