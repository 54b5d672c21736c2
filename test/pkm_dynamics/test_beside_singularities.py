# SPDX-License-Identifier: Apache-2.0
"""Efforts at and beside singularities of type 2: those that are CONVERGED give the motion, the others say SINGULAR.

The judge is the direct dynamics, which has its own matrix and its own solution, and knows nothing of the drives' rank.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.optimize

from pkm_description import load_mechanism
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.distribution import Sharing, distribute
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import shift_pose

ROBOTS = ["five_bar", "planar_3rrr", "planar_redundant", "gough_stewart", "gough_stewart_7", "cable_8"]


def moved(k, at, step):
    """The pose (7,) a step (mobility,) in the motion space away."""
    pose = np.empty(7)
    shift_pose(np.array(at), k.task.subspace @ step, 1.0, pose)
    return pose


def uniform_jacobian(k, pose):
    """K (m, n) with rotations at the characteristic length, judged here by NumPy."""
    speed = np.linalg.norm(k.task.subspace * np.repeat((1.0, k.characteristic_length), 3)[:, None], axis=0)
    return k.at(pose).motion_jacobian / speed


@cache
def singular_pose(name):
    """A robot, a pose at which its drives leave a motion free, and that motion (6,): K v = 0 by Newton's method."""
    dynamics = Dynamics(load_mechanism(name), friction=False)
    k = dynamics.kinematics
    n, size = k.mobility, k.engine.size
    per = np.where(np.abs(k.task.subspace[:3]).max(axis=0) > 0.0, size, 1.0)

    def equations(x):
        K = uniform_jacobian(k, moved(k, k.home, per * x[:n]))
        K = np.nan_to_num(K, nan=10.0)
        return np.append(K @ x[n:] / np.linalg.norm(K), 0.5 * (x[n:] @ x[n:] - 1.0))

    rng = np.random.default_rng(1)
    for _ in range(100):
        v = rng.normal(size=n)
        start = np.append(rng.uniform(-0.4, 0.4, n), v / np.linalg.norm(v))
        found = scipy.optimize.least_squares(equations, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=100)
        pose = moved(k, k.home, per * found.x[:n])
        if np.abs(found.fun).max() < 1e-12 and np.isfinite(k.at(pose).motion_jacobian).all():
            return dynamics, pose, per
    raise AssertionError(f"no singular pose of {name} found")


def motions(dynamics, rng, poses):
    S = dynamics.kinematics.task.subspace
    return tuple(rng.normal(size=(len(poses), S.shape[1])) @ S.T for _ in range(2))


@pytest.mark.parametrize("name", ROBOTS)
def test_efforts_that_converge_give_the_motion(name):
    dynamics, pose, per = singular_pose(name)
    k, rng = dynamics.kinematics, np.random.default_rng(2)
    n = k.mobility
    steps = rng.normal(size=(600, n)) * 10.0 ** rng.uniform(-16.0, -2.0, (600, 1)) * per
    poses = np.array([pose, *(moved(k, pose, step) for step in steps)])
    twist, acceleration = motions(dynamics, rng, poses)
    found = dynamics.inverse(poses, twist, acceleration, distribution=Distribution())
    known = np.isfinite(k.at(poses).motion_jacobian).all(axis=(1, 2))
    assert known.sum() > 500
    condition = 1.0 / np.array([np.linalg.cond(uniform_jacobian(k, p)) for p in poses[known]])
    # exactly the poses that NumPy's singular values find singular, but for the factor between the two norms
    assert (found.status[known][condition < 1e-8] == Status.SINGULAR).all()
    assert (found.status[known][condition > 1e-7] == Status.CONVERGED).all()
    assert (condition < 1e-8).any()
    assert (condition > 1e-7).any()
    assert (found.condition[known] > 0.99 * condition - 1e-14).all()  # NumPy's singular values are rounded, too
    assert (found.condition[known] < 1.01 * n * condition + 1e-14).all()
    assert np.isnan(found.effort[~found.ok]).all()
    back = dynamics.direct(poses[found.ok], twist[found.ok], found.effort[found.ok])
    assert back.ok.all()
    missed = np.linalg.norm(back.acceleration - acceleration[found.ok], axis=1)
    size = np.linalg.norm(acceleration[found.ok], axis=1) + np.linalg.norm(k.mechanism.gravity)
    assert (missed / size < 1e-13 / found.condition[found.ok]).all()  # rounding over the condition


@pytest.mark.parametrize("name", ROBOTS)
def test_lean_calls_say_so_too(name):
    """And their machine code, which is recorded where the robot is regular."""
    dynamics, pose, per = singular_pose(name)
    k, rng = dynamics.kinematics, np.random.default_rng(3)
    steps = rng.normal(size=(100, k.mobility)) * 10.0 ** rng.uniform(-16.0, -2.0, (100, 1)) * per
    poses = np.array([pose, *(moved(k, pose, step) for step in steps)])
    call, effort = dynamics.lean_inverse(), np.zeros(len(k.actuated_names))
    expected = dynamics.inverse(dynamics.kinematics.at(poses, mode=0), distribution=Distribution())
    for p, status in zip(poses, expected.status, strict=True):
        motion = np.zeros(25)
        motion[:7] = p
        assert call(motion, effort) == status


@pytest.mark.parametrize("name", ROBOTS)
def test_the_mass_matrix_is_regular_there(name):
    """It is that of the bodies, whatever the drives are: as beside the singularity, by the accelerations of efforts."""
    dynamics, pose, _ = singular_pose(name)
    k = dynamics.kinematics
    M = dynamics.mass_matrix(pose)
    assert np.isfinite(M).all()
    np.testing.assert_allclose(M, M.T, atol=1e-12 * np.abs(M).max())
    assert np.linalg.eigvalsh(M)[0] > 0.0
    S = k.task.subspace
    K = k.at(pose).motion_jacobian
    at_rest = dynamics.direct(pose, np.zeros(6), np.zeros(len(K))).acceleration
    for a in range(len(K)):
        pushed = dynamics.direct(pose, np.zeros(6), np.eye(len(K))[a]).acceleration - at_rest
        force = M @ np.linalg.lstsq(S, pushed, rcond=None)[0]
        np.testing.assert_allclose(force, K[a], atol=1e-10 * np.abs(K[a]).max())
    assert np.isfinite(dynamics.coriolis(pose, S @ np.ones(k.mobility))).all()


@pytest.mark.parametrize("name", ["planar_redundant", "gough_stewart_7", "cable_8"])
def test_what_is_shared_at_a_singularity_is_singular_too(name):
    dynamics, pose, _ = singular_pose(name)
    for bounds in (None, (-1e6, 1e6), (-1e-3, 1e-3)):
        assert dynamics.inverse(pose, distribution=Distribution(bounds=bounds)).status == Status.SINGULAR


def test_a_failed_rank_is_no_limit_of_efforts():
    """Random Jacobians of three degrees of freedom and four drives, of rank two: the efforts are not determined."""
    rng = np.random.default_rng(4)
    K = rng.normal(size=(300, 4, 2)) @ rng.normal(size=(300, 2, 3))
    efforts, status = rng.normal(size=(300, 4)), np.zeros(300, dtype=np.int64)
    limits = np.full(4, -100.0), np.full(4, 100.0)
    distribute(Distribution(bounds=limits), "abcd", limits, K, efforts, status)
    assert (status == Status.SINGULAR).all()
    assert np.isnan(efforts).all()


def test_sharing_is_short_where_the_rank_fails():
    rng = np.random.default_rng(5)
    sharing = Sharing(np.full(8, -600.0), np.full(8, -20.0), 6, 1.0)
    for _ in range(300):
        sharing.share(rng.normal(size=(6, 5)) @ rng.normal(size=(5, 8)), rng.uniform(-600.0, -20.0, 8))
        assert sharing.short
