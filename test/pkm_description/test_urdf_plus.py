# SPDX-License-Identifier: Apache-2.0
"""What the format promises: the documented example, defaults, odd but legal trees, xacro from a user's own file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.mechanism import JointType
from pkm_description.urdf.urdf_plus import parse

DOCS = Path(__file__).resolve().parents[2] / "docs" / "description.md"


@pytest.fixture(scope="module")
def example() -> str:
    found = re.search(r"```xml\n(<robot name=\"my_five_bar\".*?</robot>)", DOCS.read_text(), re.DOTALL)
    assert found
    return found.group(1)


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("velocity=", "vellocity=", "velocity"),
        ("effort=", "max_effort=", "effort"),
        ("<limit ", "<limits ", "limit"),
        ("friction=", "frction=", "friction"),
        ('name="gear_ratio"', 'name="gear_ration"', "gear_ratio"),
        ('rpy="0 0 0" xyz="-0.125 0 0"', 'ryp="0 0 0" xyz="-0.125 0 0"', "rpy"),
        ('rpy="0 0 0" xyz="-0.125 0 0"', 'quat_xyzw="0 0 0 1" xyz="-0.125 0 0"', "rpy"),
        ("lower=", "min=", "lower"),
        ("velocity=", "speed=", "velocity"),
    ],
)
def test_names_that_are_nearly_ours_are_refused(old: str, new: str, meant: str) -> None:
    plain = load_mechanism("five_bar").urdf
    assert old in plain
    with pytest.raises(DescriptionError, match=f"is not known; did you mean '{meant}'"):
        load_mechanism(plain.replace(old, new, 1))


def test_a_word_of_another_format_beside_ours_is_left_alone() -> None:
    plain = load_mechanism("five_bar").urdf
    both = load_mechanism(plain.replace("velocity=", 'speed="3" velocity='))
    ours, of_both = ([j.limits.velocity for j in one.joints] for one in (load_mechanism(plain), both))
    assert of_both == ours
    assert 3.0 not in ours


def test_the_documented_example_loads(example: str) -> None:
    mechanism = load_mechanism(example)
    assert mechanism.mobility.motion == "2T"
    assert mechanism.mobility.left_out == 1  # the tip turns about its pin
    assert mechanism.actuated_joints == ("left_arm", "right_arm")
    assert [limb.name for limb in mechanism.limbs] == ["left", "right"]
    arm = mechanism.joint_named["left_arm"]
    assert (arm.viscous_friction, arm.coulomb_friction) == (0.05, 0.1)
    assert arm.drive is not None
    assert arm.drive.armature == pytest.approx(10**2 * 1e-5)
    assert mechanism.home[:3, 3] == pytest.approx([0.0, 0.45, 0.0], abs=1e-12)


def test_defaults(example: str) -> None:
    text = example.replace(' gravity="0 0 -9.81"', "").replace(
        '<limit lower="-1" upper="1" velocity="0" effort="0"/>', ""
    )
    mechanism = load_mechanism(text)
    assert mechanism.gravity.tolist() == [0.0, 0.0, -9.81]
    slide = mechanism.joint_named["x"].limits
    assert (slide.lower, slide.upper, slide.velocity, slide.effort) == (-np.inf, np.inf, np.inf, np.inf)
    assert mechanism.link_named["left_forearm"].inertial.massless


def test_world_above_the_base_is_turned_round(example: str) -> None:
    world = (
        '<link name="world"/><joint name="stand" type="fixed"><parent link="world"/><child link="base"/>'
        '<origin xyz="0 0 2" rpy="0 0 0.5"/></joint></robot>'
    )
    mechanism = load_mechanism(example.replace("</robot>", world))
    stand = mechanism.joint_named["stand"]
    assert (stand.parent, stand.child) == ("base", "world")
    assert stand.origin[2, 3] == pytest.approx(-2.0)
    assert np.array_equal(mechanism.home, load_mechanism(example).home)
    assert len(mechanism.limbs) == 2


def test_platform_that_hangs_on_a_limb(example: str) -> None:
    """The cut may lie anywhere: here the tip is carried by the left forearm and there is no platform branch."""
    text = re.sub(r'<joint name="[xy]" type="prismatic">.*?</joint>', "", example, flags=re.DOTALL)
    text = text.replace('<link name="slide"/>', "")
    text = re.sub(r'<loop name="left_pin".*?</loop>', "", text, flags=re.DOTALL)
    pin = (
        '<joint name="pin" type="fixed"><parent link="left_forearm"/><child link="tip"/>'
        '<origin xyz="0.4 0 0"/></joint></robot>'
    )
    text = text.replace("</robot>", pin).replace('<home xyz="0 0.45 0">', "<home>")
    mechanism = load_mechanism(text)
    assert mechanism.platform_chain == ()
    assert mechanism.mobility.platform == 2
    # No pose of home is named: the drives keep their start values, and the elbows close the loop.
    values = dict(zip(mechanism.moving_joints, mechanism.home_joints, strict=True))
    assert (values["left_arm"], values["right_arm"]) == (2.3, 0.8)
    left, right = (
        np.array([side * 0.125 + 0.3 * np.cos(arm), 0.3 * np.sin(arm)]) for side, arm in ((-1, 2.3), (1, 0.8))
    )
    for elbow in (left, right):
        assert np.linalg.norm(mechanism.home[:2, 3] - elbow) == pytest.approx(0.4, abs=1e-9)


def test_floating_platform(example: str) -> None:
    """A platform may hang on a floating joint instead of a virtual chain."""
    text = re.sub(r'<joint name="x" type="prismatic">.*?</joint>', "", example, flags=re.DOTALL)
    text = re.sub(
        r'<joint name="y" type="prismatic">.*?</joint>',
        '<joint name="free" type="floating"><parent link="base"/><child link="tip"/></joint>',
        text,
        flags=re.DOTALL,
    ).replace('<link name="slide"/>', "")
    # Two drives do not hold a tip that turns: spot-weld it to the left forearm.
    text = text.replace('<loop name="left_pin" type="revolute">', '<loop name="left_pin" type="fixed">')
    text = text.replace('<home xyz="0 0.45 0">', "<home>")
    mechanism = load_mechanism(text)
    assert mechanism.platform_chain == ("free",)
    assert mechanism.joint_named["free"].type is JointType.FLOATING
    assert len(mechanism.home_joints) == 4 + 6
    assert mechanism.mobility.platform == 2
    # the search for home may start from a degree of freedom of a joint that has several
    started = text.replace("<home>", '<home><joint name="free/y" position="0.45"/>')
    assert parse(started).home_joints["free/y"] == 0.45
    assert load_mechanism(started).home[1, 3] == pytest.approx(0.446, abs=1e-3)
    with pytest.raises(DescriptionError, match=r"free/angle.*no such joint with one degree of freedom"):
        load_mechanism(text.replace("<home>", '<home><joint name="free/angle" position="1"/>'))


def test_mimic_joint_couples_two_coordinates(example: str) -> None:
    """With the right arm geared to the left, one drive is left and one degree of freedom."""
    text = example.replace(
        '<parent link="base"/> <child link="right_arm"/>',
        '<parent link="base"/> <child link="right_arm"/> '
        '<mimic joint="left_arm" multiplier="-1" offset="3.141592653589793"/>',
    )
    text = re.sub(r'<joint name="right_arm">\s*<command_interface.*?</joint>', "", text, flags=re.DOTALL)
    mechanism = load_mechanism(text)
    assert mechanism.mobility.motion == "1T"
    values = dict(zip(mechanism.moving_joints, mechanism.home_joints, strict=True))
    assert values["right_arm"] == pytest.approx(np.pi - values["left_arm"], abs=1e-12)


def test_unknown_elements_are_skipped(example: str) -> None:
    noise = '<gazebo><plugin name="x"/></gazebo><transmission name="t"/><sensor name="s"/></robot>'
    assert load_mechanism(example.replace("</robot>", noise)).mobility.platform == 2


def test_published_table_that_no_body_can_have(example: str) -> None:
    broken = example.replace('izz="6e-3"', 'izz="60e-3"')
    accepted = broken.replace("<pkm ", '<pkm accept_invalid_inertia="true" ')
    assert load_mechanism(accepted).link_named["left_arm"].inertial.inertia[2, 2] == 60e-3


def test_kinematics_without_masses(example: str) -> None:
    text = re.sub(r"<inertial>.*?</inertial>", "", example, flags=re.DOTALL)
    text = re.sub(r'<param name="rotor_inertia">.*?</param>', "", text).replace("<pkm ", '<pkm kinematics_only="true" ')
    assert load_mechanism(text).mobility.platform == 2


def test_users_own_xacro_file_uses_the_limb_macros(tmp_path: Path) -> None:
    gallery = load_mechanism("hexaglide")
    text = Path(gallery.source).read_text().replace("../limbs/", "$(find pkm_control)/pkm_description/limbs/")
    path = tmp_path / "mine.urdf.xacro"
    path.write_text(text)
    mine = load_mechanism(path)
    assert np.array_equal(mine.home_joints, gallery.home_joints)
    assert load_mechanism(str(path)).source == str(path)
    assert load_mechanism(text).joint_named.keys() == gallery.joint_named.keys()
