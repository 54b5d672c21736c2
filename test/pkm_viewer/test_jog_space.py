# SPDX-License-Identifier: Apache-2.0
"""Task coordinates to jog: as many as there are degrees of freedom, with reachable spans, on robots of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.loop.jogging import jog_speeds
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics, Status
from pkm_viewer.jog_space import JogSpace
from test.oracles.redundant_robots import on_a_rail

AXES = {  # directions that the platform moves in, and turns about, at home
    "five_bar": ("xy", ""),
    "delta": ("xyz", ""),
    "irsbot2": ("xz", ""),
    "planar_3rrr": ("xy", "z"),
    "quattro": ("xyz", "z"),
    "agile_eye": ("", "xyz"),
    "tripod_3prs": ("z", "xy"),
    "gough_stewart": ("xyz", "xyz"),
}


@pytest.mark.parametrize("name", AXES)
def test_coordinates_are_freedoms_within_reach(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    space = JogSpace(kinematics)
    moves, turns = AXES[name]
    assert space.translations == tuple(axis in moves for axis in "xyz")
    assert space.rotations == tuple(axis in turns for axis in "xyz")
    assert len(space.independent) == kinematics.mobility
    home = np.array([one.home for one in space.all])
    joints = np.array(kinematics.home_joints)
    for one in space.independent:
        assert one.low < one.home < one.high
        for end in (one.low, one.high):
            wanted = home.copy()
            wanted[one.index] += 0.3 * (end - one.home)
            target = space.target(wanted, joints)
            assert not target.problem
            solved = kinematics.inverse(target.pose, seed=target.joints)
            assert int(solved.status) == Status.CONVERGED
            moved = target.coordinates[one.index] - one.home
            assert moved * (end - one.home) > 0.0
            if kinematics.constant_space:
                np.testing.assert_allclose(target.coordinates, wanted, atol=1e-9)


def test_what_cannot_be_reached_is_refused_with_a_reason() -> None:
    kinematics = Kinematics(load_mechanism("delta"))
    space = JogSpace(kinematics)
    far = np.array(kinematics.home)
    far[2] -= 5.0
    assert space.target_at(far, np.array(kinematics.home_joints)).problem


def test_spans_end_where_the_workspace_ends() -> None:
    """A hobby hexapod tilts by 17.5 to 20 degrees: a slider goes there, not to the last of 24 steps before."""
    kinematics = Kinematics(load_mechanism("docs/examples/hobby_hexapod.urdf.xacro"))
    space = JogSpace(kinematics)
    (pitch,) = (one for one in space.all if one.name == "platform_pitch")
    for end, sign in ((pitch.low, -1.0), (pitch.high, 1.0)):
        rows = np.tile([one.home for one in space.all], (2, 1))
        rows[:, pitch.index] = end, end + sign * np.radians(0.1)
        assert [int(status) == Status.CONVERGED for status in kinematics.inverse(rows).status] == [True, False]
        assert abs(end) > np.radians(17.0)


def test_a_refusal_names_a_number_that_differs_from_its_bound() -> None:
    kinematics = Kinematics(load_mechanism("delta"))
    joints = np.array(kinematics.home_joints)
    column = kinematics.joint_names.index("limb1_arm")
    joints[column] = kinematics.mechanism.joint_named["limb1_arm"].limits.upper + 2e-6
    (said,) = kinematics.limit_violations(joints)
    assert "at 1.650002 rad is outside [-0.95, 1.65]" in said


def test_a_rail_is_a_coordinate_behind_those_of_the_platform() -> None:
    """It moves while the platform stays; within jog speed, and only where the limbs reach."""
    kinematics = Kinematics(load_mechanism(on_a_rail("delta")))
    space = JogSpace(kinematics)
    home, joints = np.array(kinematics.home), np.array(kinematics.home_joints)
    (rail,) = space.redundant
    assert (rail.index, rail.name, rail.low, rail.high, rail.home) == (3, "rail", -1.0, 1.0, 0.0)
    before = space.coordinates(home, joints)
    target = space.target_beside(home, np.array([*before[:3], 0.2]), joints)
    assert not target.problem
    np.testing.assert_allclose(target.coordinates, [*before[:3], 0.2], atol=1e-9)
    assert kinematics.inverse(np.append(home, 0.2)).actuated == pytest.approx(
        target.joints[kinematics.engine.actuated_column], abs=1e-9
    )
    assert space.duration(before, target.coordinates) == pytest.approx(1.875 * 0.2 / jog_speeds(kinematics)[0])
    assert space.target_beside(home, np.array([*before[:3], 5.0]), joints).problem
