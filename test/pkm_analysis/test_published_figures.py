# SPDX-License-Identifier: Apache-2.0
"""Figures of papers of the workshop in Quebec, 2002, by the analysis of the robots that they describe."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pkm_description
from pkm_analysis import Analysis, Requirement, user_quantity
from pkm_description import load_mechanism
from pkm_description.mechanism import Array

CASES = [(2.0, 30.0), (3.0, 30.0), (4.0, 30.0), (5.0, 90.0), (6.0, 90.0), (7.0, 90.0)]


def test_transmission_of_the_orthoglide_at_the_corners_of_its_cube() -> None:
    # Wenger and Chablat, "Design of a Three-Axis Isotropic Parallel Manipulator for Machining Applications": factors
    # from 1/2 to 2 in a cube of 200 mm, reached at the two corners on the diagonal, 126.795 mm to one side of the
    # isotropic point and 73.205 mm to the other.
    analysis = Analysis(load_mechanism("orthoglide"))
    corners = np.array([[-0.126795] * 3, [0.0] * 3, [0.073205] * 3])
    poses = analysis.robot.coordinates.poses(corners)[0]
    largest = analysis.quantity("largest_transmission").of(analysis.robot, poses)
    least = analysis.quantity("smallest_transmission").of(analysis.robot, poses)
    np.testing.assert_allclose(largest, [2.0, 1.0, 2.0], atol=2e-5)
    np.testing.assert_allclose(least, [0.5, 1.0, 0.8], atol=2e-5)


def test_a_2_rpr_holds_by_the_angle_between_its_legs() -> None:
    # Kozak, Ebert-Uphoff, Voglewede and Singhose, "Concept paper: on the significance of the lowest linearized natural
    # frequency": of a point held by two legs at an angle, the lowest squared frequency goes with 1 - |cos angle|.
    analysis = Analysis(load_mechanism("two_rpr"))
    points = np.random.default_rng(3).uniform([0.1, 0.1], [0.6, 0.6], (40, 2))
    poses = analysis.robot.coordinates.poses(points)[0]
    found = analysis.quantity("type2").of(analysis.robot, poses)
    base = [analysis.robot.mechanism.joint_named[f"limb{k}_turn"].origin[:3, 3] for k in (1, 2)]
    legs = [poses[:, :3] - one for one in base]
    cosine = np.sum(legs[0] * legs[1], axis=1) / np.prod([np.linalg.norm(leg, axis=1) for leg in legs], axis=0)
    known = np.isfinite(found)
    assert known.sum() > 20
    np.testing.assert_allclose(found[known], np.sqrt(1.0 - np.abs(cosine[known])), rtol=1e-6)


def test_the_workspace_of_hay_and_snyman_at_three_orientations() -> None:
    # Hay and Snyman, "The synthesis of parallel manipulators for optimal desired workspaces", their optimum, legs of
    # sqrt 2 to 2, and of 1 to sqrt 2. Where all of -5, 0 and 5 degrees are reached: 0.1405 by a count of its own from
    # the printed numbers, x from 0.658 to 1.345, y from 1.27 to 1.588.
    analysis = Analysis(load_mechanism("hay_snyman"))
    legs = {"limb1_leg": (2**0.5, 2.0), "limb2_leg": (2**0.5, 2.0), "limb3_leg": (1.0, 2**0.5)}
    bounds = [f"joint:{name} > {low} m" for name, (low, _) in legs.items()]
    bounds += [f"joint:{name} < {high} m" for name, (_, high) in legs.items()]
    turn = np.radians(5.0)
    found = analysis.positions(
        "total", {"yaw": (-turn, turn)}, steps=3, requirements=bounds, resolution=61, tolerance=1e-3
    )
    assert found.size == pytest.approx(0.1405, abs=found.error)
    np.testing.assert_allclose(np.ravel(found.bounds), [0.658, 1.27, 1.345, 1.588], atol=4e-3)


def suspended_by_three_cables(folder: Path, d2: float, turn: float) -> float:
    """Area of positions that three cables hold a platform at, none slack, none longer than they are.

    Cables are the legs of a planar 3-RPR; y points down, as the weight does. They hang from (10, 0), (d2, 1), (0, 0)
    and hold the corners of an equilateral triangle of side 1.
    """
    file = Path(pkm_description.__file__).parent / "robots" / "planar_3rpr.urdf.xacro"
    text = file.read_text().replace("../limbs", str(file.parent.parent / "limbs"))
    corners = [[float(np.cos(a) / 3**0.5), float(np.sin(a) / 3**0.5)] for a in np.radians([0.0, 120.0, 240.0])]
    numbers = {
        "base_points": f"${{[[10.0, 0.0], [{d2}, 1.0], [0.0, 0.0]]}}",
        "platform_points": f"${{{corners}}}",
        "home_xyz": "${[4.0, 5.0, 0.0]}",
        "home_rpy": f"${{[0.0, 0.0, {turn}]}}",
        "leg_lower": "0.5",
        "leg_upper": "10",
    }
    for name, value in numbers.items():
        text, found = re.subn(rf'(name="{name}" value=")[^"]*', lambda m, v=value: m[1] + v, text)
        assert found == 1
    text = re.sub(r'([xy])_range="[^"]*"', r'\1_range="${[0.0, 10.0]}"', text)
    robot = folder / "suspended.urdf.xacro"
    robot.write_text(text)
    analysis = Analysis(load_mechanism(str(robot)))
    weight = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])

    def least_tension(poses: Array) -> Array:
        kinematics = analysis.robot.kinematics
        space = kinematics.subspace(poses)
        onto = np.nan_to_num(kinematics.at(poses).inverse_jacobian @ space)  # rates of the legs per degree of freedom
        held = np.abs(np.linalg.det(onto)) > 1e-9
        tension = np.full((len(poses), 3), -1.0)
        load = space[held].swapaxes(1, 2) @ weight
        tension[held] = np.linalg.solve(onto[held].swapaxes(1, 2), load[..., None])[..., 0]
        return np.where((tension <= 50.0).all(axis=1), tension.min(axis=1), -1.0)

    taut = Requirement(user_quantity("least tension", "N", least_tension), 0.0)
    where = {"x": (0.0, 10.0), "y": (0.0, 10.0)}
    return analysis.sweep("reach", where, vary=["x", "y"], requirements=[taut], poses=6400).size[0]


@pytest.mark.slow
def test_where_the_third_cable_of_a_suspended_platform_is_best_hung(tmp_path: Path) -> None:
    # Fattah and Agrawal, "Design of cable-suspended planar parallel robots for an optimal workspace": of positions for
    # the middle cable, 3 is best with the platform at 30 degrees and 6 at 90, and the workspace is larger at 30.
    areas = {(d2, turn): suspended_by_three_cables(tmp_path, d2, np.radians(turn)) for d2, turn in CASES}
    assert areas[3.0, 30.0] > max(areas[2.0, 30.0], areas[4.0, 30.0])
    assert areas[6.0, 90.0] > max(areas[5.0, 90.0], areas[7.0, 90.0])
    assert areas[3.0, 30.0] > areas[6.0, 90.0]
    assert areas[3.0, 30.0] == pytest.approx(28.19, rel=0.02)  # by a count of its own from the printed numbers
    assert areas[6.0, 90.0] == pytest.approx(24.06, rel=0.02)


def test_three_schoenflies_limbs_leave_a_delta_its_translations_alone() -> None:
    # Angeles, "The qualitative synthesis of parallel manipulators": the Delta's motions are what its three Schoenflies
    # limbs have in common, the three translations; all over its workspace, not at home alone.
    analysis = Analysis(load_mechanism("delta"))
    points = np.random.default_rng(16).uniform([-0.3, -0.3, -1.0], [0.3, 0.3, -0.75], (60, 3))
    poses = analysis.robot.coordinates.poses(points)[0]
    spaces = analysis.robot.kinematics.subspace(poses)
    assert spaces.shape == (60, 6, 3)
    assert np.abs(spaces[:, 3:]).max() < 1e-9
    np.testing.assert_allclose(np.abs(np.linalg.det(spaces[:, :3])), 1.0, rtol=1e-9)
    assert analysis.quantity("constraint").of(analysis.robot, poses).min() > 0.01  # and they block each rotation
