# SPDX-License-Identifier: Apache-2.0
"""The lumped-rod model: what it recognises, what it keeps, and how far from the full model it is."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from test.oracles.lumped_rods import NoRodsError, find_rods, lumped, lumping_error, with_point


def mass_of(mechanism) -> float:
    return sum(link.inertial.mass for link in mechanism.links)


def test_delta_has_six_rods_with_their_ends():
    rods = find_rods(load_mechanism("delta"))
    assert [rod.links for rod in rods] == [(f"limb{k}_{side}_rod",) for k in (1, 2, 3) for side in "ab"]
    for rod in rods:
        assert rod.mass == 0.525
        assert rod.inner.link == rod.links[0].replace("_a_rod", "_pin").replace("_b_rod", "_pin")
        assert rod.outer.link == "platform"
        assert abs(rod.inner.point[1]) == pytest.approx(0.05)
        assert np.hypot(*rod.outer.point[:2]) == pytest.approx(np.hypot(0.125, 0.05))


@pytest.mark.parametrize(
    ("name", "count"), [("hexa", 6), ("hexaglide", 6), ("linear_delta", 6), ("quattro", 8), ("h4", 8)]
)
def test_rods_of_other_robots(name, count):
    mechanism = load_mechanism(name)
    assert len(find_rods(mechanism)) == count
    assert mass_of(lumped(mechanism)) == pytest.approx(mass_of(mechanism), rel=1e-12)


@pytest.mark.parametrize("name", ["gough_stewart", "five_bar", "planar_3rrr", "agile_eye"])
def test_robots_without_rods_are_told(name):
    """A leg of two bodies, or one between pins, is not a rod."""
    with pytest.raises(NoRodsError, match=name):
        lumped(load_mechanism(name))


def test_every_robot_is_either_simplified_or_told():
    for name in robot_names():
        mechanism = load_mechanism(name)
        if not find_rods(mechanism):
            with pytest.raises(NoRodsError):
                lumped(mechanism)


def test_lumped_delta_is_the_papers_model():
    """Codourey and Burdet, equation 45: tau = g_i m r_x + I qdd + J^T m_n (xdd - G); here with rotors."""
    simple = Dynamics(lumped(load_mechanism("delta")), friction=False)
    motions = random_motions(simple.kinematics, 50, seed=2)
    found = simple.inverse(motions.pose, motions.twist, motions.acceleration).effort
    motion = simple.kinematics.motion(motions.pose, motions.twist, motions.acceleration)
    J = simple.kinematics.at(motions.pose).forward_jacobian[:, :3]
    rod, platform = 0.525, 2.916 + 6 * 0.525 / 3
    elbow = 2 * rod * 2 / 3
    inertia = 0.208218 + 0.42**2 * elbow + 55**2 * 2.07e-4
    moment = 3.47 * 0.17224 + 0.226 * 0.42 + 0.42 * elbow
    g = np.array([0.0, 0.0, -9.81])
    # the arm's angle is positive downwards, so its weight helps it
    wanted = inertia * motion.actuated_accelerations - 9.81 * moment * np.cos(motion.actuated)
    wanted += platform * np.einsum("kij,ki->kj", J, motions.acceleration[:, :3] - g)
    assert np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()


def test_error_against_the_full_delta_is_small_and_not_zero():
    """ "Not too much loss": some percent of the efforts. At rest the rods' weights are only moved along the rods."""
    full = Dynamics(load_mechanism("delta"))
    error = lumping_error(full, Dynamics(lumped(full.mechanism)))
    assert error.relative.max() < 0.10
    assert error.relative.min() > 1e-4
    assert (error.largest >= error.rms).all()


def test_equal_shares_are_exact_at_rest():
    """Half the mass at each end of a uniform rod has the rod's own centre of mass: weights are then exact."""
    full = Dynamics(load_mechanism("delta"))
    half = Dynamics(lumped(full.mechanism, 0.5))
    poses = random_motions(full.kinematics, 20, seed=3).pose
    wanted = full.gravity(poses).effort
    assert np.abs(half.gravity(poses).effort - wanted).max() <= 1e-10 * np.abs(wanted).max()
    third = Dynamics(lumped(full.mechanism)).gravity(poses).effort
    assert np.abs(third - wanted).max() > 1e-3 * np.abs(wanted).max()


def test_point_mass_on_a_body():
    body = with_point(Inertial(2.0, np.array([1.0, 0.0, 0.0]), np.eye(3)), 2.0, np.array([-1.0, 0.0, 0.0]))
    assert body.mass == 4.0
    assert np.abs(body.com).max() == 0.0
    assert np.diagonal(body.inertia) == pytest.approx([1.0, 5.0, 5.0])
