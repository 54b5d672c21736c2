# SPDX-License-Identifier: Apache-2.0
"""The example of docs/your_own_robot.md: it loads, solves, and the numbers of the page hold."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics

DOCS = Path(__file__).resolve().parents[2] / "docs"
BIGLIDE = DOCS / "examples" / "biglide.urdf.xacro"


def test_positions_by_hand() -> None:
    kinematics = Dynamics(load_mechanism(BIGLIDE)).kinematics
    for x, z in ((0.0, -0.4), (0.1, -0.3), (-0.12, -0.45)):
        reach = np.sqrt(0.5**2 - z**2)
        found = kinematics.inverse(np.array([x, 0.0, z, 0.0, 0.0, 0.0, 1.0]))
        assert found.status == 0
        np.testing.assert_allclose(found.actuated, [x - reach, x + reach], atol=1e-12)
    assert kinematics.n_modes == 4
    heights = sorted(one.pose[2] for one in kinematics.forward_all([-0.3, 0.3]))
    np.testing.assert_allclose(heights, [-0.4, 0.4], atol=1e-9)


def test_weight_by_hand() -> None:
    """Pen and half of both bars hang on bars that stand 0.3 m out and 0.4 m down."""
    dynamics = Dynamics(load_mechanism(BIGLIDE))
    push = 0.5 * (0.4 + 0.6) * 9.81 * 0.3 / 0.4
    np.testing.assert_allclose(dynamics.gravity(dynamics.kinematics.home).effort, [-push, push], rtol=1e-12)


def test_the_script_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "examples" / "biglide.py"))
    printed = capsys.readouterr().out
    page = (DOCS / "your_own_robot.md").read_text(encoding="utf-8")
    for line in printed.splitlines():
        if "gives the poses back" not in line:  # rounding differs from machine to machine
            assert line in page
