# SPDX-License-Identifier: Apache-2.0
"""Base parameters: counts and groups that a derivation by hand gives, and the reduced form of robots of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.base_parameters import RankError, base_parameters, grouped
from pkm_dynamics.linear_form.random_motions import random_motions


def upright_five_bar() -> str:
    """The five-bar with its plane upright: gravity along -y of its plane."""
    return load_mechanism("five_bar").urdf.replace("<pkm ", '<pkm gravity="0 -9.81 0" ', 1)


def test_five_bar_has_seven():
    """A bar from elbow e to pin p at distance L: m, mx, my and Izz act through v_e^2, v_p^2, v_e.v_p and v_e x v_p.

    v_e^2 is the arm's own square rate, v_p^2 the platform's: they join the arm's Izz and the platform's mass, and the
    other two stay, as forearm.mx and forearm.my. Hence 1 (platform) + 2 (1 arm + 2 forearm) = 7.
    """
    found = base_parameters(Dynamics(load_mechanism("five_bar"), friction=False))
    assert found.names == (
        "platform.m",
        "left_arm.Izz", "left_forearm.mx", "left_forearm.my",
        "right_arm.Izz", "right_forearm.mx", "right_forearm.my",
    )  # fmt: skip
    assert found.rules[0] == "platform.m + 1/0.4^2 left_forearm.Izz + 1/0.4^2 right_forearm.Izz"
    assert found.rules[1] == ("left_arm.Izz + 0.3^2 left_forearm.m - 0.3^2/0.4^2 left_forearm.Izz + left_arm.armature")
    assert found.rules[2] == "left_forearm.mx - 1/0.4 left_forearm.Izz"


def test_upright_five_bar_has_eleven():
    """In the field of gravity the first moments of the arms act too, two each; the forearms' weights join them."""
    found = base_parameters(Dynamics(load_mechanism(upright_five_bar()), friction=False))
    assert len(found) == 11
    assert {"left_arm.mx", "left_arm.my", "right_arm.mx", "right_arm.my"} < set(found.names)
    assert "left_arm.mx + 0.3 left_forearm.m - 0.3/0.4^2 left_forearm.Izz" in found.rules


def test_delta_has_thirty_four():
    """1 for the platform; per limb 3 for the arm (mx, mz, Iyy about its axis) and 8 for the two rods together.

    The rods of a limb move alike, so only sums over them count. Of a rod's ten parameters m joins the arm, and Iyy +
    Izz acts through v_e^2, v_p^2 and v_e.v_p like the bar of a five-bar, which leaves mx, my, mz, Ixx, Ixy, Ixz, Iyz
    and one of Iyy and Izz: 8. Hence 1 + 3 (3 + 8) = 34.
    """
    found = base_parameters(Dynamics(load_mechanism("delta"), friction=False))
    assert len(found) == 34
    assert found.names[:5] == ("platform.m", "limb1_arm.mx", "limb1_arm.mz", "limb1_arm.Iyy", "limb1_a_rod.mx")
    assert found.rules[5] == "limb1_a_rod.my + limb1_b_rod.my"
    assert "0.42^2 limb1_a_rod.m" in found.rules[3]
    assert found.rules[3].endswith("+ limb1_arm.armature")
    assert "platform.Izz" in found.unseen
    assert "limb2_arm.m" in found.unseen


def test_friction_of_parallel_rods_groups():
    found = base_parameters(Dynamics(load_mechanism("delta")))
    assert len(found) == 34 + 18
    assert "limb1_a_elbow.viscous + limb1_b_elbow.viscous" in found.rules


@pytest.mark.parametrize(
    "name", ["delta", "gough_stewart", "quattro", "orthoglide", "planar_3rrr", "agile_eye", "par2"]
)
def test_reduced_form_gives_the_efforts(name):
    """At motions that the grouping has not seen, the base parameters alone give the efforts of inverse dynamics."""
    dynamics = Dynamics(load_mechanism(name))
    base = base_parameters(dynamics)
    motions = random_motions(dynamics.kinematics, 30, seed=77)
    at = motions.pose, motions.twist, motions.acceleration
    psi, _ = dynamics.regressor(*at)
    wanted = dynamics.inverse(*at).effort
    found = base.reduce(psi) @ base.values(dynamics.parameters.values)
    # the coefficients of the groups carry the rounding of a least-squares solution
    assert np.abs(found - wanted).max() <= 1e-8 * np.abs(wanted).max()
    assert len(base) < len(dynamics.parameters)
    assert base.gap < 1e-4
    psi_base = base.reduce(psi).reshape(-1, len(base))
    assert np.linalg.matrix_rank(base.grouping) == len(base)
    assert psi_base.shape[1] == len(base)


def test_a_rank_that_is_not_clear_is_an_error():
    """Powers of a variable on [0.1, 1] are independent, but each adds only a tenth of what the one before did."""
    with pytest.raises(RankError, match="not clear"):
        grouped(np.vander(np.linspace(0.1, 1.0, 60), 20), [f"x^{k}" for k in range(20)])
