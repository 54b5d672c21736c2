# SPDX-License-Identifier: Apache-2.0
"""Files with many platforms, or none: which loops belong together, and which of their joints are the joints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.convert import main
from pkm_description.load import load_model
from pkm_description.loops.closure import null_space

BIPED = Path(__file__).with_name("biped.xml")


def test_a_biped_has_a_knee_and_an_ankle_on_each_side() -> None:
    biped = load_model(BIPED)
    assert [one.root for one in biped.clusters] == ["left_thigh", "left_shank", "right_thigh", "right_shank"]
    knee, ankle = biped.clusters[:2]
    assert (knee.independent, knee.actuators, knee.passive) == (
        ("left_knee",),
        ("left_knee_motor",),
        ("left_knee_rod",),
    )
    assert ankle.independent == ("left_ankle_pitch", "left_ankle_roll")
    assert ankle.actuators == ("left_ankle_motor_a", "left_ankle_motor_b")
    assert ankle.idle == ("left_rod_a/z", "left_rod_b/z")  # the rods spin between their balls
    assert ankle.loops == ("left_loop_a", "left_loop_b")
    assert "8 serial joints, 4 clusters" in str(biped)  # six of the torso, two hips


def test_numbers_of_freedoms_are_those_of_the_loops() -> None:
    biped = load_model(BIPED)
    for cluster in biped.clusters:
        model = biped.closures(cluster.joints, [loop for loop in biped.loops if loop.name in cluster.loops])
        free = null_space(model.closure(biped.home_of(model))[1]).shape[1]
        assert free == len(cluster.independent) + len(cluster.idle)


def test_a_robot_with_one_platform_stays_what_it_is() -> None:
    one, mechanism = (
        load_model("docs/examples/ankle_cranks.urdf.xacro"),
        load_mechanism("docs/examples/ankle_cranks.urdf.xacro"),
    )
    (cluster,) = one.clusters
    assert cluster.independent == mechanism.virtual_chain
    assert cluster.actuators == mechanism.actuated_joints
    np.testing.assert_array_equal([one.home[name] for name in one.joint_named], mechanism.home_joints)


def test_plain_urdf_with_a_loop_needs_no_platform() -> None:
    text = """<robot name="four_bar"><link name="base"/><link name="crank"/><link name="coupler"/><link name="rocker"/>
    <joint name="a" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 0 1"/></joint>
    <joint name="b" type="continuous"><parent link="crank"/><child link="coupler"/><origin xyz="0 0.1 0"/>
      <axis xyz="0 0 1"/></joint>
    <joint name="c" type="continuous"><parent link="base"/><child link="rocker"/><origin xyz="0.3 0 0"/>
      <axis xyz="0 0 1"/></joint>
    <loop name="pin" type="revolute"><predecessor link="coupler"><origin xyz="0.3 0.05 0"/></predecessor>
      <successor link="rocker"><origin xyz="0 0.15 0"/></successor><axis xyz="0 0 1"/></loop></robot>"""
    (cluster,) = load_model(text).clusters
    assert (cluster.root, len(cluster.independent), cluster.actuators) == ("base", 1, ())


def test_wrong_units_and_a_home_outside_of_a_range_are_told() -> None:
    text = BIPED.read_text()
    assert not any("looks like" in note or "outside" in note for note in load_model(BIPED).notes)
    (knee,) = re.findall(r'<joint name="left_knee" [^>]*range="[^"]*"', text)
    turned = load_model(text.replace(knee, re.sub('range="[^"]*"', 'range="0.2 1"', knee)))
    assert "home: joint 'left_knee' at 0 rad is outside [0.2, 1]" in turned.notes
    far = load_model(text.replace('name="left_shank" pos="0 0 -0.4"', 'name="left_shank" pos="0 0 -400"'))
    assert any(note.endswith("400 looks like mm; write m") for note in far.notes)


def test_freedoms_that_no_motor_moves_are_no_idle_ones() -> None:
    """A finger that gives way: a planar five-bar with one motor has two joints, and the other is told."""
    names, places = "abcd", ("0 0 0", "0 0.1 0", "0.3 0 0", "0 0.12 0")
    parents = ("base", "one", "base", "three")
    children = ("one", "two", "three", "four")
    joints = "".join(
        f'<link name="{child}"/><joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{place}"/><axis xyz="0 0 1"/></joint>'
        for name, place, parent, child in zip(names, places, parents, children, strict=True)
    )
    text = f"""<robot name="finger"><link name="base"/>{joints}
    <loop name="pin" type="revolute"><predecessor link="two"><origin xyz="0.15 0.05 0"/></predecessor>
      <successor link="four"><origin xyz="-0.15 0.03 0"/></successor><axis xyz="0 0 1"/></loop>
    <ros2_control name="f" type="system"><joint name="a"><command_interface name="effort"/></joint></ros2_control>
    </robot>"""
    (cluster,) = load_model(text).clusters
    assert (len(cluster.independent), cluster.actuators, cluster.idle) == (2, ("a",), ())


def test_a_loop_that_cannot_close_is_refused_with_its_gap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BIPED.read_text().replace(
        '<connect name="left_knee_loop" body1="left_knee_rod" body2="left_shank" anchor="-0.01 0 -0.29"/>',
        '<connect name="left_knee_loop" site1="one" site2="two"/>',
    )
    text = text.replace('<joint name="left_knee_rod"', '<site name="one" pos="0 0 -0.9"/><joint name="left_knee_rod"')
    text = text.replace('<joint name="left_knee" ', '<site name="two" pos="-0.06 0 0.01"/><joint name="left_knee" ')
    with pytest.raises(DescriptionError, match=r"left_knee_loop.*are 0.[0-9]+ m apart as drawn"):
        load_model(text)
    file = tmp_path / "open.xml"
    file.write_text(text)
    with pytest.raises(DescriptionError, match=r"open.xml: <joint name=\"left_knee_loop\">: its ends"):
        load_model(file)
    assert main([str(file), "--to", "sdf"]) == 2
    told = capsys.readouterr().err
    assert "apart as drawn" in told
    assert "platform" not in told


@pytest.mark.parametrize(
    "text", ["<mujoco/>", '<sdf version="1.9"><model name="m"/></sdf>', '#usda 1.0\ndef Xform "m" {}']
)
def test_a_file_without_a_body_is_refused(text: str) -> None:
    if text.startswith("#"):
        pytest.importorskip("pxr")
    with pytest.raises(DescriptionError, match="it has no body"):
        load_model(text)


@pytest.mark.parametrize("tag", ["body", "site"])
def test_two_of_one_name_are_refused(tag: str) -> None:
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    bodies = f'<body name="one"><{tag} name="same"/>{inertial}</body><body name="two"><{tag} name="same"/></body>'
    with pytest.raises(DescriptionError, match=f'<{tag} name="same">: the name is used twice'):
        load_model(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


def test_loops_that_let_nothing_move_have_no_joints() -> None:
    stiff = """<mujoco><worldbody><body name="post"><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>
      <body name="arm"><joint name="hinge" axis="0 0 1"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>
      </body></worldbody><equality><connect body1="post" body2="arm" anchor="1 0 0"/></equality></mujoco>"""
    (cluster,) = load_model(stiff).clusters
    assert (cluster.joints, cluster.independent, cluster.idle) == (("hinge",), (), ())
    assert "joints none, it is locked" in str(load_model(stiff))
    with pytest.raises(DescriptionError, match=r'"hinge".*leave it no motion \(mobility 0\): equality1'):
        load_model(stiff.replace("</mujoco>", '<actuator><motor joint="hinge"/></actuator></mujoco>'))


@pytest.mark.parametrize(
    ("second", "names"),
    [
        ('<connect name="nearer" body1="coupler" body2="rocker" anchor="0.3 0 0"/>', "pin"),  # a hinge across
        ('<joint joint1="foot" joint2="crank" polycoef="0 -1 0 0 0"/>', "pin, <mimic> of foot"),
    ],
)
def test_a_driven_joint_that_loops_lock_is_refused(second: str, names: str) -> None:
    """A parallelogram, whose crank and rocker turn alike, with a constraint that closes at home and contradicts it."""
    mass = '<inertial mass="1" pos="0 0 0.1" diaginertia="1e-3 1e-3 1e-3"/>'
    text = f"""<mujoco><worldbody>
    <body name="crank"><joint name="crank" axis="0 1 0"/>{mass}
      <body name="coupler" pos="0 0 0.2"><joint name="knee" axis="0 1 0"/>{mass}</body></body>
    <body name="rocker" pos="0.4 0 0"><joint name="foot" axis="0 1 0"/>{mass}</body></worldbody>
    <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.4 0 0"/>{{}}</equality>
    <actuator><motor joint="crank"/></actuator></mujoco>"""
    assert load_model(text.format("")).clusters[0].independent == ("crank",)
    with pytest.raises(DescriptionError, match=rf'"crank".*leave it no motion \(mobility 0\): {names};'):
        load_model(text.format(second))
