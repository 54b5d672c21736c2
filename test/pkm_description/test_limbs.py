# SPDX-License-Identifier: Apache-2.0
"""Limbs are counted as the literature counts them, whatever tree and cuts a description chooses."""

from __future__ import annotations

import re

import pytest

from bench.strange_robots import FREE, TIP, body, joint, loop, robot
from pkm_description import Mechanism, load_mechanism
from pkm_description.load import expand

PLATES = {"h4": ("plate1", "plate2"), "quattro": ("plate1", "plate_bar", "plate2")}


def check_four_limbs(mechanism: Mechanism, plates: tuple[str, ...]) -> None:
    assert [limb.name for limb in mechanism.limbs] == ["limb1", "limb2", "limb3", "limb4"]
    for limb in mechanism.limbs:
        assert limb.actuated == (f"{limb.name}_arm",)
        assert limb.loops == (f"{limb.name}_a_ball", f"{limb.name}_b_ball")
        assert all(name.startswith(limb.name) for name in limb.links + limb.joints)
    articulated = mechanism.articulated_platform
    assert articulated is not None
    assert set(articulated.links) == set(plates)
    assert not articulated.actuated


@pytest.mark.parametrize("name", PLATES)
def test_an_articulated_platform_is_no_limb(name: str) -> None:
    mechanism = load_mechanism(name)
    check_four_limbs(mechanism, PLATES[name])
    articulated = mechanism.articulated_platform
    assert articulated is not None
    hinges = {"plate1_hinge", "plate2_hinge"} | ({"plate_bar_hinge"} if name == "quattro" else set())
    assert set(articulated.joints) == hinges
    assert articulated.loops == (("plate_corner",) if name == "quattro" else ())


def test_every_joint_and_loop_has_one_place() -> None:
    mechanism = load_mechanism("quattro")
    parts = [*mechanism.limbs, mechanism.articulated_platform]
    for kind, everything in (("joints", mechanism.joints), ("loops", mechanism.loops)):
        placed = [name for part in parts for name in getattr(part, kind)]
        if kind == "joints":
            placed += mechanism.platform_chain
        assert sorted(placed) == sorted(one.name for one in everything)


def test_another_spanning_tree_has_the_same_limbs() -> None:
    """A Quattro whose second half plate hangs on the second bar, with its other hinge cut."""
    text, _ = expand("quattro")
    hinge = re.search(r'<joint name="plate2_hinge".*?</joint>', text, re.DOTALL)
    corner = re.search(r'<loop name="plate_corner".*?</loop>', text, re.DOTALL)
    assert hinge
    assert corner
    text = text.replace(hinge.group(), loop("plate2_hinge", "platform", "0 -0.05 0", "plate2"))
    behind = joint("plate_corner", "plate_bar", "corner", "0 -0.1 0") + '<link name="corner"/>'
    behind += joint("seat", "corner", "plate2", "-0.1 0 0", kind='type="fixed"')
    check_four_limbs(load_mechanism(text.replace(corner.group(), behind)), (*PLATES["quattro"], "corner"))


def test_platform_without_joints_of_its_own() -> None:
    for name in ("delta", "par2", "irsbot2", "tri_scott", "navaro", "tricept"):
        assert load_mechanism(name).articulated_platform is None


def five_bar_leg(name: str, x: float, y: float, seat: str) -> str:
    """A five-bar whose tip, the end of the left forearm, is pinned to the platform."""
    sides = "".join(
        body(f"{name}_{side}_arm", 0.3)
        + body(f"{name}_{side}_bar", 0.4)
        + joint(f"{name}_{side}_motor", "base", f"{name}_{side}_arm", f"{x + offset} {y} 0", kind=FREE)
        + joint(f"{name}_{side}_elbow", f"{name}_{side}_arm", f"{name}_{side}_bar", "0.3 0 0", kind=FREE)
        for side, offset in (("left", -0.1), ("right", 0.1))
    )
    tip = loop(f"{name}_tip", f"{name}_right_bar", "0.4 0 0", f"{name}_left_bar", "0.4 0 0")
    return sides + tip + loop(f"{name}_pin", f"{name}_left_bar", "0.4 0 0", "tip", seat)


def test_a_five_bar_that_serves_as_a_limb_is_one() -> None:
    """Two drives meet in its tip, but they hold it: it is no part of the platform."""
    branch = joint("x", "base", "slide", axis="1 0 0", kind='type="prismatic"') + '<link name="slide"/>'
    branch += joint("y", "slide", "turn", axis="0 1 0", kind='type="prismatic"') + '<link name="turn"/>'
    branch += joint("angle", "turn", "tip")
    legs = five_bar_leg("one", -0.5, 0.0, "-0.1 0 0") + five_bar_leg("two", 0.5, 0.0, "0.1 0 0")
    drives = tuple(f"{name}_{side}_motor" for name in ("one", "two") for side in ("left", "right"))
    mechanism = load_mechanism(robot(TIP + branch + legs, drives, home='<home xyz="0 0.4 0">{}</home>', start={}))
    assert [limb.name for limb in mechanism.limbs] == ["one", "two"]
    assert [len(limb.actuated) for limb in mechanism.limbs] == [2, 2]
    assert mechanism.articulated_platform is None
