# SPDX-License-Identifier: Apache-2.0
"""Points on circles: the forward kinematics of five-bars."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_kinematics.assembly.geometry.surfaces import point_on_circles
from pkm_kinematics.assembly.result import AssemblyStatus


@pytest.mark.parametrize("seed", range(20))
def test_known_point_and_its_mirror_image(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, point = rng.normal(size=(2, 2)), rng.normal(size=2)
    modes = point_on_circles(centres, np.linalg.norm(point - centres, axis=1))
    assert (modes.status, modes.n_complex, modes.n_real) == (AssemblyStatus.COMPLETE, 2, 2)
    assert np.abs(modes.solutions - point).max(axis=1).min() < 1e-10  # rounding, magnified close to tangency
    axis = centres[1] - centres[0]
    sides = axis[0] * (modes.solutions - centres[0])[:, 1] - axis[1] * (modes.solutions - centres[0])[:, 0]
    assert sides[0] > 0 > sides[1]


@pytest.mark.parametrize("where", [0.3, -0.7, 1.4])
def test_limbs_in_line_are_one_double_point(where: float) -> None:
    centres = np.array([[0.1, 0.2], [1.3, -0.4]])
    point = centres[0] + where * (centres[1] - centres[0])
    modes = point_on_circles(centres, np.linalg.norm(point - centres, axis=1))
    assert (modes.status, modes.multiplicity.tolist()) == (AssemblyStatus.SINGULAR, [2])
    assert np.allclose(modes.solutions, [point], atol=1e-12)


def test_circles_apart_coincident_and_redundant() -> None:
    assert point_on_circles([[0, 0], [1, 0]], [0.2, 0.2]).n_real == 0
    assert point_on_circles([[0, 0], [0, 0]], [1, 1]).status == AssemblyStatus.POSITIVE_DIMENSIONAL
    assert point_on_circles([[0, 0], [0, 0]], [1, 2]).n_real == 0
    centres, point = np.array([[0, 0], [1, 0], [0.4, 0.9]]), np.array([0.3, 0.4])
    radii = np.linalg.norm(point - centres, axis=1)
    assert np.allclose(point_on_circles(centres, radii).solutions, [point], atol=1e-12)
    assert point_on_circles(centres, radii * [1, 1, 1.01]).status == AssemblyStatus.INCONSISTENT
    assert point_on_circles(centres, [1, -1, 1]).status == AssemblyStatus.INVALID_INPUT
