# SPDX-License-Identifier: Apache-2.0
"""Which method each robot of the gallery gets, and that methods agree wherever several serve a robot."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_description.rotations import pose_distance
from pkm_kinematics.assembly.all_modes import METHODS

CHOSEN = {
    "angles": ["agile_eye", "wrist_3ups_s"],
    "planes": ["tripteron"],
    "spheres": ["delta", "delta_rr", "linear_delta", "orthoglide", "polman"],
    "circles": ["five_bar", "planar_redundant", "ppa_2t", "two_rpr"],
    "planar": ["hay_snyman", "planar_3rpr", "planar_3rrr"],
    "schoenflies": ["four_upu"],
    "distances": ["cable_8", "dietmaier", "gough_stewart", "gough_stewart_7", "griffis_duffy", "hexa", "hexaglide"],
    "surfaces": ["dymo_3uru", "irsbot2", "par2", "three_rpc"],
    "plates": ["h4", "quattro"],
    "constraints": ["carpal_wrist", "eclipse2", "spatial_4dof_5legs", "tricept", "tripod_3prs", "wrist_3ruu"],
    "search": [
        "capaman", "five_dof_3rr_rrr", "navaro", "planar_mixed", "pru_3", "reactionless_four_bar", "tri_scott",
        "two_tpr",
    ],
}  # fmt: skip
SERVED_TWICE = [
    "delta", "delta_rr", "dietmaier", "five_bar", "gough_stewart", "hexa", "hexaglide", "linear_delta", "orthoglide",
    "polman", "ppa_2t", "tripteron", "two_rpr",
]  # fmt: skip


@pytest.mark.parametrize("most", [1, pytest.param(99, marks=pytest.mark.slow)])
def test_every_robot_has_its_method(most, of_gallery):
    """By day one robot of each method."""
    assert [method.name for method in METHODS] == list(CHOSEN)
    assert sorted(name for names in CHOSEN.values() for name in names) == sorted(robot_names())
    for method, names in CHOSEN.items():
        for name in names[:most]:
            assert of_gallery[name].kinematics.assembly_method == method, name


@pytest.mark.parametrize("name", SERVED_TWICE)
def test_methods_agree_on_poses_and_sides(name, of_gallery):
    """They read a limb in different ways, and take the sign from different rows."""
    k = of_gallery[name].kinematics
    first, second = [m for m in (method(k.engine) for method in METHODS) if m.recognised and m.name != "search"]
    assert k.assembly_method == first.name
    home = k.home_joints[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.engine.size)
    rng = np.random.default_rng(6)
    seen = 0
    for far in (0.05, 0.1, 0.2):
        q = home + far * unit * rng.uniform(-1.0, 1.0, len(home))
        found, other = first.solve(q), second.solve(q)
        assert found.certified
        assert other.certified
        assert len(found.poses) == len(other.poses)
        for pose in found.poses:
            turned = 1.0 - np.abs(other.poses[:, 3:] @ pose[3:])
            assert (np.linalg.norm(other.poses[:, :3] - pose[:3], axis=1) + turned).min() < 1e-8
        for one in k.forward_all(q):
            if one.ok:
                seen += 1
                assert first.side(one.pose, one.joints) == second.side(one.pose, one.joints) != 0.0
                assert first.prefixes(q, one.pose[None], one.joints[None]) == [one.label[0]]
    assert seen > 0


def test_a_half_turn_is_one_mode_whichever_sign_its_quaternion_has(of_gallery) -> None:
    k = of_gallery["cable_8"].kinematics
    modes = k.forward_all(k.inverse(k.home).actuated)
    for i, one in enumerate(modes):
        assert one.pose[6] > -1e-9
        for other in modes[:i]:
            assert pose_distance(one.pose, other.pose, k.characteristic_length) > 1e-3
