# SPDX-License-Identifier: Apache-2.0
"""A prefix before the names of frames."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_bringup import bringup
from pkm_description import load_mechanism
from pkm_description.description_error import DescriptionError
from pkm_description.gallery import robot_names
from pkm_description.urdf.xml_text import prefix_frames
from pkm_kinematics import Kinematics


@pytest.mark.parametrize("name", robot_names())
def test_every_link_has_it_and_the_robot_is_the_same(name: str) -> None:
    plain = load_mechanism(name)
    made = load_mechanism(prefix_frames(plain.urdf, "left/"))
    assert [link.name for link in made.links] == ["left/" + link.name for link in plain.links]
    assert (made.base_link, made.platform_link) == ("left/" + plain.base_link, "left/" + plain.platform_link)
    assert made.actuated_joints == plain.actuated_joints
    for ours, theirs in zip(plain.joints, made.joints, strict=True):
        assert (theirs.parent, theirs.child) == ("left/" + ours.parent, "left/" + ours.child)
    for ours, theirs in zip(plain.loops, made.loops, strict=True):
        assert (theirs.predecessor, theirs.successor) == ("left/" + ours.predecessor, "left/" + ours.successor)


def test_it_solves_as_before() -> None:
    plain, made = (
        Kinematics(load_mechanism(text))
        for text in (
            load_mechanism("delta").urdf,
            bringup.description(bringup.defaults(robot="delta", frame_prefix="a_")),
        )
    )
    assert made.mechanism.base_link == "a_" + plain.mechanism.base_link
    np.testing.assert_array_equal(made.inverse(plain.home).joints, plain.inverse(plain.home).joints)


@pytest.mark.parametrize("prefix", ["/left", "a b", 'x"/>', "ä/"])
def test_what_is_no_name_is_refused(prefix: str) -> None:
    with pytest.raises(DescriptionError, match="valid frame prefix"):
        prefix_frames(load_mechanism("delta").urdf, prefix)


def test_without_one_nothing_changes() -> None:
    assert prefix_frames("<robot/>", "") == "<robot/>"
