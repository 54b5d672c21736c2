# SPDX-License-Identifier: Apache-2.0
"""Margins from singularities of many poses in one call: those of each pose alone, and NumPy's."""

from __future__ import annotations

import time
from dataclasses import fields

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Distribution, Dynamics
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.rates.motion_space import RANK, limb_system
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes

ROBOTS = ["delta", "gough_stewart", "gough_stewart_7", "planar_mixed", "five_bar", "tripod_3prs", "h4", "agile_eye"]
NAMES = ("type1", "type2", "force_amplification", "determinant_sign", "constraint_hold")


def poses_of(k, n, reach=0.1):
    """Poses about home, of robots whose motion space is constant; of others home again and again."""
    rng, poses = np.random.default_rng(1), np.tile(k.home, (n, 1))
    if k.constant_space:
        for pose in poses:
            shift_pose(
                np.array(k.home), reach * k.engine.size * k.task.subspace @ rng.normal(size=k.mobility), 1.0, pose
            )
    return poses


@pytest.mark.parametrize("name", ROBOTS)
def test_each_pose_as_if_it_were_alone(name):
    k = Kinematics(load_mechanism(name))
    poses = poses_of(k, 60, 0.4)
    poses[7] = np.nan
    together = k.singularity(poses)
    known = np.isfinite(together.type2)
    assert known.any()
    assert not known[7]
    for i, pose in enumerate(poses):
        alone = k.singularity(pose)
        for field in fields(alone):
            a, b = np.asarray(getattr(together, field.name)), getattr(alone, field.name)
            np.testing.assert_allclose(a[i] if a.ndim else a, b, rtol=1e-9, atol=1e-14, err_msg=field.name)


def limb_constraints(model, data, length):
    """Of each limb W (k, 6): U^T G over `length`, where U spans the left null space of J in J qd + G V = 0."""
    for first, stop in model.limbs:
        blocks = model.blocks[first:stop]
        closures = (int(blocks["closure_start"][0]), int(blocks["closure_start"][-1] + blocks["closure_count"][-1]))
        n, m = int(blocks["count"].sum()), int(blocks["rows"].sum())
        J, G = np.zeros((m, n)), np.zeros((m, 6))
        limb_system(model, data, *closures, int(blocks["start"][0]), J, G)
        U, values, _ = np.linalg.svd(J) if n else (np.eye(m), np.zeros(0), None)
        rank = int(np.sum(values > RANK * max(values, default=0.0)))
        yield U[:, rank:].T @ G / scaling(length)


@pytest.mark.parametrize("name", ROBOTS)
def test_against_singular_values(name):
    """The hold of the limbs by NumPy, limb by limb; the drives' by the singular values of their Jacobian."""
    k = Kinematics(load_mechanism(name))
    poses, length = poses_of(k, 20), k.characteristic_length
    found = k.singularity(poses)
    blocked = 6 - k.mobility - k.mechanism.mobility.left_out
    choice = k.modes.choose(poses)
    for i in np.flatnonzero(closes(k.inverse(poses).status)):
        chosen = choice.rows([i])
        at = k.engine.placed(poses[i], chosen.seeds[0], chosen.branch)
        wrenches = [np.zeros((0, 6))]
        for W in limb_constraints(at.model, at.data, length):
            _, values, V = np.linalg.svd(W, full_matrices=False)
            wrenches.append(V[values > 1e-7])
        values = np.linalg.svd(np.vstack(wrenches), compute_uv=False)
        hold = values[blocked - 1] if blocked else np.inf
        assert found.constraint_hold[i] == pytest.approx(hold, abs=1e-12)
        S = k.subspace(poses[i])
        K = k.at(poses[i]).motion_jacobian / np.linalg.norm(S * np.repeat((1.0, length), 3)[:, None], axis=0)
        values = np.linalg.svd(K, compute_uv=False)
        assert found.type2[i] == pytest.approx(values[-1], rel=1e-9)
        assert found.type1[i] == pytest.approx(1.0 / values[0], rel=1e-9)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_condition_is_that_of_the_efforts(name):
    """One number, whether margins are asked for or efforts; some drives of `planar_mixed` slide and some turn."""
    dynamics = Dynamics(load_mechanism(name))
    poses = poses_of(dynamics.kinematics, 30)
    answer = dynamics.inverse(poses, distribution=Distribution())
    assert answer.ok.any()
    found = dynamics.kinematics.singularity(poses).condition
    np.testing.assert_allclose(found[answer.ok], answer.condition[answer.ok], rtol=1e-9)


def test_many_poses_are_one_call():
    """More than are looked at together, in a fraction of the time of as many calls."""
    k = Kinematics(load_mechanism("gough_stewart"))
    few = poses_of(k, 100, 0.02)
    poses = np.tile(few, (400, 1))
    began = time.thread_time()
    for pose in few:
        k.singularity(pose)
    each = (time.thread_time() - began) / len(few)
    began = time.process_time()
    found = k.singularity(poses)
    assert (time.process_time() - began) / len(poses) < 0.2 * each
    one = k.singularity(few)
    for name in (*NAMES, "limb_regularity", "condition"):
        np.testing.assert_array_equal(getattr(found, name).reshape(400, 100), np.tile(getattr(one, name), (400, 1)))
