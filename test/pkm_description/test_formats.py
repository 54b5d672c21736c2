# SPDX-License-Identifier: Apache-2.0
"""Robots through the files of other tools and back: the same bodies, the same home, the same efforts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.bodies_and_joints import SMALL
from pkm_description.formats.convert import WRITERS, main
from pkm_description.formats.read import plus_text
from pkm_dynamics import Dynamics
from test.oracles.sprung_robots import sprung

EXACT = 1e-10  # of the largest effort; m and rad at home

# A four-bar as Gazebo's users write it: links drawn in the model, a frame, a loop that is a second parent.
FOUR_BAR = """<sdf version="1.9"><model name="four_bar">
  <frame name="right_foot"><pose>0.3 0 0 0 0 0</pose></frame>
  <link name="crank"><pose degrees="true">0 0 0 0 0 90</pose>
    <inertial><mass>0.2</mass><pose>0.1 0 0 0 0 0</pose>
      <inertia><ixx>1e-5</ixx><iyy>7e-4</iyy><izz>7e-4</izz></inertia></inertial>
    <visual name="v"><geometry><box><size>0.2 0.02 0.02</size></box></geometry></visual></link>
  <link name="coupler"><pose>0 0.2 0 0 0 0</pose>
    <inertial><mass>0.3</mass><pose>0.15 0 0 0 0 0</pose>
      <inertia><ixx>1e-5</ixx><iyy>2e-3</iyy><izz>2e-3</izz></inertia></inertial></link>
  <link name="rocker"><pose relative_to="right_foot">0 0 0 0 0 1.5707963267948966</pose>
    <inertial><mass>0.2</mass><pose>0.1 0 0 0 0 0</pose>
      <inertia><ixx>1e-5</ixx><iyy>7e-4</iyy><izz>7e-4</izz></inertia></inertial></link>
  <joint name="motor" type="revolute"><parent>world</parent><child>crank</child>
    <axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper><effort>5</effort></limit>
    <dynamics><damping>0.1</damping></dynamics></axis></joint>
  <joint name="pin" type="continuous"><parent>crank</parent><child>coupler</child><axis><xyz>0 0 1</xyz></axis></joint>
  <joint name="foot" type="continuous"><parent>world</parent><child>rocker</child><axis><xyz>0 0 1</xyz></axis></joint>
  <joint name="far_pin" type="revolute"><parent>rocker</parent><child>coupler</child><pose>0.3 0 0 0 0 0</pose>
    <axis><xyz expressed_in="__model__">0 0 1</xyz><limit><lower>-1e16</lower><upper>1e16</upper></limit></axis></joint>
</model></sdf>"""
NAMED = {"platform": "coupler", "actuated": "motor"}


def efforts(dynamics, states):
    return dynamics.inverse(states.pose, states.twist, states.acceleration).effort


@pytest.mark.parametrize("name", ["delta", "five_bar"])
def test_springs_come_back(name, of_gallery):
    """Those of joints in SDF's own words, those between links in the remark, which is said."""
    mechanism, states = sprung(name), of_gallery[name].states
    text, notes = WRITERS["sdf"](mechanism)
    assert any("springs between links" in note for note in notes)
    assert not any("bearings" in note for note in notes)
    expected = efforts(Dynamics(mechanism, friction=False), states)
    without = efforts(of_gallery[name].dynamics, states)
    assert np.abs(expected - without).max() > 0.01 * np.abs(without).max()
    found = efforts(Dynamics(load_mechanism(text), friction=False), states)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=EXACT * np.abs(expected).max())


def test_what_a_cut_joint_loses_is_told():
    given = NAMED | {"actuated": "motor,pin,foot"}
    stiff = "<axis><dynamics><spring_stiffness>1</spring_stiffness></dynamics>"
    text = FOUR_BAR.replace("<axis><xyz expressed_in", f"{stiff}<xyz expressed_in")
    assert any("far_pin" in note and "springs" in note for note in plus_text(text, given)[1])


def test_a_file_says_a_delta_without_our_remark(delta):
    """What another tool reads is the robot but for `SMALL` and the rotors."""
    mechanism = delta.kinematics.mechanism
    text = re.sub("<pkm:remark>.*?</pkm:remark>", "", WRITERS["sdf"](mechanism)[0], flags=re.DOTALL)
    given = {"platform": mechanism.platform_link, "base": mechanism.base_link}
    back = load_mechanism(text, given | {"actuated": ",".join(f"{n}_joint" for n in mechanism.actuated_joints)})
    np.testing.assert_allclose(back.home, mechanism.home, atol=EXACT)
    without_rotors = re.sub('<param name="rotor_inertia">.*?</param>', "", mechanism.urdf)
    expected = efforts(Dynamics(load_mechanism(without_rotors), friction=False), delta.states)
    found = efforts(Dynamics(back, friction=False), delta.states)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=100 * SMALL * np.nanmax(np.abs(expected)))


def test_four_bar_of_sdf():
    mechanism = load_mechanism(FOUR_BAR, NAMED)
    assert [loop.name for loop in mechanism.loops] == ["far_pin"]
    assert mechanism.mobility.platform == 1
    assert mechanism.joint_named["motor"].limits.effort == 5.0
    np.testing.assert_allclose(mechanism.home[:3, 3], [0.0, 0.2, 0.0], atol=1e-12)
    # a parallelogram: the coupler keeps its attitude; gravity along -z does nothing, the motor's torque is inertia's
    dynamics = Dynamics(mechanism, friction=False)
    turning = 2 * (7e-4 + 0.2 * 0.1**2) + 0.3 * 0.2**2
    pose = [0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 1.0]
    effort = dynamics.inverse(pose, None, [-0.2, 0.0, 0.0, 0.0, 0.0, 0.0]).effort
    np.testing.assert_allclose(effort, [turning], rtol=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('version="1.9"', 'version="2.0"', "version '2.0'"),
        ("<parent>rocker</parent>", "<parent>rockr</parent>", "no link 'rockr'"),
        ('relative_to="right_foot"', 'relative_to="left"', "no frame 'left'"),
        ("<mass>0.3</mass>", "<mass>-0.3</mass>", "coupler"),
        ('type="continuous"', 'type="screw"', "'screw' is not supported"),
        ("<damping>0.1</damping>", "<spring_stiffness>-1</spring_stiffness>", "stiffness"),
        (
            '<frame name="right_foot"><pose>',
            '<frame name="right_foot"><pose relative_to="rocker">',
            "depends on itself",
        ),
        ("<xyz>0 0 1</xyz>", "<xyz>0 0 0</xyz>", "length is zero"),
        ("0.1 0 0 0 0 0", "0.1 0 0", "write 6"),
        ("0.1 0 0 0 0 0", "1e400 0 0 0 0 0", "not finite"),
    ],
)
def test_what_is_wrong_is_named(old, new, words):
    with pytest.raises(DescriptionError, match=words) as raised:
        load_mechanism(FOUR_BAR.replace(old, new), NAMED)
    assert raised.value.remedy
    assert "\n" not in str(raised.value)


def test_frames_in_a_long_row_are_refused():
    row = "".join(f'<frame name="f{n}" attached_to="f{n + 1}"/>' for n in range(3000))
    text = FOUR_BAR.replace("<link", f'{row}<frame name="f3000"/><link', 1).replace('"right_foot">0', '"f0">0')
    with pytest.raises(DescriptionError, match="depend on each other"):
        load_mechanism(text, NAMED)


def test_what_must_be_named():
    for given, words in (({}, "drives no joint"), ({"actuated": "motr"}, "motr"), ({"motor": "motor"}, "unknown")):
        with pytest.raises(DescriptionError, match=words):
            load_mechanism(FOUR_BAR, given)
    with pytest.raises(DescriptionError, match="none can be cut"):
        load_mechanism(FOUR_BAR, NAMED | {"actuated": "motor,pin,foot,far_pin"})


def test_the_cut_is_passive_and_told():
    text, notes = plus_text(FOUR_BAR, NAMED | {"actuated": "far_pin"})
    assert '<loop name="foot"' in text
    assert "loops are cut at foot (continuous)" in notes


def test_command(tmp_path, capsys):
    file, back = tmp_path / "delta.sdf", tmp_path / "back.urdf"
    assert main(["delta", "--to", "sdf", "-o", str(file)]) == 0
    assert "task coordinates" in capsys.readouterr().err
    assert main([str(file), "--to", "urdf+", "-o", str(back)]) == 0
    assert load_mechanism(str(back)).platform_chain == load_mechanism("delta").platform_chain
    file.write_text(FOUR_BAR.replace("1.9", "3.0"))
    assert main([str(file), "--to", "urdf+"]) == 1
    assert str(file) in capsys.readouterr().err
    assert main(["delta", "--to", "sdf", "-o", str(tmp_path / "nowhere" / "delta.sdf")]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_an_ignored_option_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["five_bar", "--to", "mjcf", "--balls", "hinges"])
    assert "--balls hinges is only for sdf and usd" in capsys.readouterr().err


CRANK_AND_ROCKER = """<mujoco model="fourbar"><worldbody>
  <body name="crank"><joint name="motor" axis="0 1 0" range="-60 60"/>
    <inertial pos="0 0 .1" mass="1" diaginertia=".01 .01 .01"/>
    <body name="coupler" pos="0 0 .2"><joint name="p1" axis="0 1 0"/>
      <inertial pos=".15 0 0" mass="1" diaginertia=".01 .01 .01"/></body></body>
  <body name="rocker" pos=".3 0 0"><joint name="p2" axis="0 1 0"/>
    <inertial pos="0 0 .1" mass="1" diaginertia=".01 .01 .01"/></body></worldbody>
  <equality><connect name="c" body1="coupler" body2="rocker" anchor=".3 0 0"/></equality>
  <actuator><motor name="m" joint="motor"/></actuator></mujoco>"""


def test_mjcf_is_named_where_its_translation_fails(tmp_path):
    file = tmp_path / "contrary.xml"
    file.write_text(
        CRANK_AND_ROCKER.replace("<connect", '<joint joint1="motor" joint2="p2" polycoef=".5 1 0 0 0"/><connect')
    )
    with pytest.raises(DescriptionError, match=r"contrary\.xml, as URDF\+"):
        load_mechanism(file, NAMED)
    with pytest.raises(DescriptionError, match="not finite"):
        load_mechanism(CRANK_AND_ROCKER.replace('anchor=".3', 'anchor="1e400'), NAMED)


def test_mjcf_without_a_mass_is_told():
    mass = '<inertial pos=".15 0 0" mass="1" diaginertia=".01 .01 .01"/>'
    notes = [plus_text(text, NAMED)[1] for text in (CRANK_AND_ROCKER, CRANK_AND_ROCKER.replace(mass, ""))]
    assert [any("no mass is stated" in note for note in some) for some in notes] == [False, True]
