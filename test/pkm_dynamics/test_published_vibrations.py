# SPDX-License-Identifier: Apache-2.0
"""Natural frequencies: the published 2-RPR robot, and robots that swing as they should by their direct dynamics."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_dynamics.natural_frequencies import StiffnessError, natural_frequencies
from pkm_kinematics.kernels.compiled_rotations import displace
from test.oracles.other_inertials import with_inertials

STIFFNESS = 4e4  # N/m


@pytest.fixture(scope="module")
def massless_legs():
    """2-RPR: a point of 1 kg on two legs without mass."""
    mechanism = load_mechanism("two_rpr")
    legs = [link.name for link in mechanism.links if link.name.startswith("limb") and not link.inertial.massless]
    assert len(legs) == 4
    return Dynamics(with_inertials(mechanism, dict.fromkeys(legs, Inertial())))


@pytest.mark.parametrize("point", [(0.3, 0.5), (0.1, 0.35), (0.55, 0.2), (0.2, 0.05)])
def test_two_rpr(massless_legs, point):
    """Kozak et al. 2002: omega^2 = k/m (1 -+ |cos gamma|), gamma the angle between the legs."""
    pose = np.array([*point, 0.0, 0.0, 0.0, 0.0, 1.0])
    legs = np.array(point) - np.array([[0.0, 0.0], [0.6, 0.0]])
    cosine = abs(legs[0] @ legs[1]) / np.prod(np.linalg.norm(legs, axis=1))
    found = natural_frequencies(massless_legs, pose, STIFFNESS)
    assert found.frequency**2 == pytest.approx(STIFFNESS * np.array([1.0 - cosine, 1.0 + cosine]), rel=1e-9)


def test_zero_where_the_actuators_lose_hold(massless_legs):
    """On the line through both base joints the point is free to leave it: rounding of omega^2 is 1e-16 of k/m."""
    found = natural_frequencies(massless_legs, [0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], STIFFNESS)
    assert found.frequency[0] < 1e-7 * np.sqrt(STIFFNESS)
    assert found.frequency[1] == pytest.approx(np.sqrt(2.0 * STIFFNESS), rel=1e-12)
    assert np.abs(found.shape[:3, 0]) == pytest.approx([0.0, 1.0, 0.0], abs=1e-9)


def test_legs_with_mass_swing_slower(massless_legs):
    full = Dynamics(load_mechanism("two_rpr"))
    pose = full.kinematics.home
    slow, fast = (natural_frequencies(d, pose, STIFFNESS).frequency for d in (full, massless_legs))
    assert (slow < 0.9 * fast).all()


@pytest.mark.parametrize("name", ["delta", "gough_stewart_7", "five_bar", "quattro", "tripod_3prs", "orthoglide"])
def test_small_swings_are_harmonic(name):
    """Pushed along its shape and held by springs only, the platform is driven back by omega^2 per displacement.

    Without gravity; central differences of 1e-5 along the shape: error some 1e-8 from curvature, 1e-9 from rounding.
    """
    text = re.sub(r'(<pkm [^>]*?) gravity="[^"]*"', r"\1", load_mechanism(name).urdf)
    dynamics = Dynamics(load_mechanism(text.replace("<pkm ", '<pkm gravity="0 0 0" ', 1)), friction=False)
    assert not np.any(dynamics.mechanism.gravity)
    k = dynamics.kinematics
    pose = random_motions(k, 1, seed=7).pose[0] if k.constant_space else k.home
    stiffness = np.linspace(1e3, 3e3, len(k.actuated_names))
    q = k.inverse(pose)
    found = natural_frequencies(dynamics, dynamics.kinematics.at(pose, seed=q.joints), stiffness)
    h = 1e-5 / np.abs(found.shape).max(axis=0)
    for omega, shape, step in zip(found.frequency, found.shape.T, h, strict=True):
        swung = []
        for sign in (1.0, -1.0):
            # along a shape that turns with the pose: the actuated joints decide, the rest of the pose follows
            moved = displace(np.array(pose), sign * step * shape)
            if not k.constant_space:
                rates = k.at(pose, q.joints).inverse_jacobian @ shape
                moved = k.forward(q.actuated + sign * step * rates, near=moved).pose
            at = k.inverse(moved, seed=q.joints)
            effort = -stiffness * (at.actuated - q.actuated)
            swung.append(
                dynamics.direct(dynamics.kinematics.at(moved, seed=at.joints), np.zeros(6), effort).acceleration
            )
        second = (swung[0] - swung[1]) / (2.0 * step)
        assert second == pytest.approx(-(omega**2) * shape, abs=1e-6 * max(omega**2, 1.0) * np.abs(shape).max())


def test_shapes_are_normal_to_each_other(delta):
    found = natural_frequencies(delta.dynamics, delta.kinematics.home, 1e4)
    S = delta.kinematics.subspace(delta.kinematics.home)
    shapes = np.linalg.pinv(S) @ found.shape
    M = delta.dynamics.mass_matrix(delta.kinematics.home)
    assert shapes.T @ M @ shapes == pytest.approx(np.eye(3), abs=1e-9)
    # all that an equal stiffness does is to scale; a payload slows down
    assert natural_frequencies(delta.dynamics, delta.kinematics.home, 4e4).frequency == pytest.approx(
        2 * found.frequency
    )
    load = Inertial(2.0, np.zeros(3), 1e-3 * np.eye(3))
    assert (natural_frequencies(delta.dynamics, delta.kinematics.home, 1e4, load).frequency < found.frequency).all()


def test_what_cannot_swing(delta):
    with pytest.raises(StiffnessError, match="not negative"):
        natural_frequencies(delta.dynamics, delta.kinematics.home, [1.0, -1.0, 1.0])
    with pytest.raises(StiffnessError, match="no vibrations"):
        natural_frequencies(delta.dynamics, delta.kinematics.home + np.array([0, 0, -5.0, 0, 0, 0, 0]), 1.0)
