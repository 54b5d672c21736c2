# SPDX-License-Identifier: Apache-2.0
"""Robots with redundant joints under control: held at home, or following the platform as the description says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from pkm_client import Robot
from pkm_control.loop_settings import Setup
from pkm_control.operator_interface import ADAPTIVE, COMPUTED_TORQUE, PD_GRAVITY, POSITION
from pkm_description import load_mechanism
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Status
from pkm_runtime.errors import PkmError
from test.oracles.redundant_robots import REDUNDANT, on_a_rail, planar_3prrr, planar_on_a_rail

ALONG = np.array([0.6, 0.8, 0.0])  # the rail


def following(text: str, **follows: str) -> Mechanism:
    """A robot whose redundant joints follow the platform."""
    root = ET.fromstring(load_mechanism(text).urdf)
    pkm = root.find("pkm")
    assert pkm is not None
    for joint, share in follows.items():
        ET.SubElement(pkm, "redundant", joint=joint, follows=share)
    return load_mechanism(ET.tostring(root, encoding="unicode"))


def shifted(pose: np.ndarray, by: np.ndarray) -> np.ndarray:
    return pose + np.append(by, np.zeros(4))


@pytest.mark.parametrize("case", REDUNDANT)
def test_the_platform_moves_and_redundant_joints_stay(case: str) -> None:
    with Robot.simulated(load_mechanism(REDUNDANT[case][0]()), False, Setup(rate=500.0)) as robot:
        k = robot.kinematics
        goal = shifted(k.home, 0.03 * k.task.subspace[:3, 0])
        robot.move_to(goal)
        assert np.abs(robot.state.pose - goal).max() < 1e-4
        at_home = k.home_joints[k.engine.redundant_column]
        joints = k.forward([robot.state.positions[name] for name in k.actuated_names], near=goal).joints
        assert np.abs(joints[k.engine.redundant_column] - at_home).max() < 1e-4


@pytest.mark.parametrize(("law", "close"), [(COMPUTED_TORQUE, 5e-4), (PD_GRAVITY, 1e-2), (POSITION, 1e-9)])
def test_a_rail_carries_a_delta_far_beyond_its_reach(law: str, close: float) -> None:
    """PD feeds no acceleration forward, and ends its motion some millimetres behind."""
    mechanism = following(on_a_rail("delta"), rail="0.6 0.8 0")
    with Robot.simulated(mechanism, False, Setup(rate=500.0, controller=law)) as robot:
        k = robot.kinematics
        goal = shifted(k.home, 0.7 * ALONG)
        robot.move_to(goal)
        assert abs(robot.state.positions["rail"] - 0.7) < close
        assert np.abs(robot.state.pose - goal).max() < close
        robot.move_to(shifted(k.home, 0.7 * ALONG + 0.05 * np.array([-0.8, 0.6, 0.0])))
        assert abs(robot.state.positions["rail"] - 0.7) < close


def test_what_follows_does_so_in_kinematics_and_dynamics() -> None:
    mechanism = following(planar_on_a_rail(locked=False), rail="0.5 0 0")
    with Robot.simulated(mechanism, False, Setup(rate=500.0)) as robot:
        k = robot.kinematics
        dynamics = Dynamics(k)
        pose = shifted(k.home, np.array([0.2, 0.01, 0.0]))
        at = k.inverse(pose)
        assert abs(float(at.redundant[0]) - 0.1) < 1e-12
        twist = np.array([0.3, -0.1, 0.0, 0.0, 0.0, 0.2])
        asked = at.motion(twist).velocities[k.engine.redundant_column]
        assert abs(float(asked[0]) - 0.15) < 1e-12
        same = dynamics.inverse(pose, np.append(twist, 0.15), np.zeros(7)).effort
        assert np.abs(dynamics.inverse(pose, twist).effort - same).max() < 1e-9
        assert float(k.inverse(pose, seed=k.inverse(np.append(pose, 0.0)).joints).redundant[0]) == 0.0


def test_a_plan_minds_the_limits_of_the_rail() -> None:
    mechanism = following(on_a_rail("delta"), rail="0.6 0.8 0")
    with Robot.simulated(mechanism, False, Setup(rate=500.0)) as robot:
        home = robot.kinematics.home
        assert Status(int(robot.kinematics.inverse(shifted(home, 1.3 * ALONG)).status)) is Status.JOINT_LIMIT
        with pytest.raises(PkmError, match="rail"):
            robot.move_to(shifted(home, 1.3 * ALONG))


def test_laws_that_do_not_know_redundant_joints_are_refused() -> None:
    with pytest.raises(PkmError, match=r"the law .adaptive.:.*redundant joints: limb1_slider"):
        Robot.simulated(load_mechanism(planar_3prrr(locked=False)), False, Setup(controller=ADAPTIVE))
