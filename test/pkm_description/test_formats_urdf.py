# SPDX-License-Identifier: Apache-2.0
"""URDF whose loops are said in others' words: one four-bar in every dialect is the same robot."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism, load_model
from pkm_description.formats.convert import main
from pkm_description.formats.read import plus_text
from pkm_description.formats.urdf_dialects import to_constraints, to_tree, to_yaml
from pkm_description.load import expand_told
from pkm_dynamics import Dynamics

INERTIAL = (
    '<inertial><origin xyz="{0} 0 0"/><mass value="{1}"/>'
    '<inertia ixx="1e-5" ixy="0" ixz="0" iyy="{2}" iyz="0" izz="{2}"/></inertial>'
)
# A crank, a coupler and a rocker that stands askew in its own frame; the far pin is left to the dialect.
TREE = f"""<robot name="four_bar"><link name="ground"/>
  <link name="crank">{INERTIAL.format(0.1, 0.2, 7e-4)}</link>
  <link name="coupler">{INERTIAL.format(0.15, 0.3, 2e-3)}
    <visual><geometry><box size="0.3 0.02 0.02"/></geometry></visual></link>
  <link name="rocker">{INERTIAL.format(0.1, 0.2, 7e-4)}</link>
  <joint name="motor" type="revolute"><origin rpy="0 0 1.4"/><parent link="ground"/><child link="crank"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint>
  <joint name="pin" type="continuous"><origin xyz="0.2 0 0" rpy="0 0 -1.4"/><parent link="crank"/>
    <child link="coupler"/><axis xyz="0 0 1"/></joint>
  <joint name="foot" type="continuous"><origin xyz="0.3 0 0" rpy="1.5707963267948966 0 1.4"/><parent link="ground"/>
    <child link="rocker"/><axis xyz="0 1 0"/></joint>
  <link name="tip"/><joint name="to_tip" type="fixed"><origin xyz="0.3 0 0"/><axis xyz="0 0 0"/>
    <parent link="coupler"/><child link="tip"/></joint>
  <link name="top"/><joint name="to_top" type="fixed"><origin xyz="0.2 0 0" rpy="-1.5707963267948966 0 0"/>
    <parent link="rocker"/><child link="top"/></joint>
  %s
  <transmission name="t"><joint name="motor"/></transmission>
</robot>"""
ENDS = '<parent link="rocker"/><parent_origin xyz="0.2 0 0"/>%s<child link="coupler"/><child_origin xyz="0.3 0 0"/>%s'
AXES = ('<parent_axis xyz="0 1 0"/>', '<child_axis xyz="0 0 1"/>')
NAMED = {"platform": "coupler"}

DIALECTS = {
    "constraint": f'<constraint name="far" type="revolute_joint">{ENDS % AXES}</constraint>',
    "constraint, one axis": f'<constraint name="far" type="revolute">{ENDS % (AXES[0], "")}</constraint>',
    "loop_joint of CAD": '<loop_joint name="far" type="revolute">%s<axis xyz="0 1 0" frame="parent"/></loop_joint>'
    % (ENDS % ("", "")),
    "loop_joint of Isaac": '<loop_joint name="far" type="spherical"><link1 link="rocker" xyz="0.2 0 0" rpy="0 0 0"/>'
    '<link1 link="coupler" xyz="0.3 0 0" rpy="0 0 0"/></loop_joint>',
    "gazebo": '<gazebo><joint name="far" type="revolute"><pose>0.3 0 0 0 0 0</pose><parent>rocker</parent>'
    "<child>coupler</child><axis><xyz>0 0 1</xyz></axis></joint></gazebo>",
    "two parents": '<joint name="far" type="continuous"><origin xyz="0.2 0 0" rpy="-1.5707963267948966 0 0"/>'
    '<parent link="rocker"/><child link="tip"/><axis xyz="0 0 1"/></joint>',
    "loop without pkm": '<loop name="far" type="revolute"><predecessor link="rocker"><origin xyz="0.2 0 0"/>'
    '</predecessor><successor link="coupler"><origin xyz="0.3 0 0"/></successor><axis xyz="0 1 0"/>'
    '<axis2 xyz="0 0 1"/></loop>',
}
POINT = np.array([0.3 + 0.2 * np.cos(1.4), 0.2 * np.sin(1.4), 0.0]).tolist()
YAMLS = {
    "closures": f"closures:\n- {{link_a: rocker, link_b: coupler, point: {POINT}, axis: [0, 0, 2]}}\n"
    "independent: [motor]\n",
    "pin_loops": "pin_loops:\n- {name: far, parent: rocker, child: coupler, parent_xyz: [0.2, 0, 0],\n"
    "   child_xyz: [0.3, 0, 0], axis: Y}\n",
    "ball_loops": "ball_loops:\n- {name: far, parent: rocker, child: coupler, parent_xyz: [0.2, 0, 0],\n"
    "   child_xyz: [0.3, 0, 0]}\n",
    "extended": "closed_loop: [[to_top, to_tip]]\ntype: ['3d']\nname_mot: [motor]\n",
}


@pytest.fixture(scope="module")
def effort():
    """Of the four-bar at home under an acceleration, by the dialect that is ours."""
    return torque(load_mechanism(TREE % DIALECTS["loop without pkm"], NAMED))


def torque(mechanism):
    dynamics = Dynamics(mechanism, friction=False)
    k = dynamics.kinematics
    assert k.mobility == 1
    np.testing.assert_allclose(k.home[:3], [0.2 * np.cos(1.4), 0.2 * np.sin(1.4), 0.0], atol=1e-12)
    basis = k.subspace(k.home)
    return dynamics.inverse(k.home, basis @ [0.3], basis @ [2.0]).effort


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects(dialect, effort):
    mechanism = load_mechanism(TREE % DIALECTS[dialect], NAMED)
    assert mechanism.actuated_joints == ("motor",)
    assert mechanism.base_link == "ground"
    np.testing.assert_allclose(torque(mechanism), effort, rtol=1e-10)


@pytest.mark.parametrize("kind", YAMLS)
def test_yaml_beside_urdf(kind, effort, tmp_path):
    (tmp_path / "urdf").mkdir()
    (tmp_path / "urdf" / "four_bar.urdf").write_text(TREE % "")
    file = tmp_path / "loop_closures.yaml"
    file.write_text(YAMLS[kind])
    np.testing.assert_allclose(torque(load_mechanism(file, NAMED)), effort, rtol=1e-10)


def test_a_motor_that_follows_another_is_not_driven(tmp_path):
    geared = '<link name="wheel"/><joint name="gear" type="continuous"><parent link="ground"/><child link="wheel"/>'
    geared += '<axis xyz="0 0 1"/><mimic joint="motor"/></joint>'
    (tmp_path / "robot.urdf").write_text(TREE % geared)
    (tmp_path / "robot.yaml").write_text(YAMLS["extended"].replace("[motor]", "[motor, gear]"))
    model = load_model(tmp_path / "robot.yaml")
    assert model.actuated_joints == ("motor",)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("revolute_joint", "screw_joint", "'screw' is not supported"),
        ('<child link="coupler"/><child_origin', '<child link="cuopler"/><child_origin', "no body 'cuopler'"),
        ('<child link="coupler"/><child_origin', '<child link="world"/><child_origin', "no body 'world'"),
        ('<robot name="four_bar"', '<robot version="7.0" name="four_bar"', "version '7.0' is not known"),
        (AXES[0], "", "needs an axis"),
        ('<child link="crank"/>', '<child link="cranck"/>', "no link 'cranck'"),
        ('<parent link="ground"/><child link="crank"/>', '<parent link="coupler"/><child link="crank"/>', "cycle"),
        ('<joint name="motor"/>', '<joint name="motr"/>', "'motr' is not a joint"),
        ("<transmission", f"{DIALECTS['constraint']}<transmission", "two loops have this name"),
        ('mass value="0.3"', 'mass value="-0.3"', "coupler"),
    ],
)
def test_what_is_wrong_is_named(old, new, words):
    text = TREE % DIALECTS["constraint"]
    assert old in text
    with pytest.raises(DescriptionError, match=words) as raised:
        load_mechanism(text.replace(old, new), NAMED)
    assert raised.value.remedy
    assert "\n" not in str(raised.value)


def test_bodies_without_a_mass_are_told():
    without = TREE.replace(INERTIAL.format(0.15, 0.3, 2e-3), "") % DIALECTS["constraint"]
    assert "no mass is stated: coupler" in plus_text(without, NAMED)[1]
    assert not any("no mass" in note for note in plus_text(TREE % DIALECTS["constraint"], NAMED)[1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("closures: [", "line 1"),
        ("gains: 3\n", "it defines no loop"),
        ("closures:\n- {link_a: rocker}\n", "unknown form"),
        ("closures:\n- {link_a: roker, link_b: coupler, point: [0, 0, 0], axis: [0, 0, 1]}\n", "no link 'roker'"),
        (YAMLS["ball_loops"].replace("[0.3, 0, 0]", "[0.3, 0]"), "loop far: child_xyz .* not made of 3"),
        (YAMLS["closures"].replace("[0, 0, 2]", "[0, 0, 0]"), "loop closure1: the length of axis is zero"),
        (YAMLS["pin_loops"] + YAMLS["pin_loops"].partition("\n")[2], "two loops have this name"),
        ("closed_loop: [[a, b]]\ntype: []\n", "unknown form"),
        ("closed_loop: [[a, b]]\ntype: ['3d']\n", "no body 'a'"),
        (YAMLS["pin_loops"] + "version: 99\n", "version 99 is not known; leave it out"),
        (YAMLS["pin_loops"] + "weld_loops: []\ncouplings: []\n", "weld_loops, couplings is not known; this format has"),
    ],
)
def test_a_wrong_yaml_is_named(text, words, tmp_path):
    (tmp_path / "robot.urdf").write_text(TREE % "")
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(DescriptionError, match=words) as raised:
        load_mechanism(tmp_path / "robot.yaml", NAMED)
    assert str(raised.value).count("robot.yaml") == 1
    (tmp_path / "robot.urdf").unlink()
    (tmp_path / "robot.yaml").write_text(YAMLS["closures"])
    with pytest.raises(DescriptionError, match="no URDF file is in its folder"):
        load_mechanism(tmp_path / "robot.yaml", NAMED)


def test_the_tree_and_its_yaml_are_the_robot(of_gallery, tmp_path):
    """What a reader of plain URDF gets, and with the YAML beside it the loops again."""
    mechanism = of_gallery["five_bar"].kinematics.mechanism
    text = to_tree(mechanism)[0]
    assert "<loop" not in text
    (tmp_path / "another.urdf").write_text("<robot name='another'/>")
    file = tmp_path / "loops.yaml"
    file.write_text(to_yaml(mechanism)[0])
    with pytest.raises(DescriptionError, match=r"five_bar_tree\.urdf is not in its folder"):
        load_mechanism(file)
    (tmp_path / "five_bar_tree.urdf").write_text(text)
    back = load_mechanism(file, {"platform": mechanism.platform_link})
    assert {loop.name for loop in back.loops} == {loop.name for loop in mechanism.loops}
    assert back.mobility.total == mechanism.mobility.total


def test_loops_that_yaml_has_no_word_for_are_listed():
    mechanism = load_mechanism("dymo_3uru")
    lost = [loop.name for loop in mechanism.loops if loop.type.value not in ("revolute", "spherical")]
    notes = " ".join(to_yaml(mechanism)[1])
    assert lost
    assert all(name in notes for name in lost)


def test_what_urdf_cannot_say_is_listed(of_gallery):
    mechanism = of_gallery["five_bar"].kinematics.mechanism
    notes = " ".join(to_tree(mechanism)[1])
    assert all(loop.name in notes for loop in mechanism.loops)
    assert not to_constraints(mechanism)[1]


def test_a_joint_with_a_spring_alone_is_one_that_ros_reads(of_gallery):
    """urdfdom refuses a <dynamics> without damping and friction, and with it the whole file."""
    before, joint, after = re.split(
        r'(<joint name="left_elbow" type.*?</joint>)', of_gallery["five_bar"].kinematics.mechanism.urdf, flags=re.DOTALL
    )
    sprung = joint.replace('damping="0" friction="0"', 'spring_stiffness="2" spring_reference="0.1"')
    assert sprung != joint
    mechanism = load_mechanism(before + sprung + after)
    for text in (mechanism.urdf, to_tree(mechanism)[0], to_constraints(mechanism)[0]):
        assert ET.fromstring(text).find("joint[@name='left_elbow']/dynamics").get("damping") == "0"


def test_choices_of_the_reader_are_told():
    notes = plus_text(TREE % DIALECTS["constraint"], NAMED)[1]
    assert "loops are cut at far (revolute)" in notes


def test_command_refuses_a_wrong_suffix(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["delta", "--to", "sdf", "-o", str(tmp_path / "delta.png")])
    assert ".sdf" in capsys.readouterr().err
    assert main(["delta", "--to", "mjcf", "-o", str(tmp_path / "delta.xml")]) == 0
    pytest.importorskip("mujoco")
    assert "apart in MuJoCo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rest_length", "restlength", "did you mean 'rest_length'"),
        ('link="platform"', 'link="platfrom"', "did you mean 'platform'"),
    ],
)
def test_a_typo_in_a_spring_has_a_hint(old, new, words):
    ends = '<from link="base_link" xyz="0 0 0"/><to link="platform" xyz="0 0 0.1"/>'
    spring = f'<spring name="s" stiffness="10" rest_length="0.1">{ends}</spring>'
    text = load_mechanism("delta").urdf.replace("</robot>", f"{spring.replace(old, new)}</robot>")
    with pytest.raises(DescriptionError, match=words):
        load_mechanism(text)


def test_a_yaml_beside_an_empty_urdf_and_its_unknown_keys(tmp_path):
    (tmp_path / "robot.yaml").write_text(YAMLS["pin_loops"] + "colour: red\n")
    (tmp_path / "robot.urdf").write_text("<robot name='empty'/>")
    with pytest.raises(DescriptionError, match=r"robot.urdf: it has no link"):
        load_mechanism(tmp_path / "robot.yaml", NAMED)
    (tmp_path / "robot.urdf").write_text(TREE % "")
    assert "not read: colour of robot.yaml" in expand_told(tmp_path / "robot.yaml", NAMED)[2]


def test_a_yaml_beside_a_urdf_with_the_same_loops_says_what_to_give(tmp_path):
    (tmp_path / "robot.yaml").write_text(YAMLS["pin_loops"])
    (tmp_path / "robot.urdf").write_text(TREE % CAD)
    with pytest.raises(DescriptionError, match=r"the URDF .* closes far, too; give that URDF alone"):
        load_model(tmp_path / "robot.yaml")


@pytest.mark.parametrize("ending", ["sdf", "usda", "xml"])
def test_a_missing_file_names_the_endings_of_all_formats(ending, tmp_path):
    (tmp_path / f"ankle.{ending}").write_text("")
    with pytest.raises(DescriptionError, match=rf"\.sdf, \.usda or \.yaml file; did you mean .*ankle\.{ending}\?"):
        load_mechanism(tmp_path / f"ankel.{ending}")


SWAPPED = (
    '<loop_joint name="far" type="spherical"><link1 link="rocker" xyz="0.3 0 0"/>'
    '<link1 link="coupler" xyz="0.2 0 0"/></loop_joint>'
)
CAD = DIALECTS["loop_joint of CAD"]


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (CAD.replace("loop_joint", "loopjoint"), "'loopjoint' is not known; did you mean 'loop_joint'"),
        (CAD.replace("loop_joint", "LoopJoint"), "did you mean 'loop_joint'"),
        (CAD.replace("loop_joint", "loop_closure"), "did you mean 'loop_joint'"),
        (CAD.replace("child_origin", "child_orgin"), "did you mean 'child_origin'"),
        (SWAPPED, "its ends, on rocker and on coupler, are 0."),
        (CAD.replace('<child_origin xyz="0.3 0 0"/>', ""), "it has no <child_origin>"),
        (CAD.replace('"0.3 0 0"', '"300 0 0"'), "write m, 300 looks like mm"),
        (DIALECTS["two parents"].replace("0.2 0 0", "0.25 0 0"), "tip has two parents, rocker and another"),
        (DIALECTS["gazebo"].replace("<pose>0.3 0 0 0 0 0</pose>", ""), "it has no <pose>"),
        (SWAPPED.replace("coupler", "rocker"), "it connects 'rocker' to itself"),
    ],
)
def test_loop_in_wrong_words_or_at_a_wrong_place_is_no_other_robot(loop, words):
    for load, given in ((load_model, {}), (load_mechanism, NAMED)):
        with pytest.raises(DescriptionError, match=re.escape(words)):
            load(TREE % loop, given)


def test_drawing_need_not_be_closed_where_home_is_stated():
    turned = TREE.replace('<origin rpy="0 0 1.4"/>', '<origin rpy="0 0 1.3"/>') % CAD
    with pytest.raises(DescriptionError, match="m apart as drawn"):
        load_model(turned)
    stated = turned.replace("</robot>", '<pkm><home><joint name="motor" position="0.1"/></home></pkm></robot>')
    assert load_model(stated).home["motor"] == pytest.approx(0.1, abs=1e-9)


def test_unknown_elements_are_named(tmp_path, capsys):
    odd = '<plume/><gazebo/><sensor name="eye"/></robot>'
    (tmp_path / "odd.urdf").write_text((TREE % CAD).replace("</robot>", odd))
    notes = load_model(tmp_path / "odd.urdf").notes
    assert {"not read: <plume>", "not read: <gazebo> of the robot", "not read: <sensor> eye"} <= set(notes)
    assert "not read: <plume>" in load_model((TREE % "").replace("</robot>", odd)).notes
    foreign = re.sub("<(/?)loop_joint", r"<\1drake:loop_joint", TREE % CAD).replace(
        "<robot ", '<robot xmlns:drake="http://drake.mit.edu" '
    )
    with pytest.raises(DescriptionError, match=r"it is of the namespace http://drake\.mit\.edu; write it without one"):
        load_model(foreign)
    assert main([str(tmp_path / "odd.urdf"), "--platform", "coupler", "-o", str(tmp_path / "out.urdf")]) == 0
    assert capsys.readouterr().err.count("<plume>") == 1
