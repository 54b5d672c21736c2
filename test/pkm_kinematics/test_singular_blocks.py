# SPDX-License-Identifier: Apache-2.0
"""Limbs that are exactly singular: what a solve answers there does not depend on what was solved before."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.position.closures import inverse_of_three, inverse_of_three_by_two, invert_block
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import place_block, solve_newton, write_block_rows
from pkm_kinematics.kernels.records import NEWTON, PLATFORM

BEFORE = (0.0, 1.0, -7.5, 1e6)  # what may stand in the workspace


@pytest.fixture(scope="module")
def leg():
    """A leg of a hexapod by iteration, the platform's joint exactly at the base's: turning about it moves nothing."""
    k = Kinematics(load_mechanism("gough_stewart"))
    blocks = k.tables.blocks.copy()
    blocks["solver"] = NEWTON
    model, data = k.engine.model.replace(blocks=blocks), k.engine.data()
    block = model.blocks[0]
    closure = model.closures[block["closure_start"]]
    pose = np.array(k.home)
    pose[3:] = 0.0, 0.0, 0.0, 1.0
    centre = data.state["p"][block["start"]].copy()
    place_platform(data.state, pose)
    place_block(model.bodies, block, data.state)
    centre = data.state["p"][block["start"]].copy()
    assert closure["successor"] == PLATFORM or closure["predecessor"] == PLATFORM
    arm = closure["successor_point"] if closure["successor"] == PLATFORM else closure["predecessor_point"]
    pose[:3] = centre - arm
    return k, model, block, pose


def solved(leg, before):
    """Condition, and joints after Newton's method, from a workspace that holds `before` everywhere."""
    k, model, block, pose = leg
    data = k.engine.data()
    data.work[:] = before
    place_platform(data.state, pose)
    place_block(model.bodies, block, data.state)
    write_block_rows(model.closures, block, data.state, data.rows)
    condition = invert_block(model, data, block)
    to, n = block["inverse_at"], block["rows"] * block["count"]
    inverse = data.work[to : to + n].copy()
    data.work[:] = before
    residual, iterations = solve_newton(model, data, block)
    own = slice(block["start"], block["start"] + block["count"])
    return condition, inverse, data.state["q"][own].copy(), residual, iterations


def test_newtons_method_is_the_same_whatever_was_solved_before(leg):
    first = solved(leg, BEFORE[0])
    assert first[0] == 0.0
    assert np.isfinite(first[1]).all()
    for before in BEFORE[1:]:
        for a, b in zip(first, solved(leg, before), strict=True):
            np.testing.assert_array_equal(a, b)


def test_joints_that_others_stand_for_rest(leg):
    """The generalised inverse J J' J = J of the joints that are left, and none of those that move nothing."""
    block = leg[2]
    _, inverse, *_ = solved(leg, 0.0)
    inverse = inverse.reshape(block["count"], block["rows"])
    assert np.linalg.matrix_rank(inverse) == 1  # the slide
    assert (np.linalg.norm(inverse, axis=1) == 0.0).sum() == 2


@pytest.mark.parametrize(("invert", "n"), [(inverse_of_three, 3), (inverse_of_three_by_two, 2)])
def test_conditions_of_small_blocks_are_those_of_singular_values(invert, n):
    rng = np.random.default_rng(1)
    for _ in range(200):
        J, out = rng.normal(size=(3, n)), np.zeros(3 * n)
        condition = invert(J.ravel(), 0, out, 0)
        np.testing.assert_allclose(out.reshape(n, 3), np.linalg.pinv(J), rtol=1e-8, atol=1e-9)
        values = np.linalg.svd(J / np.linalg.norm(J, axis=0), compute_uv=False)
        assert condition == pytest.approx(n / np.sqrt((values**2).sum() * (values**-2.0).sum()), rel=1e-9)


@pytest.mark.parametrize("beyond", [0.0, 1e-8, 3e-7])
def test_a_parallelogram_is_regular_where_its_crank_points_from_the_coupler_to_the_ball(of_gallery, beyond):
    """Crank and coupler alone are an arm that is stretched there, at the end of the crank's range."""
    robot = of_gallery["capaman"]
    k = robot.kinematics
    drives = np.array(k.inverse(k.home).actuated)
    drives[0] = np.pi / 4 + beyond
    pose = k.forward(drives).pose
    assert k.singularity(pose).limb_regularity > 0.1
    np.testing.assert_allclose(k.inverse(pose).actuated, drives, atol=1e-13)
    rates, step = np.array([0.3, -0.2, 0.5]), 1e-5
    before, after = (k.forward(drives + sign * step * rates).pose for sign in (-1.0, 1.0))
    moved = (np.array(after) - np.array(before))[:3] / (2.0 * step)
    np.testing.assert_allclose(k.at(pose).platform_twist(rates)[:3], moved, atol=1e-8)
    beside = k.forward(drives + np.array([1e-3, 0.0, 0.0])).pose
    weight = robot.dynamics.gravity(pose).effort
    np.testing.assert_allclose(weight, robot.dynamics.gravity(beside).effort, rtol=0.02)
