# SPDX-License-Identifier: Apache-2.0
"""The efforts and the acceleration of one state are those that it has among many, in any order of calls."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.batch import ShapeError
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.status import closes

SAME = 1e-12  # of the largest effort or acceleration
FULL = ("delta", "five_bar", "gough_stewart", "gough_stewart_7", "orthoglide", "quattro", "tripod_3prs")


def states(kinematics: Kinematics, n: int = 8) -> tuple[Array, Array, Array, Array]:
    """Poses beside home, twists, accelerations and wrenches; the last rows are not usable, each in a way of its own."""
    random = np.random.default_rng(2)
    space = kinematics.subspace(kinematics.home)
    poses = np.tile(kinematics.home, (n, 1))
    if kinematics.constant_space:
        aside = np.geomspace(0.01, 3.0, n)[:, None] * random.normal(size=(n, space.shape[1])) @ space.T
        poses[:, :3] += kinematics.characteristic_length * aside[:, :3]
    twists, accelerations = (random.normal(size=(n, space.shape[1])) @ space.T for _ in range(2))
    wrenches = random.normal(size=(n, 6))
    poses[-1, 0], twists[-2, 3], accelerations[-3, 0], wrenches[-4, 5] = np.nan, np.nan, np.inf, np.nan
    return poses, twists, accelerations, wrenches


@pytest.mark.parametrize("name", robot_names())
def test_dynamics_of_one_state_are_those_among_many(of_gallery, name: str) -> None:
    kinematics = of_gallery[name].kinematics
    for dynamics in (Dynamics(kinematics), Dynamics(kinematics, friction=False)):
        given = states(kinematics)
        efforts, moving = (
            dynamics.inverse(*given),
            dynamics.direct(given[0], given[1], np.ones(len(kinematics.actuated_names))),
        )
        unpushed = dynamics.inverse(*given[:3])
        scale = np.nanmax(np.abs(efforts.effort), initial=1.0), np.nanmax(np.abs(moving.acceleration), initial=1.0)
        for k in (*range(len(given[0])), *range(len(given[0]) - 1, -1, -1)):
            here = [values[k] for values in given]
            one = dynamics.inverse(*here)
            assert int(one.status) == efforts.status[k]
            np.testing.assert_allclose(one.effort, efforts.effort[k], rtol=0.0, atol=SAME * scale[0])
            assert np.isfinite(one.effort).all() == bool(one.ok)
            one = dynamics.inverse(*here[:3])
            assert int(one.status) == unpushed.status[k]
            np.testing.assert_allclose(one.effort, unpushed.effort[k], rtol=0.0, atol=SAME * scale[0])
            one = dynamics.direct(here[0], here[1], np.ones(len(kinematics.actuated_names)))
            assert int(one.status) == moving.status[k]
            np.testing.assert_allclose(one.acceleration, moving.acceleration[k], rtol=0.0, atol=SAME * scale[1])


@pytest.mark.parametrize("name", FULL)
def test_twists_outside_the_motion_space_are_invalid(of_gallery, name: str) -> None:
    kinematics = of_gallery[name].kinematics
    dynamics = Dynamics(kinematics)
    space = kinematics.subspace(kinematics.home)
    across = np.linalg.svd(space)[0][:, space.shape[1] :]
    for off in across.T:
        assert dynamics.inverse(kinematics.home, off).status == Status.INVALID_INPUT
        if kinematics.constant_space:  # else some accelerations come with the twist
            assert dynamics.inverse(kinematics.home, None, off).status == Status.INVALID_INPUT
        assert dynamics.inverse(kinematics.home, 1e-9 * off).ok
    still = dynamics.inverse(kinematics.home)
    assert still.ok
    zero = dynamics.inverse(kinematics.home, np.zeros(6), [0.0] * 6, np.zeros((1, 6)))
    np.testing.assert_array_equal(still.effort, zero.effort)


@pytest.mark.parametrize("name", FULL)
def test_layouts_seeds_and_modes_of_one_state(of_gallery, name: str) -> None:
    kinematics = of_gallery[name].kinematics
    dynamics = Dynamics(kinematics)
    twist = np.array(0.1 * kinematics.subspace(kinematics.home)[:, 0])
    expected = dynamics.inverse(np.array(kinematics.home), twist).effort
    strided = np.repeat(kinematics.home, 2)[::2]
    rows = np.asfortranarray(np.tile(twist, (3, 1)))
    for found in (
        dynamics.inverse(strided, list(twist)),
        dynamics.inverse(kinematics.home, np.repeat(twist, 2)[::2]),
        dynamics.inverse(dynamics.kinematics.at(kinematics.home, seed=kinematics.home_joints), twist),
        dynamics.inverse(np.asfortranarray(np.tile(kinematics.home, (3, 1))), rows),
    ):
        np.testing.assert_allclose(found.effort, np.broadcast_to(expected, found.effort.shape), rtol=1e-9, atol=1e-9)
    in_mode = dynamics.inverse(dynamics.kinematics.at(kinematics.home, mode=0), twist)
    among = dynamics.inverse(dynamics.kinematics.at(np.tile(kinematics.home, (2, 1)), mode=0), twist)
    assert int(in_mode.status) == among.status[0]
    np.testing.assert_array_equal(in_mode.effort, among.effort[0])


def test_wrong_shapes_are_refused(of_gallery) -> None:
    kinematics = of_gallery["delta"].kinematics
    dynamics = Dynamics(kinematics)
    with pytest.raises(ShapeError, match="twist: expected an array of shape"):
        dynamics.inverse(kinematics.home, np.zeros(5))
    with pytest.raises(ShapeError, match="wrench: expected 1 row of 6, as there is one pose, got 2"):
        dynamics.inverse(kinematics.home, wrench=np.zeros((2, 6)))
    with pytest.raises(ShapeError, match="pose: expected an array of shape"):
        dynamics.inverse(np.zeros(6))


@pytest.mark.parametrize("name", ["delta", "five_bar"])
def test_poses_beside_the_motion_space_are_moved_into_it(name, of_gallery):
    """Within the bound of the kinematics, for one pose and for several."""
    dynamics = of_gallery[name].dynamics
    k = dynamics.kinematics
    here = dynamics.gravity(k.home)
    across = np.linalg.svd(k.subspace(k.home).T)[2][-1]  # that the space does not allow
    for far in (1e-10, 1e-8, 5e-7, 1e-5):
        pose = displace(k.home, far * min(1.0, k.engine.size) * across)
        status = k.inverse(pose).status
        assert closes(status) == (far < 1e-6)
        effort = np.where(closes(status), here.effort, np.nan)
        for found in (dynamics.gravity(pose), dynamics.inverse(pose), dynamics.inverse(k.at(pose))):
            assert found.status == status
            np.testing.assert_allclose(found.effort, effort, rtol=1e-9, atol=1e-9)
        several = dynamics.inverse(np.array([k.home, pose]))
        np.testing.assert_allclose(several.effort, [here.effort, effort], rtol=1e-9, atol=1e-9)
        accelerated = dynamics.direct(pose, np.zeros(6), here.effort)
        assert accelerated.status == status
