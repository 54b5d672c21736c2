# SPDX-License-Identifier: Apache-2.0
"""Accelerations where the motion space turns with the pose: what cannot be is refused, what nearly can is taken."""

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics, Status

ROBOTS = ("tripod_3prs", "tricept", "carpal_wrist", "capaman", "spatial_4dof_5legs")


@pytest.fixture(scope="module", params=ROBOTS)
def moving(request):
    """A robot, a pose off home, and a twist that it can have there."""
    k = Kinematics(load_mechanism(request.param))
    rng = np.random.default_rng(3)
    target = np.array(k.home)
    target[:3] += 0.02 * k.characteristic_length * rng.normal(size=3)
    pose = k.nearest(target).pose
    S = np.asarray(k.subspace(pose))
    twist = S @ (0.3 * rng.normal(size=S.shape[1]))
    return k, Dynamics(k, friction=False), pose, twist, S


def test_direct_dynamics_gives_back_what_inverse_dynamics_was_asked_for(moving):
    _, d, pose, twist, S = moving
    free = d.direct(pose, twist, d.gravity(pose).effort).acceleration
    asked = free + S @ np.full(S.shape[1], 0.2)
    effort = d.inverse(pose, twist, asked)
    assert effort.status == Status.CONVERGED
    found = d.direct(pose, twist, effort.effort).acceleration
    np.testing.assert_allclose(found, asked, atol=1e-7 * (1.0 + np.abs(asked).max()))  # the bias is of differences


def test_without_an_acceleration_the_velocity_in_the_motion_space_is_constant(moving):
    k, d, pose, twist, _ = moving
    found = d.direct(pose, twist, d.inverse(pose, twist).effort).acceleration
    bias = k.engine.spaces.at(pose[None], k.modes.choose(pose[None], None, None), twist[None])[1][0]
    np.testing.assert_allclose(found, bias, atol=1e-7 * (1.0 + np.abs(bias).max()))


def test_what_the_platform_cannot_have_is_refused_everywhere(moving):
    k, d, pose, twist, S = moving
    scale = k.engine.spaces.rate_scale
    normal = np.linalg.svd((S * scale[:, None]).T)[2][-1] / scale  # square to the space
    free = np.asarray(d.direct(pose, twist, d.gravity(pose).effort).acceleration)
    size = 1.0 + np.linalg.norm(free * scale)
    astray, nearly = free + 3.0 * size * normal, free + 0.01 * normal
    assert d.inverse(pose, twist, astray).status == Status.INVALID_INPUT
    assert d.reactions(pose, twist, astray).status == Status.INVALID_INPUT
    refused = k.motion(pose, twist, astray)
    assert refused.status == Status.INVALID_INPUT
    assert np.isnan(refused.accelerations).all()
    near, mended = k.motion(pose, twist, free), k.motion(pose, twist, nearly)
    assert near.ok
    assert mended.ok
    np.testing.assert_allclose(mended.accelerations, near.accelerations, rtol=1e-7, atol=1e-7)
    exact, taken = d.inverse(pose, twist, free), d.inverse(pose, twist, nearly)
    assert taken.status == Status.CONVERGED
    np.testing.assert_allclose(taken.effort, exact.effort, rtol=1e-7, atol=1e-7)


def test_what_is_impossible_at_rest():
    k = Kinematics(load_mechanism("tripod_3prs"))
    d = Dynamics(k, friction=False)
    assert d.inverse(k.home, None, [1, 0, 0, 0, 0, 0]).status == Status.INVALID_INPUT
    assert d.inverse(k.home, None, [0, 0, 0, 0, 0, 5]).status == Status.INVALID_INPUT
    assert d.inverse(k.home, None, [0, 0, 1, 0, 0, 0]).status == Status.CONVERGED
    for impossible in ([1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 5]):
        assert k.motion(k.home, np.zeros(6), impossible).status == Status.INVALID_INPUT
    assert k.motion(k.home, np.zeros(6), [0, 0, 1, 0, 0, 0]).status == Status.CONVERGED


def test_joints_accelerate_as_their_velocities_change_while_the_velocity_in_the_space_is_constant(moving):
    """Motion without an acceleration is that which direct dynamics has under efforts that keep the velocity."""
    k, d, pose, twist, _ = moving
    free = d.direct(pose, twist, d.inverse(pose, twist).effort).acceleration
    np.testing.assert_allclose(
        k.motion(pose, twist).accelerations, k.motion(pose, twist, free).accelerations, rtol=1e-6, atol=1e-6
    )
