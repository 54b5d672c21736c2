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
