# SPDX-License-Identifier: Apache-2.0
"""References that interpolation left beside a motion space that turns: every law has a command for them."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.controllers.controller import ROUNDED, Reference
from pkm_control.loop.platform_locator import PlatformObserver
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.kernels.compiled_rotations import displace


@pytest.mark.parametrize("law", ["computed_torque", "pd_gravity", "adaptive", "position"])
def test_a_reference_beside_the_motion_space_is_followed(law: str) -> None:
    """As one in it, but for what a part of 1e-4 of the length asks for."""
    dynamics = Dynamics(load_mechanism("tripod_3prs"))
    kinematics, random = dynamics.kinematics, np.random.default_rng(0)
    length = kinematics.characteristic_length
    home = kinematics.inverse(kinematics.home).actuated
    for _ in range(20):
        there = kinematics.forward(home + random.uniform(-0.03, 0.03, len(home)))
        assert there.ok
        positions, pose = kinematics.inverse(there.pose).actuated, np.array(there.pose)
        measured = PlatformObserver(kinematics, pose).observe(np.array(positions), np.zeros(len(home)))
        assert measured is not None
        twist = kinematics.subspace(pose) @ random.normal(size=3)
        acceleration = kinematics.at(pose).platform_acceleration(twist, random.normal(size=3))
        aside = 0.3 * ROUNDED * random.uniform(-1.0, 1.0, 6) * np.repeat([length, 1.0], 3)
        found = []
        for off in (np.zeros(6), aside):
            controller = make_controller(law, dynamics, ActuatorLimits.of(dynamics.mechanism), 1e-3)
            found.append(controller.command(Reference(displace(pose, off), twist + off, acceleration + off), measured))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[1], found[0], atol=1e-3 * max(1.0, np.abs(found[0]).max()))
