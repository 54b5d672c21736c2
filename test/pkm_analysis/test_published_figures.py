# SPDX-License-Identifier: Apache-2.0
"""Figures of papers of the workshop in Quebec, 2002, by the analysis of the robots that they describe."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_description import load_mechanism


def test_transmission_of_the_orthoglide_at_the_corners_of_its_cube() -> None:
    # Wenger and Chablat, "Design of a Three-Axis Isotropic Parallel Manipulator for Machining Applications": factors
    # from 1/2 to 2 in a cube of 200 mm, reached at the two corners on the diagonal, 126.795 mm to one side of the
    # isotropic point and 73.205 mm to the other.
    analysis = Analysis(load_mechanism("orthoglide"))
    corners = np.array([[-0.126795] * 3, [0.0] * 3, [0.073205] * 3])
    poses = analysis.robot.coordinates.poses(corners)[0]
    largest = analysis.quantity("fastest_platform").of(analysis.robot, poses)
    least = analysis.quantity("type1").of(analysis.robot, poses)
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
