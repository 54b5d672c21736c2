# SPDX-License-Identifier: Apache-2.0
"""Kinematic elements in space against the main formulation: no code in common, the same efforts."""

from __future__ import annotations

import ast
import inspect

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_dynamics import observed_legs
from pkm_dynamics.observed_legs import ObservationError, ObservedLegs
from pkm_dynamics.random_motions import random_motions

AGREE = 1e-10  # of the largest effort
COVERED = {
    "delta", "dietmaier", "five_bar", "gough_stewart", "gough_stewart_7", "griffis_duffy", "hay_snyman", "hexa",
    "hexaglide", "linear_delta", "par2", "planar_3rpr", "planar_3rrr", "planar_redundant", "polman", "ppa_2t",
    "two_rpr", "wrist_3ups_s",
}  # fmt: skip
WRENCH = np.array([3.0, -2.0, 1.0, 0.1, 0.2, -0.3])


def seen_at(model, pose, twist):
    """What a camera and encoders say at a pose: the arguments of `of_directions`."""
    state = model.of_pose(pose, twist)
    by_link = dict(zip(model.names, zip(state.directions, state.rates, strict=True), strict=True))
    joints = [model._length_joint(k) for k in range(len(model.names))]
    return (
        {link: by_link[link][0] for link in model.seen},
        {link: by_link[link][1] for link in model.seen},
        {joint: x for joint, x in zip(joints, state.lengths, strict=True) if joint},
        {joint: x for joint, x in zip(joints, state.length_rates, strict=True) if joint},
    )


@pytest.mark.parametrize("name", sorted(COVERED - {"griffis_duffy"}))  # which has no regular motions
def test_efforts_agree_with_the_main_formulation(name, of_gallery):
    """From the pose, and from the directions alone; friction, rotors and a wrench included."""
    dynamics = type(of_gallery[name].dynamics)(of_gallery[name].kinematics)  # with friction
    model = ObservedLegs(dynamics)
    motions = random_motions(dynamics.kinematics, 25, seed=4)
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        wanted = dynamics.inverse(pose, twist, acceleration, wrench=WRENCH, mode=0).effort
        observed = model.of_directions(*seen_at(model, pose, twist))
        assert observed.pose == pytest.approx(pose, abs=1e-11)
        assert observed.twist == pytest.approx(twist, abs=1e-10)
        for state in (model.of_pose(pose, twist), observed):
            found = model.inverse(state, acceleration, WRENCH)
            assert np.abs(found - wanted).max() <= AGREE * np.abs(wanted).max()


def test_directions_are_those_of_the_bodies(delta):
    """The rods of a Delta point from the elbows to the platform, arms to the elbows, where the kinematics puts them."""
    k = delta.kinematics
    model = ObservedLegs(delta.dynamics)
    pose = random_motions(k, 1, seed=8).pose[0]
    at = k.engine.placed(pose, k.inverse(pose).joints)
    state = model.of_pose(pose)
    for bar, x in zip(model.bars, state.directions[len(model.carriers) :], strict=True):
        assert at.state["p"][bar.body] + bar.length * x == pytest.approx(pose[:3] + bar.end, abs=1e-12)
    assert set(model.seen) == {f"limb{i}_{part}" for i in (1, 2, 3) for part in ("arm", "a_rod", "b_rod")}
    assert model.measured == ()


def test_which_robots_are_covered(of_gallery):
    """The others are refused with the joint that is neither a carrier nor a bar."""
    for name in robot_names():
        dynamics = of_gallery[name].dynamics
        if name in COVERED:
            ObservedLegs(dynamics)
        else:
            with pytest.raises(ObservationError):
                ObservedLegs(dynamics)


def test_no_trigonometric_function():
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(ast.parse(inspect.getsource(observed_legs)))
        if isinstance(node, ast.Call)
    }
    assert not called & {"sin", "cos", "tan", "arcsin", "arccos", "arctan", "atan2", "arctan2", "acos", "asin"}


def test_noisy_directions_give_nearby_efforts(delta):
    """A camera that errs by a milliradian moves the efforts by about as much, not by orders of magnitude."""
    model = ObservedLegs(delta.dynamics)
    motions = random_motions(delta.kinematics, 1, seed=2)
    pose, twist, acceleration = motions.pose[0], motions.twist[0], motions.acceleration[0]
    directions, rates, lengths, speeds = seen_at(model, pose, twist)
    rng = np.random.default_rng(0)
    noisy = {link: x + 1e-3 * rng.normal(size=3) for link, x in directions.items()}
    wanted = model.inverse(model.of_pose(pose, twist), acceleration)
    found = model.inverse(model.of_directions(noisy, rates, lengths, speeds), acceleration)
    off = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert 1e-6 < off < 0.05


def test_what_cannot_be_observed(delta, of_gallery):
    model = ObservedLegs(delta.dynamics)
    directions, rates, _, _ = seen_at(model, delta.kinematics.home, np.zeros(6))
    with pytest.raises(ObservationError, match="'limb1_arm' is missing"):
        model.of_directions({k: x for k, x in directions.items() if k != "limb1_arm"}, rates)
    with pytest.raises(ObservationError, match="not a finite vector"):
        model.of_directions(directions | {"limb1_arm": [np.nan, 0, 0]}, rates)
    with pytest.raises(ObservationError, match="do not meet at the platform"):
        model.of_directions(directions | {"limb1_arm": -directions["limb1_arm"]}, rates)
    with pytest.raises(ObservationError, match="does not reach"):
        model.of_pose(delta.kinematics.home + np.array([0, 0, -5.0, 0, 0, 0, 0]))
    legs = ObservedLegs(of_gallery["gough_stewart"].dynamics)
    directions, rates, lengths, speeds = seen_at(legs, legs.kinematics.home, np.zeros(6))
    with pytest.raises(ObservationError, match="position or the speed of joint 'limb1_leg' is missing"):
        legs.of_directions(directions, rates)
    with pytest.raises(ObservationError, match="not finite"):
        legs.of_directions(directions, rates, lengths | {"limb1_leg": np.inf}, speeds)
