# SPDX-License-Identifier: Apache-2.0
"""Robots with more degrees of freedom than their platform: which joints become coordinates beside its pose."""

from __future__ import annotations

import pytest

from bench.legs_at_home import ROBOTS as LEGS_AT_HOME
from pkm_description import DescriptionError, load_mechanism
from pkm_description.gallery import robot_names
from test.oracles.redundant_robots import LOCKED, REDUNDANT, STAGE, hexapods_in_series, planar_3prrr, planar_on_a_rail


@pytest.mark.parametrize("case", REDUNDANT)
def test_what_the_pose_leaves_open_is_told(case: str) -> None:
    make, platform, total, redundant = REDUNDANT[case]
    mechanism = load_mechanism(make())
    mobility = mechanism.mobility
    assert (mobility.platform, mobility.total - mobility.idle) == (platform, total)
    assert mobility.kinematic_redundancy == total - platform
    assert mobility.redundant_actuators == 0
    assert mechanism.redundant_joints == redundant
    assert redundant[0] in mechanism.coordinates_in_words()


def test_redundant_joints_are_at_rest_at_home() -> None:
    """The search for home moves whatever closes the loops; a rail stays where nothing says otherwise."""
    mechanism = load_mechanism(planar_on_a_rail(locked=False))
    assert mechanism.home_joints[mechanism.moving_joints.index("rail")] == 0.0


def test_limbs_part_from_the_carriage() -> None:
    limbs = {limb.name: limb.actuated for limb in load_mechanism(planar_on_a_rail(locked=False)).limbs}
    assert limbs == {"limb1": ("limb1_leg",), "limb2": ("limb2_leg",), "limb3": ("limb3_leg",), "rail": ("rail",)}


def with_pkm(text: str, inside: str) -> str:
    return text.replace("</pkm>", f"{inside}</pkm>")


def test_a_description_may_name_them() -> None:
    text = with_pkm(hexapods_in_series(locked=False), '<redundant joint="stage"/>')
    assert load_mechanism(text).redundant_joints == REDUNDANT["two hexapods in series"][3]
    arms = with_pkm(planar_3prrr(locked=False), "".join(f'<redundant joint="limb{k}_slider"/>' for k in (3, 1, 2)))
    assert load_mechanism(arms).redundant_joints == REDUNDANT["planar 3-PRRR with six drives"][3]


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        (["limb1_arm"], "limb1_slider carries it"),
        (["slider"], "no such joint"),
        ([""], "attribute joint is missing"),
        (["limb1_slider"], "2 of 3 coordinates are missing"),
        (["limb1_slider", "limb1_arm", "limb1_forearm"], "leave it no motion"),
    ],
)
def test_names_that_are_no_coordinates_are_refused(named: list[str], problem: str) -> None:
    elements = "".join(f'<redundant joint="{name}"/>' for name in named)
    with pytest.raises(DescriptionError, match=problem):
        load_mechanism(with_pkm(planar_3prrr(locked=False), elements))


@pytest.mark.parametrize(
    ("elements", "problem"),
    [
        ('<redundant joint="stage" follows="0.5 0 0"/>', "several degrees of freedom"),
        ('<redundant joint="stage"/><redundant joint="stage"/>', "appears twice"),
        ('<redundant joint="stage" follows="half"/>', "follows"),
    ],
)
def test_elements_that_say_nothing_clear_are_refused(elements: str, problem: str) -> None:
    with pytest.raises(DescriptionError, match=problem):
        load_mechanism(with_pkm(hexapods_in_series(locked=False), elements))


def test_a_stage_may_follow_in_one_direction() -> None:
    elements = "".join(
        f'<redundant joint="{name}"{follows}/>'
        for name, follows in zip(STAGE, (' follows="0.5 0 0"', *([""] * 5)), strict=True)
    )
    mechanism = load_mechanism(with_pkm(hexapods_in_series(locked=False), elements))
    assert mechanism.redundant_follow.tolist() == [[0.5, 0.0, 0.0], *([[0.0, 0.0, 0.0]] * 5)]


def test_names_for_a_robot_without_redundancy_are_refused() -> None:
    with pytest.raises(DescriptionError, match="no kinematic redundancy"):
        load_mechanism(with_pkm(planar_on_a_rail(locked=True), '<redundant joint="limb1_leg"/>'))


def test_drives_beyond_all_freedoms_are_refused() -> None:
    text = planar_on_a_rail(locked=False)
    more = text.replace(
        "</ros2_control>", '<joint name="limb1_turn"><command_interface name="effort"/></joint></ros2_control>'
    )
    with pytest.raises(DescriptionError, match="5 drives, which hold 4 of them"):
        load_mechanism(more)


@pytest.mark.parametrize("case", LOCKED)
def test_the_same_robot_with_the_surplus_drives_locked_has_none(case: str) -> None:
    make, platform = LOCKED[case]
    mechanism = load_mechanism(make(locked=True))
    mobility = mechanism.mobility
    assert (mobility.platform, mobility.total, mobility.actuators) == (platform, platform, platform)
    assert mobility.kinematic_redundancy == 0
    assert mechanism.redundant_joints == ()


@pytest.mark.parametrize("name", robot_names())
def test_redundant_actuation_in_the_gallery(name: str) -> None:
    mechanism = load_mechanism(name)
    assert mechanism.mobility.kinematic_redundancy == 0
    assert mechanism.redundant_joints == ()
    expected = {"gough_stewart_7": 1, "planar_redundant": 1, "cable_8": 2}.get(name, 0)
    assert mechanism.mobility.redundant_actuators == expected


def test_idle_freedoms_are_no_redundancy() -> None:
    """Rods between two spherical joints spin, which moves neither platform nor drive."""
    mobility = load_mechanism(LEGS_AT_HOME["6-RSS"][0]().text).mobility
    assert (mobility.platform, mobility.total, mobility.idle) == (6, 12, 6)
    assert mobility.kinematic_redundancy == 0
