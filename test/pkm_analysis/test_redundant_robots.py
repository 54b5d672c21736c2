# SPDX-License-Identifier: Apache-2.0
"""Analyses know the platform's pose alone: robots with joints beside it are refused by name."""

from __future__ import annotations

import pytest

from pkm_analysis import Analysis
from pkm_description import load_mechanism
from pkm_runtime.errors import PkmError
from test.oracles.redundant_robots import planar_on_a_rail


def test_robots_with_redundant_joints_are_refused() -> None:
    with pytest.raises(PkmError, match=r"analyses: not supported .*redundant joints: rail"):
        Analysis(load_mechanism(planar_on_a_rail(locked=False)))
