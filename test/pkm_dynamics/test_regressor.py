# SPDX-License-Identifier: Apache-2.0
"""The linear form against inverse dynamics: Jacobians of the bodies, against wrenches carried from tip to platform."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.linear_form.random_motions import Motions, random_motions
from pkm_kinematics import Kinematics, Status

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

ROUNDING = 1e-11  # of the sum of the terms' sizes: both sides add a few hundred terms


@cache
def motions_of(name: str) -> tuple[Kinematics, Motions]:
    kinematics = Kinematics(load_mechanism(name))
    return kinematics, random_motions(kinematics, 40, seed=5)


@pytest.mark.parametrize("friction", [True, False])
@pytest.mark.not_for("singular everywhere")
def test_regressor_times_parameters_is_inverse_dynamics(robot_name, friction):
    kinematics, motions = motions_of(robot_name)
    dynamics = Dynamics(kinematics, friction=friction)
    at = motions.pose, motions.twist, motions.acceleration
    psi, names = dynamics.regressor(*at)
    wanted = dynamics.inverse(*at, distribution=FREE)
    assert wanted.ok.all()
    p = dynamics.parameters.values
    assert psi.shape == (40, len(kinematics.actuated_names), len(names))
    assert len(p) == len(names) == len(set(names))
    scale = np.abs(wanted.effort).max(initial=0.0) + (np.abs(psi) * np.abs(p)).sum(-1).max()
    assert np.abs(psi @ p - wanted.effort).max() <= ROUNDING * scale
    if any(not link.inertial.massless for link in kinematics.mechanism.links):
        assert np.abs(wanted.effort).max() > 0.0


def test_single_pose_and_batch_agree():
    kinematics, motions = motions_of("delta")
    dynamics = Dynamics(kinematics)
    many, _ = dynamics.regressor(motions.pose, motions.twist, motions.acceleration)
    one, _ = dynamics.regressor(motions.pose[3], motions.twist[3], motions.acceleration[3])
    assert one.shape == many.shape[1:]
    assert np.array_equal(one, many[3])


def test_names_and_values_are_those_of_the_links():
    """Parameters of the Delta's arm, its pin included, from the numbers of the description, in the link's own axes."""
    dynamics = Dynamics(load_mechanism("delta"))
    values = dict(zip(dynamics.parameters.names, dynamics.parameters.values, strict=True))
    assert values["limb1_arm.m"] == pytest.approx(3.47 + 0.226, rel=1e-12)
    assert values["limb1_arm.mx"] == pytest.approx(3.47 * 0.17224 + 0.226 * 0.42, rel=1e-12)
    assert values["limb1_arm.Iyy"] == pytest.approx(0.208218, rel=1e-12)
    assert values["limb2_a_rod.mx"] == pytest.approx(0.525 * 1.055 / 2, rel=1e-12)
    assert values["platform.m"] == 2.916
    assert values["limb3_arm.armature"] == pytest.approx(55**2 * 2.07e-4, rel=1e-12)
    assert values["limb3_arm.viscous"] == 0.5
    assert values["limb3_arm.coulomb"] == 1.0
    assert not any(name.startswith("limb1_a_cross.") for name in values)


def test_payload_is_ten_more_of_the_platforms_parameters():
    """A payload of `inverse` changes the platform's parameters as its mass and moments say."""
    from pkm_description.mechanism import Inertial

    kinematics, motions = motions_of("gough_stewart")
    dynamics = Dynamics(kinematics)
    payload = Inertial(2.0, np.array([0.01, -0.02, 0.05]), np.diag([0.01, 0.02, 0.015]))
    at = motions.pose, motions.twist, motions.acceleration
    psi, names = dynamics.regressor(*at)
    p = dict(zip(names, dynamics.parameters.values, strict=True))
    x, y, z = payload.com
    p["platform.m"] += 2.0
    for axis, value in zip("xyz", payload.com, strict=True):
        p[f"platform.m{axis}"] += 2.0 * value
    p["platform.Ixx"] += 0.01 + 2.0 * (y * y + z * z)
    p["platform.Iyy"] += 0.02 + 2.0 * (x * x + z * z)
    p["platform.Izz"] += 0.015 + 2.0 * (x * x + y * y)
    p["platform.Ixy"] -= 2.0 * x * y
    p["platform.Ixz"] -= 2.0 * x * z
    p["platform.Iyz"] -= 2.0 * y * z
    wanted = dynamics.inverse(*at, payload=payload, distribution=FREE).effort
    assert np.abs(psi @ np.array(list(p.values())) - wanted).max() <= 1e-11 * np.abs(wanted).max()


def test_unreachable_pose_gives_nan():
    kinematics, _ = motions_of("delta")
    psi, _ = Dynamics(kinematics).regressor([5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert np.isnan(psi).all()
    assert Dynamics(kinematics).inverse([5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]).status != Status.CONVERGED
