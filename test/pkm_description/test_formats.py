# SPDX-License-Identifier: Apache-2.0
"""Robots through the files of other tools and back: the same bodies, the same home, the same efforts."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from pkm_bringup.command_line import export_robot
from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.bodies_and_joints import SMALL
from pkm_description.formats.convert import WRITERS, main
from pkm_description.formats.read import assembly_of, plus_text
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
        ("<mass>0.3</mass>", "<mas>0.3</mas>", "did you mean 'mass'"),
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


def test_what_has_no_place_here_is_told():
    text = re.sub("<inertia>.*?</inertia>", "", FOUR_BAR, count=1, flags=re.DOTALL)
    assert text != FOUR_BAR
    text = text.replace("</model>", '<gripper name="g"/></model>').replace("</link>", '<sensor name="s"/></link>', 1)
    notes = " ".join(plus_text(text, NAMED)[1])
    assert re.search(r"not read: <gripper>.* not read: <sensor> of \w+ ", notes)
    assert re.search(r"no <inertia> is stated, which is 1 kg m\^2 in SDF: \w+", notes)


def test_gravity_is_said_in_the_frame_of_the_base():
    """The world's pulls down, on a model that is turned, and a base that is turned in it."""
    turned = re.sub("(<model [^>]*>)", r"\1<pose>0 0 1 1.5707963267948966 0 0</pose>", FOUR_BAR, count=1)
    assert turned != FOUR_BAR
    np.testing.assert_allclose(load_mechanism(turned, NAMED).gravity, (0.0, -9.81, 0.0), atol=1e-9)


@pytest.mark.parametrize("gravity", ["2.9 1.9 9.2", "0 0 9.81", "0 -9.81 0", "0 0 -9.81", "0 0 0"])
def test_a_robot_that_hangs_is_turned_in_the_world_of_sdf(gravity):
    """Without our remark, as others read it, the world's pull has the direction that the robot's has."""
    robot = load_mechanism(re.sub('gravity="[^"]*"', f'gravity="{gravity}"', load_mechanism("delta").urdf))
    own = np.array(gravity.split(), dtype=float)
    np.testing.assert_allclose(robot.gravity, own, atol=1e-12)
    text = re.sub("<pkm:remark>.*?</pkm:remark>", "", WRITERS["sdf"](robot)[0], flags=re.DOTALL)
    read = assembly_of(text).gravity
    np.testing.assert_allclose(read, 9.81 * own / np.linalg.norm(own) if own.any() else (0, 0, -9.81), atol=1e-12)


def test_a_plugin_that_drives_a_joint_is_read():
    drives, other = '<plugin name="J"><joint_name>motor</joint_name></plugin>', '<plugin name="Wind"/></model>'
    notes = plus_text(FOUR_BAR.replace("</model>", drives + other), {"platform": "coupler"})[1]
    assert [note for note in notes if "plugin" in note] == ["not read: <plugin> Wind"]


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
    assert main(["delta", "-o", str(file)]) == 0  # of the kind that its name says
    assert "task coordinates" in capsys.readouterr().err
    assert main([str(file), "--to", "urdf+", "-o", str(back)]) == 0
    assert load_mechanism(str(back)).platform_chain == load_mechanism("delta").platform_chain
    file.write_text(FOUR_BAR.replace("1.9", "3.0"))
    assert main([str(file), "--to", "urdf+"]) == 2
    assert str(file) in capsys.readouterr().err
    assert main(["delta", "--to", "sdf", "-o", str(tmp_path / "nowhere" / "delta.sdf")]) == 2
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


# What a robot may have beside bodies, joints and loops: where it is written into a five-bar, how, a number of it, and
# by format the words of the note about it. Without such words the format says that number where other tools read it,
# SDF counted from home.
DRIVE = '<joint name="left_arm">\n      <command_interface name="effort"/>'
ARM = '<limit effort="30" lower="-3.6" upper="3.6" velocity="20"/>\n    <dynamics damping="0.05" friction="0.1"/>'
ELBOW = '<limit effort="0" lower="-3.2" upper="3.2" velocity="0"/>\n    <dynamics damping="0" friction="0"/>'
ROTOR = '<param name="gear_ratio">1</param>\n      <param name="rotor_inertia">0</param>'
SPRING = """<spring name="coil" stiffness="71.25" rest_length="0.1">
    <from link="base_link" xyz="0 0.1 0"/><to link="platform" xyz="0 0 0"/></spring>"""
PULLS = '><param name="min">0</param><param name="max">19.5</param></command_interface>'
SPHERE = '<collision><geometry><sphere radius="0.0375"/></geometry></collision>'
IMU = '<gazebo reference="platform"><sensor name="imu"><update_rate>775</update_rate></sensor></gazebo>'
FELT = '<sensor name="ft"><param name="rate">775</param></sensor></ros2_control>'
BELT = """<transmission name="belt"><joint name="left_arm"/>
    <actuator name="m"><mechanicalReduction>77.5</mechanicalReduction></actuator></transmission>"""
BEAM = '<beam from="0 0 0" to="0.4 0 0" E="7e10" G="2.6e10" radius="0.01"/>'
SIMULATORS = "mjcf", "sdf", "usd"
PARTS = dict.fromkeys(SIMULATORS, "stiffness of beams and bearings, left_")
REMARK = dict.fromkeys(SIMULATORS, "only in the remark")
WHAT_IT_HAS = {
    "velocity of a drive": (ARM, ARM.replace('"20"', '"17.25"'), 17.25, {"mjcf": "limits of velocity of left_arm"}),
    "effort of a drive": (ARM, ARM.replace('"30"', '"27.25"'), 27.25, {}),
    "range of a drive": (ARM, ARM.replace('"3.6"', '"3.625"'), (3.625, 3.625 - 2.3137), {}),
    "damping": (ARM, ARM.replace('"0.05"', '"0.0625"'), 0.0625,
        {"usd": "only as attributes of Newton: damping of left_arm"}),
    "friction": (ARM, ARM.replace('"0.1"', '"0.1875"'), 0.1875, {}),
    "velocity of a passive joint": (
        ELBOW, ELBOW.replace('velocity="0"', 'velocity="17.25"'), 17.25,
        {"mjcf": "limits of velocity of left_arm, left_elbow"},
    ),
    "effort of a passive joint": (
        ELBOW, ELBOW.replace('effort="0"', 'effort="27.25"'), 27.25,
        {"mjcf": "effort of passive joints, left_elbow", "usd": "limits of effort of left_elbow"},
    ),
    "range open at one end": (
        ELBOW, ELBOW.replace('upper="3.2"', "").replace("-3.2", "-3.125"), (-3.125, -1.420998),
        {"mjcf": "open at one end, of left_elbow"},
    ),
    "armature of a passive joint": (
        ELBOW, ELBOW.replace("friction=", 'armature="0.1875" friction='), 0.1875,
        {"sdf": "armature of passive joints, left_elbow"},
    ),
    "spring of a joint": (
        ELBOW, ELBOW.replace("friction=", 'spring_stiffness="7.75" friction='), 7.75,
        dict.fromkeys(("urdf", "yaml"), "left out: springs of joints left_elbow")
        | {"urdf+constraint": "skip: springs, left_elbow"},
    ),
    "spring between links": (
        "<pkm ", SPRING + "<pkm ", 71.25,
        dict.fromkeys(("urdf", "yaml"), "<spring> coil") | REMARK
        | {"mjcf": "", "urdf+constraint": "skip: springs, coil"},
    ),
    "bearing": (
        ELBOW, ELBOW + '<bearing radial="1e6"/>', 1e6,
        PARTS | dict.fromkeys(("urdf", "urdf+constraint", "yaml"), "<bearing> left_elbow"),
    ),
    "beam": (
        '<link name="left_forearm">', f'<link name="left_forearm">{BEAM}', 7e10,
        PARTS | dict.fromkeys(("urdf", "urdf+constraint", "yaml"), "<beam> left_forearm"),
    ),
    "rotor": (ROTOR, ROTOR.replace(">0<", ">0.0078125<"), 0.0078125, {"sdf": "the inertia of their rotors"}),
    "gear ratio": (
        ROTOR, ROTOR.replace(">1<", ">8<").replace(">0<", ">0.0078125<"), (8.0, 0.5),
        {"sdf": "only in the remark, which other tools skip: drives"},
    ),
    "stiffness of a drive": (ROTOR, f'{ROTOR}<param name="stiffness">7750</param>', 7750.0, REMARK),
    "drive that only pulls": (
        DRIVE, DRIVE.replace("/>", PULLS), 19.5,
        REMARK | {"mjcf": ""},
    ),
    "drive of positions": (DRIVE, DRIVE.replace("effort", "position"), math.nan, REMARK),
    "colour": ('rgba="0.35 0.38 0.42 1"', 'rgba="0.375 0.38 0.42 1"', 0.375, {}),
    "texture": (
        '<color rgba="0.35 0.38 0.42 1"/>', '<color rgba="0.35 0.38 0.42 1"/><texture filename="wood.png"/>', math.nan,
        dict.fromkeys(SIMULATORS, "left out: <texture> frame_grey"),
    ),
    "collision shape": (
        '<link name="left_forearm">', f'<link name="left_forearm">{SPHERE}', 0.0375,
        dict.fromkeys(SIMULATORS, "left out: <collision> left_forearm"),
    ),
    "sensor of Gazebo": (
        "<pkm ", IMU + "<pkm ", 775.0,
        dict.fromkeys(SIMULATORS, "left out: <gazebo> platform"),
    ),
    "sensor of ros2_control": (
        "</joint>\n  </ros2_control>", "</joint>" + FELT, 775.0,
        dict.fromkeys(SIMULATORS, "sensors of ros2_control, ft"),
    ),
    "transmission": (
        "<pkm ", BELT + "<pkm ", 77.5,
        dict.fromkeys(SIMULATORS, "left out: <transmission> belt"),
    ),
    "safety controller": (
        ELBOW, ELBOW + '<safety_controller k_velocity="77.5"/>', 77.5,
        dict.fromkeys(SIMULATORS, "left out: <safety_controller> left_elbow"),
    ),
}  # fmt: skip


def says(text, values):
    """Whether a file says one of some numbers, in radians or degrees, outside of what other tools skip."""
    text = re.sub(
        r"<pkm:remark>.*?</pkm:remark>|<text [^>]*/>|[^\n]*\bpkm:[^\n]*|customData = {[^}]*}", "", text, flags=re.DOTALL
    )
    numbers = np.array([float(word) for word in re.findall(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])", text)])
    wanted = np.outer(np.atleast_1d(values), [1.0, 180.0 / math.pi, math.pi / 180.0]).ravel()
    return bool(np.isclose(numbers[:, None], wanted, rtol=1e-5, atol=0.0).any())


@pytest.mark.parametrize("what", WHAT_IT_HAS)
def test_nothing_is_dropped_silently(what):
    """In every format; that a YAML file of loops has its robot in a URDF beside it is told."""
    plain = load_mechanism("five_bar").urdf
    old, new, values, noted = WHAT_IT_HAS[what]
    assert old in plain
    mechanism = load_mechanism(plain.replace(old, new, 1))
    for kind in set(WRITERS) - {"urdf+", "yaml"} | {kind for kind in noted if kind == "yaml"}:
        text, notes = WRITERS[kind](mechanism)
        words = noted.get(kind)
        if words:
            assert any(words in note for note in notes), (kind, notes)
        elif not np.isnan(values).any():
            assert says(text, values), kind
    assert "all but loops and drives is in five_bar_tree.urdf" in " ".join(WRITERS["yaml"](mechanism)[1])


def test_the_model_of_export_says_what_it_leaves_out(tmp_path, capsys):
    assert export_robot.main(["five_bar", "-o", str(tmp_path / "five_bar.xml")]) == 0
    assert "in the MJCF file: left out: limits of velocity of left_arm, right_arm\n" in capsys.readouterr().err


def test_a_robot_is_not_written_over_its_own_file(tmp_path, capsys):
    file = tmp_path / "own.urdf"
    file.write_text(load_mechanism("five_bar").urdf)
    with pytest.raises(SystemExit):
        main([str(file), "--to", "urdf", "-o", str(tmp_path / "." / "own.urdf")])
    assert "this is the file that is read" in capsys.readouterr().err
    assert "<loop" in file.read_text()


def test_a_range_that_is_open_at_one_end_comes_back_from_sdf():
    old, new, _, _ = WHAT_IT_HAS["range open at one end"]
    text, _ = WRITERS["sdf"](load_mechanism(load_mechanism("five_bar").urdf.replace(old, new, 1)))
    limits = load_mechanism(text).joint_named["left_elbow"].limits
    assert (limits.lower, limits.upper) == (pytest.approx(-3.125, abs=1e-12), math.inf)


def test_meshes_that_are_not_there_are_told(tmp_path, capsys):
    file = tmp_path / "bar.sdf"
    file.write_text(FOUR_BAR.replace("<box><size>0.2 0.02 0.02</size></box>", "<mesh><uri>gone.stl</uri></mesh>"))
    assert main([str(file), "--platform", "coupler", "--actuated", "motor"]) == 0
    assert "not drawn: a visual of link 'crank': mesh 'gone.stl' is not there" in capsys.readouterr().err


@pytest.mark.parametrize("included", ["", "<include file='none.xml'/>"])
def test_meshes_of_mjcf_are_told(included, tmp_path, capsys):
    """By our reader, and by MuJoCo's."""
    if included:
        pytest.importorskip("mujoco", reason="mujoco is not installed; ./pkm test installs it")
    file = tmp_path / "arm.xml"
    (tmp_path / "none.xml").write_text("<mujoco><option/></mujoco>")
    file.write_text(
        f"""<mujoco>{included}<asset><mesh name="m" file="gone.stl"/></asset><worldbody><body name="arm">
        <inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.1 0.1"/><joint name="turn" axis="0 0 1"/>
        <geom type="mesh" mesh="m"/></body></worldbody><actuator><motor joint="turn"/></actuator></mujoco>"""
    )
    assert main([str(file)]) == 0
    assert "not read: meshes of arm" in capsys.readouterr().err
