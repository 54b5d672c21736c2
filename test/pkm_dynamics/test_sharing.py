# SPDX-License-Identifier: Apache-2.0
"""Efforts of redundant actuators within bounds, in some microseconds: judged by SciPy, on the cable robot."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.optimize
from numba import njit

from pkm_dynamics import Distribution
from pkm_dynamics.distribution import Sharing
from pkm_dynamics.kernels.sharing import SHARED, room, share_within

LOWER, UPPER = np.full(8, -600.0), np.full(8, -20.0)  # of the efforts of eight cables, N


@njit
def _share_all(jacobians, rank, lower, upper, efforts, status, scratch):
    for k in range(len(efforts)):
        status[k] = share_within(jacobians[k % len(jacobians)], rank, lower, upper, efforts[k], scratch)


def share_all(jacobians, efforts):
    """The efforts (n, 8) shared, each with one of the Jacobians (k, 6, 8) in turn, and their statuses."""
    shared, status = efforts.copy(), np.zeros(len(efforts), dtype=np.int64)
    _share_all(jacobians, 6, LOWER, UPPER, shared, status, np.zeros(room(8, 6)))
    return shared, status


def null_spaces(jacobians):
    return np.swapaxes(np.linalg.svd(jacobians)[2][:, 6:], 1, 2)


@pytest.fixture(scope="module")
def cables(of_gallery):
    """Forward Jacobians of the cable robot at random poses (k, 6, 8)."""
    k = of_gallery["cable_8"].kinematics
    rng = np.random.default_rng(3)
    coordinates = rng.uniform(-1.0, 1.0, (1000, 6)) * (0.6, 0.6, 0.4, 0.3, 0.2, 0.2)
    poses = k.engine.inputs.poses(coordinates)[0]
    found = np.asarray(k.at(poses).forward_jacobian)
    return np.ascontiguousarray(found[np.isfinite(found).all(axis=(1, 2))])


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_no_bound_is_broken_in_feasible_wrenches(cables, rounds):
    """A hundred thousand of them, at night a million."""
    rng = np.random.default_rng(4)
    N = null_spaces(cables)
    which = np.arange(100_000) % len(cables)
    for _ in range(rounds):
        allowed = rng.uniform(LOWER, UPPER, (100_000, 8))
        asked = allowed + np.einsum("kij,kj->ki", N[which], rng.normal(0.0, 400.0, (100_000, 2)))
        shared, status = share_all(cables, asked)
        assert (status == SHARED).all()
        assert (shared >= LOWER).all()
        assert (shared <= UPPER).all()
        missed = np.einsum("kij,kj->ki", cables[which], shared - asked)
        assert np.abs(missed).max() < 1e-8 * 600.0 * np.abs(cables).max()
        assert (np.linalg.norm(shared, axis=1) <= np.linalg.norm(allowed, axis=1) * (1.0 + 1e-9)).all()


def least(N, effort):
    """The same by Lawson and Hanson's method: the least |effort + N z| within the bounds, None where there is none."""
    c = N.T @ effort
    rows, rest = N, effort - N @ c
    G, h = np.vstack([rows, -rows]), np.concatenate([LOWER - rest, rest - UPPER])
    E, target = np.vstack([G.T, h]), np.array([0.0, 0.0, 1.0])
    left = target - E @ scipy.optimize.nnls(E, target)[0]
    return rest + N @ (-left[:2] / left[2]) if left[2] > 1e-16 else None


def test_it_is_what_another_method_finds(cables):
    rng = np.random.default_rng(5)
    J, N = cables[:300], null_spaces(cables[:300])
    allowed = rng.uniform(LOWER, UPPER, (300, 8))
    shared, _ = share_all(J, allowed)
    for k in range(300):
        np.testing.assert_allclose(shared[k], least(N[k], allowed[k]), atol=1e-6)


def test_it_knows_where_there_is_none(cables):
    rng = np.random.default_rng(6)
    J, N = cables[:400], null_spaces(cables[:400])
    asked = rng.uniform(-700.0, 250.0, (400, 8))
    _, status = share_all(J, asked)
    there = []
    for k in range(400):
        room = np.concatenate([UPPER - asked[k], asked[k] - LOWER])
        found = scipy.optimize.linprog(np.zeros(2), np.vstack([N[k], -N[k]]), room, bounds=(None, None))
        there.append(found.success)
    assert 20 < np.sum(there) < 380
    np.testing.assert_array_equal(status == SHARED, there)


def test_it_is_continuous_along_a_path(of_gallery):
    """Half the distance, half the largest step: no jumps. At most 0.5 N per mm, on a path across the frame."""
    robot = of_gallery["cable_8"]
    sharing = Sharing(LOWER, UPPER, 6, robot.kinematics.characteristic_length)

    def largest_step(n):
        way = np.linspace(0.0, 1.0, n)[:, None]
        turn = np.concatenate([0.8 * way - 0.4, 0.6 * way - 0.3, 0.3 - 0.5 * way, 0.2 * way, 0.0 * way, -0.1 * way], 1)
        poses = robot.kinematics.engine.inputs.poses(turn)[0]
        J = np.asarray(robot.kinematics.at(poses).forward_jacobian)
        plain = robot.dynamics.inverse(poses, distribution=Distribution()).effort
        shared = np.array([sharing.share(J[i], plain[i]) for i in range(n)])
        assert (shared <= -20.0).all()
        assert not sharing.short
        bound = np.isclose(shared, -20.0)
        assert (bound[1:] != bound[:-1]).any()  # cables come to their bounds, and leave them
        return float(np.abs(np.diff(shared, axis=0)).max())

    coarse, fine = largest_step(1001), largest_step(2001)
    assert fine < 0.55 * coarse
    length = float(np.linalg.norm((0.8, 0.6, 0.5))) * 1e3
    assert fine * 2000.0 / length < 0.5


def test_it_takes_less_than_twenty_microseconds(cables):
    sharing, rng = Sharing(LOWER, UPPER, 6, 1.0), np.random.default_rng(7)
    asked = rng.uniform(LOWER, UPPER, (200, 8))
    took = []
    for _ in range(20):
        began = time.thread_time()  # of this thread alone, whatever else the computer does
        for k in range(200):
            sharing.share(cables[k], asked[k])
        took.append((time.thread_time() - began) / 200)
    assert min(took) < 20e-6


@pytest.mark.parametrize("seed", [8, 1008])
def test_where_bounds_leave_none_the_work_is_missed_least(cables, seed):
    rng = np.random.default_rng(seed)
    sharing = Sharing(LOWER, UPPER, 6, 1.0)
    found = 0
    for k in range(200):
        asked = rng.uniform(-700.0, 700.0, 8)
        shared = sharing.share(cables[k], asked)
        if not sharing.short:
            continue
        found += 1
        assert not sharing.outside(shared).any()
        rows = np.linalg.svd(cables[k], full_matrices=False)[2]
        best = scipy.optimize.lsq_linear(rows, rows @ asked, (LOWER, UPPER), method="bvls", tol=1e-14).x
        missed, least_missed = (np.linalg.norm(rows @ (x - asked)) for x in (shared, best))
        assert missed <= least_missed + 1e-5
        assert missed < np.linalg.norm(rows @ (np.clip(asked, LOWER, UPPER) - asked)) + 1e-9
    assert found > 50


@pytest.mark.parametrize("name", ["planar_redundant", "gough_stewart_7", "cable_8", "delta", "quattro"])
def test_library_and_loop_share_alike(of_gallery, name):
    """The library with norm 2 and bounds answers what controllers apply; without redundancy nothing is shared."""
    robot = of_gallery[name]
    k, home = robot.kinematics, robot.kinematics.home
    plain = np.asarray(robot.dynamics.inverse(home, distribution=Distribution()).effort)
    J = np.asarray(k.at(home).forward_jacobian)
    size = np.abs(plain).max()
    lower, upper = np.full(len(plain), -0.95 * size), np.full(len(plain), size)
    if name == "cable_8":
        lower, upper = LOWER, UPPER
    sharing = Sharing(lower, upper, k.mobility, k.characteristic_length)
    answer = robot.dynamics.inverse(home, distribution=Distribution(bounds=(lower, upper)))
    shared = sharing.share(J, plain)
    assert sharing.short == (not answer.ok)
    if answer.ok:
        np.testing.assert_allclose(shared, answer.effort, atol=1e-9 * size)


def test_what_is_not_finite_is_not_shared(cables):
    sharing = Sharing(LOWER, UPPER, 6, 1.0)
    assert np.isnan(sharing.share(np.full((6, 8), np.nan), np.zeros(8))).all()
    assert np.isnan(sharing.share(cables[0], np.full(8, np.inf))).all()
