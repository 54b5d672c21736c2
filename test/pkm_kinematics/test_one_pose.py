# SPDX-License-Identifier: Apache-2.0
"""One pose on its own gets what it gets among many: joints, status, residual and iterations, in any order of calls."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.batch import ShapeError
from pkm_kinematics.status import Status, closes

SAME = 1e-12  # rad, m and quaternions
SCATTERED = ("delta", "five_bar", "gough_stewart", "orthoglide", "quattro")  # by formula, and by iteration
READ = (*SCATTERED, "agile_eye", "cable_8", "four_upu", "par2", "planar_3rrr", "tripod_3prs", "tripteron")


def scattered(kinematics: Kinematics, n: int = 12) -> Array:
    """Poses (n + 5, 7) around home, the farther the later; then three that are none, one far away and home itself."""
    random = np.random.default_rng(1)
    space = kinematics.subspace(kinematics.home)
    reach = np.geomspace(0.02, 3.0, n)[:, None]
    twists = random.normal(size=(n, space.shape[1])) @ space.T * reach
    poses = np.tile(kinematics.home, (n + 5, 1))
    poses[:n, :3] += twists[:, :3] * kinematics.characteristic_length
    turns = np.hstack([0.5 * twists[:, 3:], np.ones((n, 1))])
    x, y, z, w = kinematics.home[3:]
    after = np.array([[w, z, -y, x], [-z, w, x, y], [y, -x, w, z], [-x, -y, -z, w]])  # right multiplication by home
    poses[:n, 3:] = turns / np.linalg.norm(turns, axis=1)[:, None] @ after.T
    poses[n, 0] = np.nan
    poses[n + 1, 1] = np.inf
    poses[n + 2, 6] += 0.1
    poses[n + 3, 2] += 1e6
    return poses


def assert_same(one: object, many: object, k: int, *names: str) -> None:
    for name in names:
        alone, among = getattr(one, name), getattr(many, name)[k]
        assert np.shape(alone) == np.shape(among), name
        np.testing.assert_allclose(alone, among, rtol=SAME, atol=SAME, err_msg=f"{name} of row {k}")


@pytest.mark.parametrize("name", robot_names())
def test_inverse_of_one_pose_is_that_among_many(of_gallery, name: str) -> None:
    kinematics = of_gallery[name].kinematics
    poses = scattered(kinematics)
    many = kinematics.inverse(poses)
    assert many.ok.any()
    assert not many.ok.all()
    for k in (*range(len(poses)), *range(len(poses) - 1, -1, -1)):  # what one call leaves behind is nothing to the next
        one = kinematics.inverse(poses[k])
        assert int(one.status) == many.status[k]
        assert_same(one, many, k, "joints", "actuated", "residual", "iterations")
        assert one.reason() == many.reason(k)
        assert np.isfinite(one.joints).all() == closes(Status(int(one.status)))
        assert one.label == many.label


@pytest.mark.parametrize("name", SCATTERED)
def test_modes_and_seeds_of_one_pose(of_gallery, name: str) -> None:
    kinematics = of_gallery[name].kinematics
    poses = scattered(kinematics)
    seed = np.array(kinematics.home_joints)
    for given in ({"mode": 0}, {"mode": kinematics.n_modes - 1}, {"seed": seed}, {"seed": seed, "mode": 0}):
        many = kinematics.inverse(poses, **given)
        for k in range(len(poses)):
            one = kinematics.inverse(poses[k], **given)
            assert int(one.status) == many.status[k]
            assert_same(one, many, k, "joints", "residual", "iterations")


@pytest.mark.parametrize("name", SCATTERED)
def test_seeds_that_are_not_usable(of_gallery, name: str) -> None:
    kinematics = of_gallery[name].kinematics
    for value in (np.nan, np.inf, 1e9):
        seed = np.array(kinematics.home_joints)
        seed[kinematics.engine.actuated_column[-1]] = value
        for answer in (
            kinematics.inverse(kinematics.home, seed=seed),
            kinematics.motion(kinematics.home, np.zeros(6), seed=seed),
        ):
            assert answer.status == Status.INVALID_INPUT
            assert np.isnan(answer.joints).all()
        seeds = np.array([kinematics.home_joints, seed])
        both = kinematics.inverse(np.array([kinematics.home, kinematics.home]), seed=seeds)
        assert both.status.tolist() == [Status.CONVERGED, Status.INVALID_INPUT]


@pytest.mark.parametrize("name", READ)
def test_forward_of_one_reading_is_that_among_many(of_gallery, name: str) -> None:
    kinematics = of_gallery[name].kinematics
    poses = scattered(kinematics)
    q = np.array(kinematics.inverse(poses).actuated)
    q[~np.isfinite(q).all(axis=1)] = kinematics.inverse(kinematics.home).actuated
    q[-2, 0], q[-3, -1], q[-4, 0] = np.nan, np.inf, 1e9
    for near in (None, kinematics.home, poses):
        many = kinematics.forward(q, near=near)
        assert many.ok.any()
        for k in range(len(q)):
            one = kinematics.forward(q[k], near=near if near is None or near.ndim == 1 else near[k])
            assert int(one.status) == many.status[k]
            assert_same(one, many, k, "pose", "joints", "actuated", "residual", "iterations")
            assert one.reason() == many.reason(k)


def test_a_seed_per_reading(of_gallery) -> None:
    kinematics = of_gallery["delta"].kinematics
    poses = scattered(kinematics)[:4]
    there = kinematics.inverse(poses)
    found = kinematics.forward(there.actuated, near=poses, seed=there.joints)
    np.testing.assert_allclose(found.pose, poses, atol=1e-9)


@pytest.mark.parametrize("name", SCATTERED)
def test_arrays_of_any_layout(of_gallery, name: str) -> None:
    """Compiled calls that do not look at their arguments get contiguous arrays, whatever a caller gave."""
    kinematics = of_gallery[name].kinematics
    expected = kinematics.inverse(np.array(kinematics.home)).joints
    strided = np.repeat(kinematics.home, 2)[::2]
    columns = np.asfortranarray(np.tile(kinematics.home, (3, 1)))
    for pose in (kinematics.home, list(kinematics.home), strided, strided[None], columns, columns[::-1]):
        np.testing.assert_array_equal(
            kinematics.inverse(pose).joints, np.broadcast_to(expected, (*np.shape(pose)[:-1], len(expected)))
        )
    q = expected[kinematics.engine.actuated_column]
    there = kinematics.forward(q, near=kinematics.home).pose
    for reading in (list(q), np.repeat(q, 2)[::2], np.asfortranarray(np.tile(q, (3, 1)))):
        found = kinematics.forward(reading, near=strided).pose
        np.testing.assert_array_equal(found, np.broadcast_to(there, found.shape))
    seeds = np.asfortranarray(np.tile(kinematics.home_joints, (3, 1)))
    np.testing.assert_array_equal(kinematics.inverse(columns, seed=seeds).joints, np.tile(expected, (3, 1)))


@pytest.mark.parametrize("shape", [(), (6,), (8,), (2, 6), (0,)])
def test_wrong_shapes_are_refused(of_gallery, shape: tuple[int, ...]) -> None:
    kinematics = of_gallery["delta"].kinematics
    with pytest.raises(ShapeError, match="expected an array of shape"):
        kinematics.inverse(np.zeros(shape))
    with pytest.raises(ShapeError, match="expected an array of shape"):
        kinematics.forward(np.zeros(shape))
    with pytest.raises(ShapeError, match="near: expected 1 or 2 rows of 7, got 3"):
        kinematics.forward(np.zeros((2, 3)), near=np.tile(kinematics.home, (3, 1)))


def test_calls_in_several_threads_do_not_disturb_each_other(of_gallery) -> None:
    kinematics = of_gallery["gough_stewart"].kinematics
    poses = scattered(kinematics, 40)[:30]
    expected = kinematics.inverse(poses).joints

    def ask(k: int) -> bool:
        return all(np.array_equal(kinematics.inverse(poses[k]).joints, expected[k], equal_nan=True) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(len(poses))))


def test_answers_cannot_be_changed_and_know_their_fields() -> None:
    kinematics = Kinematics(load_mechanism("delta"))
    answer = kinematics.inverse(kinematics.home)
    with pytest.raises(FrozenInstanceError):
        answer.label = "another"
    found = kinematics.forward(answer.actuated)
    with pytest.raises(FrozenInstanceError):
        found.label = "another"
    again = replace(found, label="another")
    assert (again.label, again.joints) == ("another", found.joints)
    assert list(inspect.signature(type(found)).parameters)[:3] == ["pose", "joints", "status"]


def test_rooms_of_answers_are_not_shared() -> None:
    kinematics = Kinematics(load_mechanism("delta"))
    first, second = (kinematics.inverse(kinematics.home) for _ in range(2))
    first.joints[:] = 7.0
    assert not (second.joints == 7.0).any()
    q = second.actuated
    first, second = (kinematics.forward(q) for _ in range(2))
    first.pose[:], first.joints[:] = 7.0, 7.0
    assert not (second.pose == 7.0).any()
    assert kinematics.forward(q).ok
    assert kinematics.inverse(kinematics.home).ok
