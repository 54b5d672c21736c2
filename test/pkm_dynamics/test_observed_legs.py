# SPDX-License-Identifier: Apache-2.0
"""Kinematic elements in space against the main formulation: no code in common, the same efforts."""

from __future__ import annotations

import ast
import inspect

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_dynamics import Distribution, observed_legs
from pkm_dynamics.linear_form.random_motions import NoMotionError, random_motions
from pkm_dynamics.observed_legs import ObservationError, ObservedLegs

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

AGREE = 1e-10  # of the largest effort
ROBOTS = robot_names()
WRENCH = np.array([3.0, -2.0, 1.0, 0.1, 0.2, -0.3])


def seen_at(model, pose, twist):
    """What a camera and encoders say at a pose: the arguments of `of_directions`."""
    state = model.of_pose(pose, twist)
    rows = range(len(model.names))
    seen = [k for k in rows if model.names[k] in model.seen]
    slides = [k for k in rows if k not in seen]
    return (
        {model.names[k]: state.directions[k] for k in seen},
        {model.names[k]: state.rates[k] for k in seen},
        {joint: state.lengths[k] for joint, k in zip(model.measured, slides, strict=True)},
        {joint: state.length_rates[k] for joint, k in zip(model.measured, slides, strict=True)},
    )


@pytest.mark.by_day("delta", "gough_stewart", "planar_redundant", "tripod_3prs")
@pytest.mark.parametrize("name", ROBOTS)
def test_efforts_agree_with_the_main_formulation(name, of_gallery):
    """From the pose, and from the directions alone; friction, rotors and a wrench included."""
    dynamics = type(of_gallery[name].dynamics)(of_gallery[name].kinematics)  # with friction
    model = ObservedLegs(dynamics)
    try:
        motions = random_motions(dynamics.kinematics, 10, seed=4)
    except NoMotionError:
        J_inv = dynamics.kinematics.at(dynamics.kinematics.home).motion_jacobian  # singular everywhere, but not unknown
        A, _ = model.linear_model(model.of_pose(dynamics.kinematics.home), np.zeros(6))
        assert np.abs(A - J_inv.T).max() <= AGREE * np.abs(J_inv).max()
        return
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        wanted = dynamics.inverse(
            dynamics.kinematics.at(pose, mode=0), twist, acceleration, wrench=WRENCH, distribution=FREE
        ).effort
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
    tips = {}
    for closure in k.tables.closures:
        ends = ("predecessor", "successor")
        here, there = ends if closure["successor"] == 1 else ends[::-1]
        tips[int(closure[here])] = closure[f"{there}_point"]
    rods = [(e, x) for e, x in zip(model._visible, state.directions, strict=True) if e.body in tips]
    assert len(rods) == 6
    for rod, x in rods:  # 1.055 m long
        assert at.state["p"][rod.body] + 1.055 * x == pytest.approx(pose[:3] + tips[rod.body], abs=1e-12)
    assert set(model.seen) == {f"limb{i}_{part}" for i in (1, 2, 3) for part in ("arm", "a_rod", "b_rod")}
    assert model.measured == ()


def test_the_elements_of_a_parallelogram(of_gallery):
    """Both rods, and the links across them at either end."""
    model = ObservedLegs(of_gallery["delta_rr"].dynamics)
    parts = ("arm", "upper", "rod_a", "rod_b", "lower_corner")
    assert set(model.seen) == {f"limb{i}_{part}" for i in (1, 2, 3) for part in parts}
    x = dict(zip(model.names, model.of_pose(model.kinematics.home).directions, strict=True))
    assert x["limb1_rod_a"] == pytest.approx(x["limb1_rod_b"], abs=1e-12)


def test_no_trigonometric_function():
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(ast.parse(inspect.getsource(observed_legs)))
        if isinstance(node, ast.Call)
    }
    assert not called & {"sin", "cos", "tan", "arcsin", "arccos", "arctan", "atan2", "arctan2", "acos", "asin"}


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "quattro", "irsbot2"])
def test_noisy_directions_give_nearby_efforts(name, of_gallery):
    """A camera that errs by a milliradian moves the efforts by about as much, not by orders of magnitude."""
    model = ObservedLegs(of_gallery[name].dynamics)
    motions = random_motions(model.kinematics, 1, seed=2)
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
    with pytest.raises(ObservationError, match="do not reach the platform"):
        model.of_directions(directions | {"limb1_arm": -directions["limb1_arm"]}, rates)
    with pytest.raises(ObservationError, match="does not reach"):
        model.of_pose(delta.kinematics.home + np.array([0, 0, -5.0, 0, 0, 0, 0]))
    plates = ObservedLegs(of_gallery["h4"].dynamics)
    directions, rates, _, _ = seen_at(plates, plates.kinematics.home, np.zeros(6))
    with pytest.raises(ObservationError, match=r"do not reach the platform|no pose of the platform"):
        plates.of_directions(directions | {"limb1_arm": -directions["limb1_arm"]}, rates)
    legs = ObservedLegs(of_gallery["gough_stewart"].dynamics)
    directions, rates, lengths, speeds = seen_at(legs, legs.kinematics.home, np.zeros(6))
    with pytest.raises(ObservationError, match="position or the speed of joint 'limb1_leg' is missing"):
        legs.of_directions(directions, rates)
    with pytest.raises(ObservationError, match="not finite"):
        legs.of_directions(directions, rates, lengths | {"limb1_leg": np.inf}, speeds)
