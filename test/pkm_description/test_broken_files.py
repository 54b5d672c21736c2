# SPDX-License-Identifier: Apache-2.0
"""Every kind of broken description gets one error that names the element and says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.gallery import ROBOTS

BODY = """<inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.09" izz="0.09" ixy="0" ixz="0" iyz="0"/></inertial>"""

# A planar five-bar: bars of 1 m, motors 1 m apart, tip above.
FIVE_BAR = f"""<robot name="five_bar">
  <link name="base"/>
  <link name="left_arm">{BODY}</link>
  <link name="left_bar">{BODY}</link>
  <link name="right_arm">{BODY}</link>
  <link name="right_bar">{BODY}</link>
  <link name="slide"/>
  <link name="tip"><inertial><mass value="0.2"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>
  <joint name="left_motor" type="revolute"><parent link="base"/><child link="left_arm"/>
    <origin xyz="-0.5 0 0"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="10" velocity="10"/></joint>
  <joint name="left_elbow" type="continuous"><parent link="left_arm"/><child link="left_bar"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="right_motor" type="revolute"><parent link="base"/><child link="right_arm"/>
    <origin xyz="0.5 0 0"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="10" velocity="10"/></joint>
  <joint name="right_elbow" type="continuous"><parent link="right_arm"/><child link="right_bar"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="x" type="prismatic"><parent link="base"/><child link="slide"/><axis xyz="1 0 0"/></joint>
  <joint name="y" type="prismatic"><parent link="slide"/><child link="tip"/><axis xyz="0 1 0"/></joint>
  <loop name="left_pin" type="revolute"><predecessor link="left_bar"><origin xyz="1 0 0"/></predecessor>
    <successor link="tip"/><axis xyz="0 0 1"/></loop>
  <loop name="right_pin" type="revolute"><predecessor link="right_bar"><origin xyz="1 0 0"/></predecessor>
    <successor link="tip"/><axis xyz="0 0 1"/></loop>
  <pkm base_link="base" platform_link="tip" gravity="0 -9.81 0"><home xyz="0 1.2 0">
    <joint name="left_motor" position="2.3"/><joint name="left_elbow" position="-1.5"/>
    <joint name="right_motor" position="0.8"/><joint name="right_elbow" position="1.5"/></home></pkm>
  <ros2_control name="five_bar" type="system">
    <joint name="left_motor"><command_interface name="effort"/></joint>
    <joint name="right_motor"><command_interface name="effort"/></joint>
  </ros2_control>
</robot>"""


def swap(old: str, new: str) -> Callable[[], str]:
    """The good file with one thing replaced, once."""

    def broken() -> str:
        assert old in FIVE_BAR, f"the case is stale: {old}"
        return FIVE_BAR.replace(old, new, 1)

    return broken


def insert(addition: str) -> Callable[[], str]:
    """The good file with something added at its end."""
    return swap("</robot>", addition + "</robot>")


COMMAND = '<command_interface name="effort"/>'
LEFT_PIN_AXIS = '<successor link="tip"/><axis xyz="0 0 1"/></loop>'

# name of the case: (broken text, part of the element's name, part of the problem, part of the remedy)
CASES: dict[str, tuple[Callable[[], str], str, str, str]] = {
    "malformed XML": (swap("</robot>", ""), "URDF text", "not well-formed", "correct the XML"),
    "xacro error": (
        swap('<robot name="five_bar">', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:no_such_macro/>'),
        "xacro text",
        "no_such_macro",
        "write the macro above",
    ),
    "no robot": (lambda: "<world/>", "URDF text", "<world>", "<robot"),
    "version of MJCF": (lambda: '<mujoco version="9"/>', "<mujoco>", "version '9' is not known", "leave it out"),
    "no version": (lambda: "<sdf/>", "<sdf>", "version", "1.4"),
    "no links": (lambda: '<robot><pkm base_link="a" platform_link="b"/></robot>', "<robot>", "no links", "<link>"),
    "no loop": (
        lambda: '<robot><link name="a"/><link name="b"/><pkm base_link="a" platform_link="b"/></robot>',
        "<robot>",
        "no <loop>",
        "close each limb",
    ),
    "link without name": (insert("<link/>"), "<link> number 8", "no name", "name="),
    "name that reverses what follows": (
        insert('<link name="a\u202eb"/>'),
        "<link> number 8",
        r"'a\u202eb' has characters that nobody sees",
        "leave them out",
    ),
    "duplicate link": (insert('<link name="tip"/>'), '<link name="tip">', "twice", "its own name"),
    "duplicate joint": (
        insert('<joint name="x" type="fixed"><parent link="base"/><child link="tip"/></joint>'),
        '<joint name="x">',
        "twice",
        "its own name",
    ),
    "duplicate loop": (
        swap('<loop name="right_pin"', '<loop name="left_pin"'),
        '<loop name="left_pin">',
        "twice",
        "its own name",
    ),
    "unknown joint type": (swap('type="continuous"', 'type="hinge"'), '<joint name="left_elbow">', "hinge", "revolute"),
    "joint on unknown parent": (
        swap('<parent link="left_arm"/>', '<parent link="left_am"/>'),
        '<joint name="left_elbow">',
        "parent 'left_am'",
        "existing <link>",
    ),
    "joint on unknown child": (
        swap('<child link="left_bar"/>', '<child link="left_rod"/>'),
        '<joint name="left_elbow">',
        "child 'left_rod'",
        "existing <link>",
    ),
    "joint without child": (swap('<child link="left_bar"/>', ""), '<joint name="left_elbow">', "no <child>", "<child"),
    "joint of a link with itself": (
        swap('<child link="left_bar"/>', '<child link="left_arm"/>'),
        '<joint name="left_elbow">',
        "to itself",
        "two different links",
    ),
    "link with two parents": (
        insert('<joint name="second" type="fixed"><parent link="base"/><child link="tip"/></joint>'),
        '<joint name="second">',
        "already has the parent joint 'y'",
        "as <loop>",
    ),
    "cycle beside the tree": (
        swap('<parent link="base"/><child link="left_arm"/>', '<parent link="left_bar"/><child link="left_arm"/>'),
        '<joint name="left_motor">',
        "cycle",
        "cut one joint",
    ),
    "cycle without a root": (
        lambda: (
            '<robot><link name="a"/><link name="b"/><pkm base_link="a" platform_link="b"/>'
            '<joint name="ab" type="revolute"><parent link="a"/><child link="b"/></joint>'
            '<joint name="ba" type="revolute"><parent link="b"/><child link="a"/></joint>'
            '<loop name="l" type="spherical"><predecessor link="a"/><successor link="b"/></loop>'
            f'<ros2_control name="c"><joint name="ab">{COMMAND}</joint></ros2_control></robot>'
        ),
        '<joint name="ab">',
        "cycle",
        "cut one joint",
    ),
    "several roots": (insert('<link name="stray"/>'), '<link name="stray">', "no joint connects it", "add a joint"),
    "base is moved": (
        insert(
            '<link name="world"/><joint name="lift" type="prismatic"><parent link="world"/><child link="base"/></joint>'
        ),
        '<joint name="lift">',
        "not the root",
        "base_link",
    ),
    "loop on unknown link": (
        swap('<predecessor link="left_bar">', '<predecessor link="left_rod">'),
        '<loop name="left_pin">',
        "predecessor 'left_rod'",
        "existing <link>",
    ),
    "loop with itself": (
        swap('<predecessor link="left_bar">', '<predecessor link="tip">'),
        '<loop name="left_pin">',
        "to itself",
        "two different links",
    ),
    "loop without successor": (
        swap('<successor link="tip"/>', ""),
        '<loop name="left_pin">',
        "no <successor>",
        "add <successor",
    ),
    "unknown loop type": (
        swap('name="left_pin" type="revolute"', 'name="left_pin" type="hinge"'),
        '<loop name="left_pin">',
        "hinge",
        "spherical",
    ),
    "loop axis of length zero": (
        swap(LEFT_PIN_AXIS, '<successor link="tip"/><axis xyz="0 0 0"/></loop>'),
        '<loop name="left_pin"> <axis>',
        "length is zero",
        "direction",
    ),
    "loop axis missing": (
        swap(LEFT_PIN_AXIS, '<successor link="tip"/></loop>'),
        '<loop name="left_pin">',
        "needs an axis",
        "<axis",
    ),
    "second axis missing": (
        swap('name="left_pin" type="revolute"', 'name="left_pin" type="universal"'),
        '<loop name="left_pin">',
        "second axis",
        "<axis2",
    ),
    "joint axis of length zero": (
        swap('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>'),
        '<joint name="y"> <axis>',
        "length is zero",
        "direction",
    ),
    "axis without xyz": (swap('<axis xyz="0 1 0"/>', "<axis/>"), '<joint name="y"> <axis>', "xyz is missing", "<axis"),
    "not a number": (
        swap('<origin xyz="-0.5 0 0"/>', '<origin xyz="-0,5 0 0"/>'),
        '<joint name="left_motor"> <origin>',
        "not made of numbers",
        "point",
    ),
    "NaN": (
        swap('<origin xyz="-0.5 0 0"/>', '<origin xyz="nan 0 0"/>'),
        '<joint name="left_motor"> <origin>',
        "not finite",
        "finite",
    ),
    "two numbers for three": (
        swap('<origin xyz="-0.5 0 0"/>', '<origin xyz="-0.5 0"/>'),
        '<joint name="left_motor"> <origin>',
        "2 number(s)",
        "write 3",
    ),
    "no pkm": (
        lambda: FIVE_BAR[: FIVE_BAR.index("<pkm")] + FIVE_BAR[FIVE_BAR.index("<ros2_control") :],
        "<pkm>",
        "missing",
        "base_link=",
    ),
    "two pkm": (insert('<pkm base_link="base" platform_link="tip"/>'), "<pkm>", "2 times", "once"),
    "unknown base": (
        swap('<pkm base_link="base"', '<pkm base_link="bse"'),
        "<pkm>",
        "base_link 'bse'",
        "existing <link>",
    ),
    "no base": (swap('<pkm base_link="base"', "<pkm"), "<pkm>", "base_link is missing", "base_link="),
    "unknown platform": (
        swap('platform_link="tip"', 'platform_link="tool"'),
        "<pkm>",
        "platform_link 'tool'",
        "existing <link>",
    ),
    "platform is the base": (swap('platform_link="tip"', 'platform_link="base"'), "<pkm>", "both 'base'", "moving one"),
    "platform fixed to the base": (
        lambda: FIVE_BAR.replace('platform_link="tip"', 'platform_link="post"').replace(
            "</robot>",
            '<link name="post"/><joint name="bolt" type="fixed"><parent link="base"/><child link="post"/></joint>'
            "</robot>",
        ),
        "<pkm>",
        "fixed to the base",
        "fixed",
    ),
    "flag that is no flag": (
        swap("<pkm ", '<pkm accept_invalid_inertia="perhaps" '),
        "<pkm>",
        "neither true nor false",
        "true",
    ),
    "no actuated joint": (
        lambda: FIVE_BAR.replace(COMMAND, ""),
        "<ros2_control>",
        "no joint is actuated",
        "command_interface",
    ),
    "command on unknown joint": (
        swap('<joint name="left_motor"><command', '<joint name="left_moter"><command'),
        '<ros2_control> <joint name="left_moter">',
        "no such joint",
        "did you mean 'left_motor'? Else name an existing <joint>",
    ),
    "command on a fixed joint": (
        swap('<joint name="right_motor" type="revolute">', '<joint name="right_motor" type="fixed">'),
        '<ros2_control> <joint name="right_motor">',
        "fixed joint",
        "revolute",
    ),
    "command on a mimic joint": (
        swap('<child link="right_arm"/>', '<child link="right_arm"/><mimic joint="left_motor"/>'),
        '<ros2_control> <joint name="right_motor">',
        "mimics 'left_motor'",
        "drive 'left_motor'",
    ),
    "unknown command interface": (
        swap(COMMAND, '<command_interface name="torque"/>'),
        '<ros2_control> <joint name="left_motor">',
        "torque",
        "effort",
    ),
    "joint listed twice": (
        swap('<joint name="right_motor"><command', '<joint name="left_motor"><command'),
        '<ros2_control> <joint name="left_motor">',
        "twice",
        "once",
    ),
    "mimic of unknown joint": (
        swap('<child link="right_bar"/>', '<child link="right_bar"/><mimic joint="elbow"/>'),
        '<joint name="right_elbow"> <mimic>',
        "'elbow'",
        "existing <joint>",
    ),
    "mimic of itself": (
        swap('<child link="right_bar"/>', '<child link="right_bar"/><mimic joint="right_elbow"/>'),
        '<joint name="right_elbow"> <mimic>',
        "itself mimics",
        "independent joint",
    ),
    "too few actuators": (
        swap(f'<joint name="right_motor">{COMMAND}</joint>', ""),
        "<ros2_control>",
        "2 degrees of freedom (2T) but 1 joint(s)",
        "command_interface",
    ),
    "actuators that cannot hold the platform": (
        lambda: FIVE_BAR.replace(f'<joint name="right_motor">{COMMAND}', f'<joint name="idler">{COMMAND}').replace(
            "</robot>",
            f'<link name="wheel">{BODY}</link><joint name="idler" type="continuous"><parent link="base"/>'
            '<child link="wheel"/><axis xyz="0 0 1"/></joint></robot>',
        ),
        "<ros2_control>",
        "leave the platform 1 of its 2 degrees of freedom",
        "actuate joints in other limbs",
    ),
    "negative mass": (
        swap('<mass value="1"/>', '<mass value="-1"/>'),
        '<link name="left_arm">',
        "negative mass",
        "correct mass",
    ),
    "inertial without mass": (swap('<mass value="1"/>', ""), '<link name="left_arm">', "no <mass>", "<mass"),
    "inertia without mass": (
        swap('<mass value="1"/>', '<mass value="0"/>'),
        '<link name="left_arm">',
        "inertia without mass",
        "accept_invalid_inertia",
    ),
    "inertia not positive": (
        swap('ixx="0.01"', 'ixx="-0.01"'),
        '<link name="left_arm">',
        "not positive definite",
        "accept_invalid_inertia",
    ),
    "inertia beyond the triangle": (
        swap('izz="0.09"', 'izz="0.2"'),
        '<link name="left_arm">',
        "triangle inequality",
        "accept_invalid_inertia",
    ),
    "inertia with a hole": (swap('ixx="0.01" ', ""), '<link name="left_arm"> <inertia>', "ixx is missing", "ixx="),
    "nothing to move": (
        lambda: FIVE_BAR.replace(BODY, "").replace(
            '<mass value="0.2"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/>', '<mass value="0"/>'
        ),
        '<link name="',
        "without any mass",
        "<inertial>",
    ),
    "inverted limits": (
        swap('lower="-3" upper="3"', 'lower="3" upper="-3"'),
        '<joint name="left_motor"> <limit>',
        "lower 3 is above upper -3",
        "swap",
    ),
    "limits without room": (
        swap('lower="-3" upper="3"', 'lower="1" upper="1"'),
        '<joint name="left_motor"> <limit>',
        "are equal",
        "fixed",
    ),
    "negative velocity limit": (
        swap('velocity="10"', 'velocity="-10"'),
        '<joint name="left_motor"> <limit>',
        "velocity or effort is negative",
        "magnitudes",
    ),
    "negative friction": (
        swap('<child link="left_bar"/>', '<child link="left_bar"/><dynamics damping="-1"/>'),
        '<joint name="left_elbow"> <dynamics>',
        "damping is negative",
        ">= 0",
    ),
    "home out of reach": (swap('<home xyz="0 1.2 0">', '<home xyz="0 3 0">'), "<pkm> <home>", "unreachable", "home"),
    "home out of the plane": (
        swap('<home xyz="0 1.2 0">', '<home xyz="0 1.2 0.1">'),
        "<pkm> <home>",
        "unreachable",
        "home",
    ),
    "home beyond a limit": (
        swap('lower="-3" upper="3"', 'lower="-3" upper="-2.9"'),
        '<joint name="left_motor">',
        "limits [-3, -2.9] make home unreachable",
        "widen the limits",
    ),
    "home of unknown joint": (
        swap('<joint name="left_motor" position="2.3"/>', '<joint name="motor" position="2.3"/>'),
        '<home> <joint name="motor">',
        "no such joint",
        "existing <joint>",
    ),
    "two homes": (swap("</home></pkm>", '</home><home xyz="0 1 0"/></pkm>'), "<home>", "2 times", "once"),
    "loop that cannot close": (
        lambda: FIVE_BAR.replace('<home xyz="0 1.2 0">', "<home>").replace(
            '<origin xyz="0.5 0 0"/><axis', '<origin xyz="9 0 0"/><axis'
        ),
        '<loop name="',
        "unreachable",
        "correct the geometry",
    ),
    "rounded overconstrained loop": (
        swap('<origin xyz="0.5 0 0"/><axis', '<origin xyz="0.5 0 0" rpy="1e-6 0 0"/><axis'),
        '<loop name="',
        "rounded",
        "all digits",
    ),
    "rigid platform": (
        insert(
            '<loop name="weld" type="fixed"><predecessor link="base"><origin xyz="0 1.2 0"/></predecessor>'
            '<successor link="tip"/></loop>'
        ),
        "<pkm> platform_link 'tip'",
        "mobility 0",
        "too many degrees of freedom",
    ),
    "limb without its loop": (
        lambda: re.sub(r'<loop name="right_pin".*?</loop>', "", FIVE_BAR, flags=re.DOTALL),
        '<link name="right_bar">',
        "right_bar ends nowhere",
        "is its <loop> missing?",
    ),
    "wheel that spins on the platform": (
        insert(
            '<link name="wheel"/>'
            '<joint name="spin" type="continuous"><parent link="tip"/><child link="wheel"/><axis xyz="0 0 1"/></joint>'
        ),
        '<joint name="spin">',
        "no loop closure determines its position",
        "make the joint fixed",
    ),
    "pinion that a motor's joint turns": (
        insert(
            '<link name="pinion"/>'
            '<joint name="gear" type="continuous"><parent link="base"/><child link="pinion"/><axis xyz="0 0 1"/>'
            '<mimic joint="left_motor" multiplier="5"/></joint>'
        ),
        '<joint name="gear">',
        "it is in no loop, and only follows 'left_motor'",
        "make it fixed, its inertia part of the rotor_inertia of the drive",
    ),
    "motor beside its arm": (
        lambda: (
            insert(
                '<link name="rotor"/><joint name="drive" type="revolute"><parent link="base"/><child link="rotor"/>'
                '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="1" velocity="9"/></joint>'
            )()
            .replace('<joint name="left_motor"><command_interface', '<joint name="drive"><command_interface')
            .replace('velocity="10"/></joint>', 'velocity="10"/><mimic joint="drive" multiplier="-0.25"/></joint>', 1)
        ),
        '<joint name="drive">',
        "it is in no loop, and 'left_motor', which is, follows it",
        "drive 'left_motor' instead, with the motor's gear_ratio",
    ),
    "no such robot": (lambda: "dleta", "robot 'dleta'", "no such robot", "did you mean delta"),
    "no such robot, an example": (
        lambda: "ankle",
        "robot 'ankle'",
        "no such robot",
        "did you mean docs/examples/ankle.urdf.xacro",
    ),
    "no such robot, nor any like it": (lambda: "nonsense", "robot 'nonsense'", "no such robot", "docs/gallery.md"),
    "no such robot, a part of a name": (lambda: "stewart", "robot 'stewart'", "no such robot", "mean gough_stewart or"),
    "no such file, one beside it": (
        lambda: str(ROBOTS.parents[1] / "docs" / "examples" / "ankel.urdf.xacro"),
        "ankel.urdf.xacro",
        "does not exist",
        "ankle.urdf.xacro?",
    ),
    "no such file": (lambda: "missing/robot.urdf", "robot.urdf", "does not exist", "path"),
}


def test_the_file_that_the_cases_break_is_good() -> None:
    mechanism = load_mechanism(FIVE_BAR)
    assert mechanism.mobility.platform == 2
    assert mechanism.home[:3, 3] == pytest.approx([0.0, 1.2, 0.0], abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_broken_file_is_answered_by_one_error_that_names_the_element(case: str) -> None:
    broken, element, problem, remedy = CASES[case]
    with pytest.raises(DescriptionError) as caught:
        load_mechanism(broken())
    error = caught.value
    assert element in error.element
    assert problem in error.problem
    assert remedy in error.remedy
    assert str(error) == f"{error.element}: {error.problem}; {error.remedy}"


def test_at_least_twenty_five_kinds() -> None:
    assert len(CASES) >= 25


def test_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DescriptionError, match="cannot be read"):
        load_mechanism(path)


def test_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text("<robot>")
    with pytest.raises(DescriptionError) as caught:
        load_mechanism(path)
    assert str(path) in caught.value.element


@pytest.mark.parametrize("source", [3, None, b"delta", ["delta"]], ids=str)
def test_what_names_no_robot(source: object) -> None:
    with pytest.raises(
        DescriptionError,
        match=r"it is of type \w+, which cannot name a robot; give the name of a "
        "gallery robot",
    ):
        load_mechanism(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        ('<xacro:property name="arm_length" value="1"/><link name="${arm_lenght}"/>', "did you mean arm_length?"),
        ('<link name="${nothing_like_it}"/>', 'write <xacro:property name="nothing_like_it" value="..."/> above'),
        ('<xacro:later/><xacro:macro name="later"><link name="a"/></xacro:macro>', "write the macro above the place"),
        ('<xacro:macro name="m" params="a:=^"/><xacro:m/>', 'write <xacro:property name="a" value="..."/> before'),
        ('<xacro:macro name="m" params="a"/><xacro:m/>', "give these attributes where the macro is called"),
    ],
    ids=["misspelt", "missing", "later", "forwarded", "parameter"],
)
def test_what_xacro_does_not_know(body: str, remedy: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{body}</robot>')
    with pytest.raises(DescriptionError, match=re.escape(remedy)):
        load_mechanism(path)
