# SPDX-License-Identifier: Apache-2.0
"""Power brought is energy gained and lost; kinetic energy is half the rates times the momenta of inverse dynamics."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.energy import energy, power
from pkm_dynamics.linear_form.random_motions import Motions, random_motions
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them


@cache
def motions_of(name: str) -> tuple[Kinematics, Motions]:
    kinematics = Kinematics(load_mechanism(name))
    return kinematics, random_motions(kinematics, 20, seed=9)


@pytest.mark.not_for("singular everywhere")
def test_kinetic_energy_is_half_the_rates_times_the_momenta(robot_name):
    """T = 1/2 u . M u, with M u from inverse dynamics: the effort for the acceleration S u, less that at rest."""
    kinematics, motions = motions_of(robot_name)
    dynamics = Dynamics(kinematics, friction=False)
    seeds = kinematics.inverse(motions.pose).joints
    found = energy(dynamics, dynamics.kinematics.at(motions.pose, seed=seeds), motions.twist)
    assert found.ok.all()
    still = np.zeros_like(motions.twist)
    efforts = [
        dynamics.inverse(dynamics.kinematics.at(motions.pose, seed=seeds), still, a, distribution=FREE).effort
        for a in (motions.twist, still)
    ]
    wanted = 0.5 * power(
        dynamics, dynamics.kinematics.at(motions.pose, seed=seeds), motions.twist, efforts[0] - efforts[1]
    )
    assert np.abs(found.kinetic - wanted).max() <= 1e-9 * max(np.abs(wanted).max(), np.abs(found.potential).max(), 1e-9)


@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "quattro", "orthoglide", "agile_eye"])
def test_power_brought_is_energy_gained_and_lost(name):
    """Along a motion of constant twist in the motion space: difference quotient of fourth order, error 1e-8."""
    kinematics, motions = motions_of(name)
    dynamics = Dynamics(kinematics)
    h = 2e-4
    for pose, twist in zip(motions.pose[:6], motions.twist[:6], strict=True):
        slow = 0.2 * twist
        effort = dynamics.inverse(pose, slow, np.zeros(6), distribution=FREE).effort
        totals = [float(energy(dynamics, displace(np.array(pose), k * h * slow), slow).total) for k in (-2, -1, 1, 2)]
        gained = (totals[0] - 8 * totals[1] + 8 * totals[2] - totals[3]) / (12 * h)
        lost = float(energy(dynamics, pose, slow).lost)
        brought = float(power(dynamics, pose, slow, effort))
        assert lost >= 0.0
        assert brought - lost == pytest.approx(gained, abs=1e-6 * max(abs(brought), abs(totals[0]), 1e-3))


def test_potential_energy_by_hand():
    """The Delta at home: arms level at the base's height, rods half way down, platform at the home height."""
    dynamics = Dynamics(load_mechanism("delta"))
    z = dynamics.kinematics.home[2]
    found = energy(dynamics, dynamics.kinematics.home)
    assert float(found.potential) == pytest.approx(9.81 * (2.916 * z + 6 * 0.525 * 0.5 * z), rel=1e-12)
    assert float(found.kinetic) == 0.0
