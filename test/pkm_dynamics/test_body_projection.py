# SPDX-License-Identifier: Apache-2.0
"""The body-oriented form against the main formulation, and its Omega_i against Newton's and Euler's equations."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.linear_form.random_motions import NoMotionError, random_motions
from test.oracles.body_projection import BodyMotion, BodyProjection, NoMotionHereError

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

AGREE = 1e-10  # of the largest effort
WRENCH = np.array([3.0, -2.0, 1.0, 0.1, 0.2, -0.3])


@pytest.mark.parametrize("name", robot_names())
def test_efforts_agree_with_the_main_formulation(name, of_gallery):
    """Every robot of the gallery, friction, rotors and a wrench included."""
    kinematics = of_gallery[name].kinematics
    dynamics = Dynamics(kinematics)
    model = BodyProjection(dynamics)
    try:
        motions = random_motions(kinematics, 10, seed=4)
    except NoMotionError:  # singular everywhere: J_tau cannot be inverted, but is known
        J_inv = kinematics.at(kinematics.home).motion_jacobian
        at = model.motions(kinematics.home, None, None, None)[0]
        assert np.abs(model.j_tau(at).T - J_inv).max() < AGREE * np.abs(J_inv).max()
        return
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        wanted = dynamics.inverse(pose, twist, acceleration, WRENCH, distribution=FREE).effort
        found = model.inverse(pose, twist, acceleration, WRENCH)
        assert np.abs(found - wanted).max() <= AGREE * np.abs(wanted).max()


def test_wrench_of_a_body_is_newtons_and_eulers():
    """Omega p at a point A away from the mass centre, from F = m a_C and M = I_C dw + w x I_C w at the mass centre."""
    rng = np.random.default_rng(5)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.linalg.det(R)
    w, dw, a, r = rng.normal(size=(4, 3))
    m, root = 2.5, rng.normal(size=(3, 3))
    central = root @ root.T
    a_C = a + np.cross(dw, r) + np.cross(w, np.cross(w, r))
    force, moment = m * a_C, central @ dw + np.cross(w, central @ w)
    about_A = central + m * (r @ r * np.eye(3) - np.outer(r, r))
    p = np.concatenate([[m], m * r, about_A[np.triu_indices(3)]])
    found = BodyProjection.omega(BodyMotion(R, np.zeros(3), np.zeros((6, 1)), w, dw, a)) @ p
    assert found == pytest.approx(np.concatenate([R @ force, R @ (moment + np.cross(r, force))]), abs=1e-12)


def test_motors_on_the_base_and_on_limbs(of_gallery):
    """J_tau is the transposed inverse Jacobian, also where a motor rides on a body that moves."""
    for name in ("delta", "gough_stewart", "dymo_3uru", "three_rpc"):
        kinematics = of_gallery[name].kinematics
        model = BodyProjection(Dynamics(kinematics))
        pose = random_motions(kinematics, 1, seed=3).pose[0]
        at = model.motions(pose, None, None, None)[0]
        J_inv = kinematics.at(pose).motion_jacobian
        assert np.abs(model.j_tau(at).T - J_inv).max() < AGREE * np.abs(J_inv).max()


def test_what_cannot_be(delta):
    with pytest.raises(NoMotionHereError):
        BodyProjection(delta.dynamics).inverse(delta.kinematics.home + np.array([0, 0, -5.0, 0, 0, 0, 0]))
