# SPDX-License-Identifier: Apache-2.0
"""Drives that only pull: every call answers what they can give, or says that there is nothing of the kind."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from pkm_description import load_mechanism
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.distribution import Sharing
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import shift_pose

LEAST, MOST = -600.0, -20.0  # efforts of a winch of `cable_8` [N], which pays out where they are positive


@pytest.fixture(scope="module")
def cables():
    return Dynamics(load_mechanism("cable_8"), friction=False)


@pytest.fixture(scope="module")
def motions(cables):
    """Poses about home, twists and accelerations, of which some ask for more than there is."""
    rng = np.random.default_rng(1)
    poses = np.empty((300, 7))
    for pose in poses:
        shift_pose(np.array(cables.kinematics.home), rng.uniform(-0.3, 0.3, 6), 1.0, pose)
    return poses, rng.normal(size=(300, 6)), rng.normal(size=(300, 6)) * 10.0 ** rng.uniform(-1, 2.5, (300, 1))


def test_tensions_are_within_their_ranges_and_give_the_motion(cables, motions):
    found = cables.inverse(*motions)
    assert set(found.status) == {Status.CONVERGED, Status.EFFORT_LIMIT}
    assert (found.ok.sum() > 100) & (~found.ok).any()
    assert found.effort[found.ok].min() >= LEAST
    assert found.effort[found.ok].max() <= MOST
    assert np.isnan(found.effort[~found.ok]).all()
    back = cables.direct(motions[0][found.ok], motions[1][found.ok], found.effort[found.ok])
    np.testing.assert_allclose(back.acceleration, motions[2][found.ok], atol=1e-9 * np.abs(motions[2]).max())


def test_effort_limit_is_said_where_no_tensions_do_it(cables, motions):
    """A linear programme is the judge of whether there are any."""
    found = cables.inverse(*motions)
    free = cables.inverse(*motions, distribution=Distribution())
    K = cables.kinematics.at(motions[0]).motion_jacobian
    for k in range(len(K)):
        programme = scipy.optimize.linprog(
            np.zeros(8), A_eq=K[k].T, b_eq=K[k].T @ free.effort[k], bounds=[(LEAST, MOST)] * 8, method="highs"
        )
        assert found.ok[k] == programme.success


def test_least_squares_where_they_are_asked_for(cables, motions):
    free = cables.inverse(*motions, distribution=Distribution())
    assert free.ok.all()
    assert free.effort.max() > 0.0  # cables that push
    for effort, K in zip(free.effort, cables.kinematics.at(motions[0]).motion_jacobian, strict=True):
        least = np.linalg.lstsq(K.T, K.T @ effort, rcond=None)[0]
        np.testing.assert_allclose(effort, least, atol=1e-9 * np.abs(effort).max())


def test_all_calls_answer_the_same(cables, motions):
    """What rests, one pose or many, forces in the joints; and as the controllers share what their laws ask for."""
    k, home = cables.kinematics, cables.kinematics.home
    still = np.zeros(6)
    held = cables.gravity(home)
    assert held.ok
    assert held.effort.max() <= MOST
    lean = np.zeros(8)
    assert cables.lean_inverse()(np.concatenate([home, np.zeros(18)]), lean) == Status.CONVERGED
    shared = Sharing(*cables.mechanism.effort_range, 6, k.characteristic_length).share(
        k.at(home).forward_jacobian, lean
    )
    for effort in (
        cables.inverse(home).effort,
        cables.inverse(home, still, still).effort,
        cables.inverse(home[None]).effort[0],
        cables.inverse(cables.kinematics.at(home, mode=0)).effort,
        cables.reactions(home).effort,
        shared,
    ):
        np.testing.assert_allclose(effort, held.effort, atol=1e-8)
    found, single = cables.inverse(*motions), cables.inverse(*(part[0] for part in motions))
    np.testing.assert_allclose(single.effort, found.effort[0], atol=1e-8)


@pytest.mark.parametrize("name", ["delta", "gough_stewart_7", "planar_redundant"])
def test_drives_that_push_and_pull_are_as_before(name):
    dynamics = Dynamics(load_mechanism(name))
    pose, rng = dynamics.kinematics.home, np.random.default_rng(2)
    wrench = 1e6 * rng.normal(size=6)  # beyond any limit
    found = dynamics.inverse(pose, wrench=wrench)
    assert found.ok
    K = dynamics.kinematics.at(pose).motion_jacobian
    least = np.linalg.lstsq(K.T, K.T @ found.effort, rcond=None)[0]
    np.testing.assert_allclose(found.effort, least, atol=1e-9 * np.abs(found.effort).max())
