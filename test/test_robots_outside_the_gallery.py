# SPDX-License-Identifier: Apache-2.0
"""Robots of the literature that the gallery does not have, from a description to their dynamics."""

from __future__ import annotations

import numpy as np
import pytest

from bench.engines.pinocchio_model import PinocchioRobot
from bench.legs_at_home import ROBOTS
from pkm_description import load_mechanism
from pkm_description.rotations import pose_distance
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_kinematics import Status

STATES = 30
ONE_OF_EACH_MOTION = (  # by day
    "3-RUU",
    "3-CRR",
    "3-RPS",
    "4-PUU",
    "5-UPS + UPU",
    "6-RSS",
    "spherical 5R",
    "Sarrus",
    "RSSR",
    "3-PRP",
)
SPINNING = {"6-RSS", "RSSR"}  # rods that spin: held at rest here, free in Pinocchio, which then has other motions
MODES = {
    "3-RPS": 1,
    "3-PRS": 8,
    "3-UPU": 1,
    "3-RUU": 8,
    "3-PUU": 8,
    "6-PUS": 64,
    "6-RSS": 64,
    "3-3 octahedral": 1,
    "RSSR": 2,
}


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> tuple[str, Dynamics]:
    make, _ = ROBOTS[request.param]
    return request.param, Dynamics(load_mechanism(make().text), friction=False)


@pytest.mark.by_day(*ONE_OF_EACH_MOTION)
def test_from_a_description_to_efforts(robot: tuple[str, Dynamics]) -> None:
    name, dynamics = robot
    kinematics = dynamics.kinematics
    assert kinematics.mechanism.mobility.motion == ROBOTS[name][1]
    assert not kinematics.mechanism.mobility.singular_home
    home = kinematics.inverse(kinematics.home)
    assert home.status == Status.CONVERGED
    assert home.residual < 1e-12
    if name in MODES:
        assert len(kinematics.inverse_all(kinematics.home)) == MODES[name]
    modes = kinematics.forward_all(home.actuated)
    assert any(pose_distance(mode.pose, kinematics.home, 1.0) < 1e-8 for mode in modes)

    states = random_motions(kinematics, STATES)
    joints = kinematics.inverse(states.pose)
    assert joints.ok.all()
    back = kinematics.forward(joints.actuated, near=states.pose)
    assert back.ok.all()
    assert max(pose_distance(a, b, 1.0) for a, b in zip(back.pose, states.pose, strict=True)) < 1e-9

    efforts = dynamics.inverse(states.pose, states.twist, states.acceleration)
    assert efforts.ok.all()
    again = dynamics.direct(states.pose, states.twist, efforts.effort)
    # relative to the largest acceleration; seen: 1e-11
    np.testing.assert_allclose(again.acceleration, states.acceleration, atol=1e-9 * np.abs(states.acceleration).max())
    if name in SPINNING:
        return
    judge, motion = (
        PinocchioRobot(kinematics.mechanism),
        kinematics.motion(states.pose, states.twist, states.acceleration),
    )
    for k in range(STATES):
        rates = (motion.joints[k], motion.velocities[k], motion.accelerations[k])
        expected = judge.inverse_dynamics(*(judge.coordinates(kinematics.joint_names, r) for r in rates))
        # relative to the largest effort; seen: 1e-12
        np.testing.assert_allclose(efforts.effort[k], expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.by_day(*ONE_OF_EACH_MOTION)
def test_velocities_are_rates_of_positions(robot: tuple[str, Dynamics]) -> None:
    _, dynamics = robot
    kinematics = dynamics.kinematics
    states = random_motions(kinematics, 5)
    motion = kinematics.motion(states.pose, states.twist, states.acceleration)
    h = 1e-6
    for k in range(5):
        ahead, behind = (
            kinematics.forward(
                motion.actuated[k] + s * h * motion.velocities[k][kinematics.engine.actuated_column],
                near=states.pose[k],
                seed=motion.joints[k],
            )
            for s in (1.0, -1.0)
        )
        rate = (ahead.pose[:3] - behind.pose[:3]) / (2.0 * h)
        # central differences: h^2 times third derivatives, and rounding over h
        np.testing.assert_allclose(rate, states.twist[k, :3], atol=1e-6 * (1.0 + np.abs(states.twist[k]).max()))
