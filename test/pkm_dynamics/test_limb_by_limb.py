# SPDX-License-Identifier: Apache-2.0
"""The sum over the limbs is the whole: wrenches, Jacobians and efforts of limbs that know nothing of each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.kernels.wrenches import limb_wrenches, platform_wrench, project
from pkm_dynamics.linear_form.random_motions import NoMotionError, random_motions
from pkm_kinematics import Status
from pkm_kinematics.kernels.rates.motion import solve_motion
from test.oracles.limb_by_limb import LimbByLimb

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

ROUNDING = 1e-14  # of the largest sum of absolute values: the same additions in another order
WRENCH = np.array([3.0, -2.0, 1.0, 0.1, 0.2, -0.3])


def whole_wrench(dynamics, motion, joints):
    """The platform's wrench (6,) of the whole robot in one pass."""
    model, data = dynamics.model(), dynamics.kinematics.engine.data(joints)
    state = data.state
    assert solve_motion(model, data, -1, motion) == Status.CONVERGED
    limb_wrenches(model.bodies, state)
    platform_wrench(model.bodies, state, motion[19:])
    project(model, data)
    return np.concatenate([state[1]["force"], state[1]["torque"]])


@pytest.mark.by_day("agile_eye", "delta", "gough_stewart", "planar_redundant")
@pytest.mark.parametrize("name", robot_names())
def test_the_sum_is_the_whole(name, of_gallery):
    kinematics = of_gallery[name].kinematics
    dynamics = Dynamics(kinematics)
    parts = LimbByLimb(dynamics)
    assert len(parts) == len(kinematics.tables.limbs)
    try:
        motions = random_motions(kinematics, 10, seed=4)
    except NoMotionError:
        assert parts.inverse(kinematics.home).status == dynamics.inverse(kinematics.home, distribution=FREE).status
        return
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        whole = dynamics.inverse(pose, twist, acceleration, WRENCH, distribution=FREE)
        found = parts.inverse(pose, twist, acceleration, WRENCH)
        assert found.status == whole.status == Status.CONVERGED
        assert np.abs(found.effort - whole.effort).max() <= 1e-12 * np.abs(whole.effort).max()
        motion = np.concatenate([pose, twist, acceleration, WRENCH])
        total = np.zeros(6)
        rest = parts.lean_rest(kinematics.subspace(pose))
        rest(motion, parts._jacobian, parts._wrenches, total, np.zeros(len(whole.effort)))
        together = whole_wrench(dynamics, motion, kinematics.inverse(pose).joints)
        size = np.abs(parts._wrenches).sum() + np.abs(total).max()
        assert np.abs(total - together).max() <= ROUNDING * size


def test_a_limb_needs_no_other(of_gallery):
    """The first limb of a Delta alone weighs what it does with arms and rods of the others a hundred times as heavy."""
    kinematics = of_gallery["delta"].kinematics
    motion = np.concatenate([kinematics.home, np.zeros(18)])
    found = []
    for factor in (1.0, 100.0):
        parts = LimbByLimb(Dynamics(kinematics))
        for limb in parts._limbs[1:]:
            limb.bodies.setflags(write=True)
            limb.bodies["mass"] *= factor
        out, J = np.zeros(6), np.zeros((3, 6))
        assert parts.lean_shares()[0](motion, J, out) == Status.CONVERGED
        assert (J[1:] == 0.0).all()
        found.append(out)
    assert (found[0] == found[1]).all()
    assert np.abs(found[0]).max() > 1.0


def test_threads_give_the_same_bits(of_gallery):
    with ThreadPoolExecutor(2) as pool:
        for name in ("delta", "gough_stewart", "irsbot2", "tripod_3prs"):
            parts = LimbByLimb(of_gallery[name].dynamics)
            some = random_motions(parts.kinematics, 5, seed=6)
            for motion in zip(some.pose, some.twist, some.acceleration, strict=True):
                assert (parts.inverse(*motion, pool=pool).effort == parts.inverse(*motion).effort).all()


def test_statuses(delta):
    parts = LimbByLimb(delta.dynamics)
    away = delta.kinematics.home + np.array([0, 0, -5.0, 0, 0, 0, 0])
    assert parts.inverse(away).status == Status.UNREACHABLE
    assert np.isnan(parts.inverse(away).effort).all()
    assert parts.inverse(delta.kinematics.home, [0, 0, 0, 1.0, 0, 0]).status == Status.INVALID_INPUT
