# SPDX-License-Identifier: Apache-2.0
"""Bounds over boxes beside what the kinematics and dynamics give at random poses of these boxes."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_analysis.domain import Domain, TaskCoordinates
from pkm_analysis.proof.enclosures import Encloser
from pkm_description import load_mechanism
from pkm_kinematics.kinematics import Kinematics

ROUNDING = 1e-11  # of what the library computes; bounds themselves need none
SMALL = dict.fromkeys(["delta_rr", "h4", "irsbot2", "navaro", "quattro"], 0.0005)  # the limbs turn fast
WIDTHS = {"orthoglide": 0.02, "delta": 0.02, "agile_eye": 0.05, "tripteron": 0.02, **SMALL}  # m and rad
ROBOTS = [
    "agile_eye",
    "delta",
    "delta_rr",
    "five_bar",
    "four_upu",
    "gough_stewart",
    "gough_stewart_7",
    "h4",
    "hexa",
    "hexaglide",
    "irsbot2",
    "linear_delta",
    "navaro",
    "orthoglide",
    "par2",
    "planar_3rpr",
    "planar_3rrr",
    "planar_redundant",
    "quattro",
    "tripteron",
    "two_rpr",
    "wrist_3ups_s",
]


def _around_home(kinematics: Kinematics, width: float) -> Domain:
    home = kinematics.engine.task.chain["home"][1:]
    return Domain.of_box(TaskCoordinates(kinematics), np.array([home - 0.7 * width, home + 0.3 * width]).T)


@pytest.mark.parametrize("name", ROBOTS)
def test_bounds_contain_joints_and_jacobians_of_random_poses(name):
    kinematics = Kinematics(load_mechanism(name))
    domain = _around_home(kinematics, WIDTHS.get(name, 0.01))
    encloser = Encloser(domain)
    found = encloser(domain.box[None])
    assert found.decided[0]
    assert (found.reach[0, :, 0] > 0.0).all()
    rng = np.random.default_rng(1)
    poses = domain.values(rng.uniform(domain.box[:, 0], domain.box[:, 1], (2000, len(domain.box))))
    joints = kinematics.inverse(poses).joints[:, encloser.program.joints]
    value = found.joints.value[0]
    assert (joints >= value[:, 0] - ROUNDING).all()
    assert (joints <= value[:, 1] + ROUNDING).all()
    spread = np.ptp(joints, axis=0)
    assert (value[:, 1] - value[:, 0] < 3.0 * spread + 0.01).all()  # they are bounds worth having
    K = kinematics.at(poses[:200]).inverse_jacobian @ encloser.twists
    rate = found.joints.rate[0, : encloser.program.n_actuated]
    size = np.abs(K).max()
    assert (rate[..., 0] - ROUNDING * size <= K).all()
    assert (rate[..., 1] + ROUNDING * size >= K).all()


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "orthoglide", "five_bar", "quattro"])
def test_derivatives_of_the_jacobian_are_those_of_differences(name):
    kinematics = Kinematics(load_mechanism(name))
    home = _around_home(kinematics, 0.0).origin
    wide = Domain.of_box(TaskCoordinates(kinematics), np.array([home - 1e-3, home + 1.5e-3]).T)
    encloser = Encloser(wide)
    n = encloser.program.n_actuated
    bend = encloser(wide.box[None]).joints.bend[0, :n]
    step = 1e-5
    for u in range(len(home)):
        offset = np.zeros(len(home))
        offset[u] = step
        pair = kinematics.at(np.array([home - offset, home + offset])).inverse_jacobian @ encloser.twists
        slope = (pair[1] - pair[0]) / (2.0 * step)
        assert (slope >= bend[:, u, :, 0] - 1e-6 * np.abs(pair).max()).all()
        assert (slope <= bend[:, u, :, 1] + 1e-6 * np.abs(pair).max()).all()


def test_a_box_twice_as_small_has_bounds_of_the_jacobian_four_times_as_tight():
    kinematics = Kinematics(load_mechanism("delta"))
    excess = []
    for width in (0.02, 0.01, 0.005):
        domain = _around_home(kinematics, width)
        encloser = Encloser(domain)
        rate = encloser(domain.box[None]).joints.rate[0, :3]
        corners = np.array(np.meshgrid(*domain.box)).reshape(3, -1).T
        K = kinematics.at(domain.values(corners)).inverse_jacobian @ encloser.twists
        excess.append(((rate[..., 1] - rate[..., 0]) - np.ptp(K, axis=0)).max())
    assert excess[1] < 0.33 * excess[0]
    assert excess[2] < 0.33 * excess[1]


def test_a_box_that_the_limbs_do_not_reach_is_not_decided():
    kinematics = Kinematics(load_mechanism("delta"))
    domain = Domain.of_box(TaskCoordinates(kinematics), np.array([[1.5, 1.6], [0.0, 0.1], [-1.0, -0.9]]))
    found = Encloser(domain)(domain.box[None])
    assert found.reach[0, :, 1].min() < 0.0 or not found.decided[0]


def test_the_sums_over_cores_are_those_of_one():
    kinematics = Kinematics(load_mechanism("orthoglide"))
    domain = _around_home(kinematics, 0.02)
    boxes = np.repeat(domain.box[None], 600, axis=0) + np.linspace(0.0, 0.01, 600)[:, None, None]
    encloser = Encloser(domain)
    one, many = encloser(boxes, cores=1), encloser(boxes, cores=3)
    np.testing.assert_array_equal(one.joints.bend, many.joints.bend)
    assert one.decided.all()
