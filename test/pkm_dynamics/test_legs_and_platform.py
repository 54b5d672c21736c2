# SPDX-License-Identifier: Apache-2.0
"""Legs and free platform taken apart, against the main formulation: no code in common, the same efforts."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.linear_form.random_motions import NoMotionError, random_motions
from test.oracles.legs_and_platform import LegsAndPlatform, LegsError

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

AGREE = 1e-10  # of the largest effort, acceleration or inertia
WRENCH = np.array([3.0, -2.0, 1.0, 0.1, 0.2, -0.3])


def legs_have_loops(mechanism: Mechanism) -> bool:
    """True where a tree of joints, on the base or on the platform, is touched by more than one loop's end."""
    trees: dict[str, str] = {}
    for joint in mechanism.joints:
        if joint.name not in mechanism.platform_chain:
            trees[joint.child] = trees.get(joint.parent, joint.name)
    touched = [trees.pop(mechanism.platform_link)] if mechanism.platform_link in trees else []
    touched += [trees[link] for loop in mechanism.loops for link in (loop.predecessor, loop.successor) if link in trees]
    return len(set(touched)) < len(touched)


@pytest.mark.by_day("cable_8", "five_bar", "quattro", "tripod_3prs")
@pytest.mark.parametrize("name", robot_names())
def test_agrees_with_the_main_formulation(name, of_gallery):
    """Inverse and direct model, friction and rotors and a wrench included, and M_rob."""
    kinematics = of_gallery[name].kinematics
    dynamics = Dynamics(kinematics)
    model = LegsAndPlatform(dynamics)
    assert all(leg.serial for leg in model.legs) == (not legs_have_loops(kinematics.mechanism))
    rng = np.random.default_rng(1)
    try:
        motions = random_motions(kinematics, 10, seed=4)
    except NoMotionError:  # singular everywhere: no efforts for a motion, but a motion for efforts
        twist, effort = rng.normal(size=6), rng.normal(size=len(kinematics.actuated_names))
        forward = dynamics.direct(kinematics.home, twist, effort, WRENCH).acceleration
        found = model.direct(kinematics.home, twist, effort, WRENCH)
        assert np.abs(found - forward).max() <= AGREE * np.abs(forward).max()
        return
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        wanted = dynamics.inverse(pose, twist, acceleration, WRENCH, distribution=FREE).effort
        found = model.inverse(pose, twist, acceleration, WRENCH)
        assert np.abs(found - wanted).max() <= AGREE * np.abs(wanted).max()
        effort = wanted * rng.uniform(0.5, 1.5, wanted.shape)
        forward = dynamics.direct(pose, twist, effort, WRENCH).acceleration
        found = model.direct(pose, twist, effort, WRENCH)
        assert np.abs(found - forward).max() <= AGREE * np.abs(forward).max()
        M = dynamics.mass_matrix(pose)
        assert np.abs(model.mass_matrix(pose) - M).max() <= AGREE * np.abs(M).max()


def test_most_legs_are_serial(of_gallery):
    """More than twenty robots are of the paper's kind; the loops inside legs of the others are embedded."""
    with_loops = {name for name in robot_names() if legs_have_loops(of_gallery[name].kinematics.mechanism)}
    assert {"delta", "delta_rr", "orthoglide", "irsbot2", "ppa_2t", "h4", "quattro"} <= with_loops
    assert len(robot_names()) - len(with_loops) >= 21


def test_jacobians_of_a_gough_stewart_leg(of_gallery):
    """In the frame of the leg, J_i is (26): q3 across the first two axes, and 1 along the slide; J_inv is (32)."""
    kinematics = of_gallery["gough_stewart"].kinematics
    model = LegsAndPlatform(Dynamics(kinematics))
    pose = random_motions(kinematics, 1, seed=2).pose[0]
    at, _ = model._placed(pose, None)
    wanted = np.zeros((6, 6))
    for placed in at:
        closure = model.closures[placed.leg.closures[0]]
        arm = placed.R[1] @ closure["successor_point"]
        first, second, rod = placed.leg.joints
        reach = pose[:3] + arm - placed.p[first]
        length, a = np.linalg.norm(reach), reach / np.linalg.norm(reach)
        z1, z2 = placed.R[first][:, 2], placed.R[second][:, 2]
        assert placed.p[second] == pytest.approx(placed.p[first], abs=1e-12)
        # velocity of the ball along the square to leg and second axis, along that axis, and along the leg
        frame = np.array([np.cross(z2, a), z2, a])
        sine = np.dot(np.cross(z1, a), z2)  # of the angle between the leg and the first axis
        ball_rates = np.linalg.inv(placed.Jv[:, :3]) @ placed.J
        slide = 1.0 if placed.R[rod][:, 2] @ a > 0 else -1.0
        expected = np.array([[0, length, 0], [length * sine, 0, 0], [0, 0, slide]])
        assert frame @ ball_rates == pytest.approx(expected, abs=1e-12)
        wanted[model.bodies[rod]["actuator"]] = slide * np.concatenate([a, np.cross(arm, a)])
    to_origin = np.eye(6)
    to_origin[:3, 3:] = np.cross(np.eye(3), pose[:3])
    assert model._inverse_jacobian(at) @ to_origin == pytest.approx(wanted, abs=1e-12)


def test_no_configuration(delta):
    with pytest.raises(LegsError, match=r"no configuration at this pose: .*reach"):
        LegsAndPlatform(delta.dynamics).inverse(delta.kinematics.home + np.array([0, 0, -5.0, 0, 0, 0, 0]))
