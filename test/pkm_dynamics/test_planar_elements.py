# SPDX-License-Identifier: Apache-2.0
"""The kinematic-element method against the main formulation: no code in common, the same efforts."""

from __future__ import annotations

import ast
import inspect

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from test.oracles import planar_elements
from test.oracles.planar_elements import (
    PAPER_ADDITIONS,
    PAPER_MULTIPLICATIONS,
    ElementsError,
    PlanarElements,
)

AGREE = 1e-10  # of the largest effort


def lopsided_upright_five_bar() -> str:
    """The five-bar upright, with limbs of different size, mass centres off the bars, and a reversed joint."""
    text = load_mechanism("five_bar").urdf.replace("<pkm ", '<pkm gravity="3.0 -9.0 1.0" ', 1)
    assert text.count("<mass value=") >= 5
    first = text.index("<inertial>", text.index('<link name="left_forearm"'))
    end = text.index("</inertial>", first)
    body = (
        '<inertial><origin xyz="0.17 0.03 0.01"/><mass value="0.7"/>'
        '<inertia ixx="0.004" iyy="0.009" izz="0.008" ixy="0.001" ixz="0.0005" iyz="0.0002"/>'
    )
    return text[:first] + body + text[end:]


@pytest.fixture(params=["five_bar", "lopsided"])
def mechanism(request):
    return load_mechanism(lopsided_upright_five_bar() if request.param == "lopsided" else request.param)


@pytest.mark.parametrize("friction", [True, False])
def test_efforts_agree_with_the_main_formulation(mechanism, friction):
    dynamics = Dynamics(mechanism, friction=friction)
    model = PlanarElements(dynamics)
    motions = random_motions(dynamics.kinematics, 100, seed=4)
    wrench = np.array([3.0, -2.0, 0.0, 0.0, 0.0, 0.0])
    wanted = dynamics.inverse(motions.pose, motions.twist, motions.acceleration, wrench=wrench).effort
    for k in range(100):
        state = model.state_of_pose(motions.pose[k], motions.twist[k])
        found = model.inverse(state, motions.acceleration[k], wrench)
        assert np.abs(found - wanted[k]).max() <= AGREE * np.abs(wanted).max()


def test_state_from_encoders_and_from_observed_legs_is_the_same(mechanism):
    dynamics = Dynamics(mechanism)
    model = PlanarElements(dynamics)
    motions = random_motions(dynamics.kinematics, 30, seed=6)
    motion = dynamics.kinematics.motion(motions.pose, motions.twist)
    for k in range(30):
        state = model.state_of_pose(motions.pose[k], motions.twist[k])
        encoders = model.state_of_encoders(motion.actuated[k], motion.actuated_velocities[k], near=motions.pose[k])
        observed = model.state_of_directions(*model.directions(state))
        wanted = model.inverse(state, motions.acceleration[k])
        for other in (encoders, observed):
            found = model.inverse(other, motions.acceleration[k])
            assert np.abs(found - wanted).max() <= AGREE * np.abs(wanted).max()


def test_observed_directions_are_those_of_the_bodies():
    """Directions of the bars as a camera sees them, from the kinematics' own placement of the bodies."""
    dynamics = Dynamics(load_mechanism("five_bar"))
    model = PlanarElements(dynamics)
    pose = random_motions(dynamics.kinematics, 1, seed=8).pose[0]
    q = dict(zip(dynamics.kinematics.joint_names, dynamics.kinematics.inverse(pose).joints, strict=True))
    x, _ = model.directions(model.state_of_pose(pose))
    for k, side in enumerate(("left", "right")):
        arm = q[f"{side}_arm"]
        forearm = arm + q[f"{side}_elbow"]
        assert x[k, 0] == pytest.approx([np.cos(arm), np.sin(arm), 0.0], abs=1e-12)
        assert x[k, 1] == pytest.approx([np.cos(forearm), np.sin(forearm), 0.0], abs=1e-12)


@pytest.mark.parametrize(("friction", "wanted"), [(False, (87, 142, 7)), (True, (103, 158, 7))])
def test_operations_are_those_that_the_documentation_states(friction, wanted):
    """From the state to the efforts: under a third of what the paper counts for its form in three dimensions."""
    model = PlanarElements(Dynamics(load_mechanism("five_bar")))
    additions, multiplications, divisions = model.operation_count(friction)
    assert (additions, multiplications, divisions) == wanted
    assert 3 * additions < PAPER_ADDITIONS
    assert 3 * (multiplications + divisions) < PAPER_MULTIPLICATIONS


def test_no_trigonometric_function_in_the_model():
    """Only the reading of an encoder, which is an angle, needs one."""
    tree = ast.parse(inspect.getsource(planar_elements))
    users = {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and (getattr(call.func, "id", "") or getattr(call.func, "attr", ""))
        in {"sin", "cos", "tan", "atan2", "arctan2"}
    }
    assert users == {"state_of_encoders", "_home_sides"}


@pytest.mark.parametrize("name", ["delta", "planar_3rrr", "two_rpr", "gough_stewart"])
def test_other_robots_are_refused(name):
    with pytest.raises(ElementsError):
        PlanarElements(Dynamics(load_mechanism(name)))


def test_states_that_cannot_be_are_refused():
    model = PlanarElements(Dynamics(load_mechanism("five_bar")))
    with pytest.raises(ElementsError, match="does not reach"):
        model.state_of_pose([2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(ElementsError, match="too far apart"):
        model.state_of_encoders([np.pi, 0.0], [0.0, 0.0])
    with pytest.raises(ElementsError, match="expected"):
        model.state_of_directions(np.zeros((2, 3)), np.zeros((2, 3)))
