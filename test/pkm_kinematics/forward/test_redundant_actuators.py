# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of robots with more actuators than degrees of freedom."""

import numpy as np

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics


def test_a_seventh_leg_does_not_keep_it_from_the_pose() -> None:
    kinematics = Kinematics(load_mechanism("gough_stewart_7"))
    random = np.random.default_rng(5)
    for _ in range(20):
        pose = kinematics.home.copy()
        pose[:3] += random.uniform(-0.03, 0.03, 3)
        half = random.uniform(-0.05, 0.05, 3)
        pose[3:] = np.append(half, np.sqrt(1.0 - half @ half))
        found = kinematics.forward(kinematics.inverse(pose).actuated, near=kinematics.home)
        assert found.status == 0
        np.testing.assert_allclose(found.pose, pose, atol=1e-12)


def test_a_leg_on_the_side_that_closed_forms_do_not_take_stays_there() -> None:
    """Pulled in past its joint, a leg has a negative length; its turn is driven, too, and curves the drives' way."""
    drive = '<joint name="limb1_turn"><command_interface name="effort"/></joint></ros2_control>'
    kinematics = Kinematics(load_mechanism(load_mechanism("three_rpc").urdf.replace("</ros2_control>", drive)))
    turn, leg = (kinematics.joint_names.index(f"limb1_{name}") for name in ("turn", "leg"))
    home = kinematics.home
    away = home + np.array([0.1, 0.05, 0.1, 0, 0, 0, 0])
    seeds = [kinematics.inverse(pose).joints.copy() for pose in (home, away)]
    for seed in seeds:
        seed[turn] -= np.pi
        seed[leg] *= -1.0
    there = kinematics.at(away, seed=seeds[1])
    found = kinematics.forward(there.actuated, near=home, seed=seeds[0])
    np.testing.assert_allclose(found.pose, away, atol=1e-12)
    np.testing.assert_allclose(found.joints, seeds[1], atol=1e-10)
