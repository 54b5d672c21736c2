# SPDX-License-Identifier: Apache-2.0
"""A half plate named as platform is told from drives that are too many."""

from __future__ import annotations

import pytest

from bench.legs_at_home import Legs, X, Z
from pkm_description import DescriptionError, load_mechanism


@pytest.mark.parametrize("name", ["h4", "quattro"])
@pytest.mark.parametrize("half", ["plate1", "plate2"])
def test_the_remedy_names_the_whole_platform(name: str, half: str) -> None:
    text = load_mechanism(name).urdf
    assert 'platform_link="platform"' in text
    with pytest.raises(DescriptionError) as refused:
        load_mechanism(text.replace('platform_link="platform"', f'platform_link="{half}"'))
    assert refused.value.element == f"<pkm> platform_link '{half}'"
    assert "name as platform_link the link that has all degrees of freedom: 'platform'" in refused.value.remedy
    assert load_mechanism(text).mobility.platform == 4  # what the remedy says is so


def test_drives_in_series_are_redundant() -> None:
    """A platform on one leg that slides twice along the same line: no other link has more degrees of freedom."""
    robot = Legs("xz", [0.0, 0.0, 0.5])
    robot.add([("P", 0.0 * Z, (X,)), ("P", 0.1 * Z, (X,)), ("P", 0.3 * Z, (Z,))], "fixed", robot.home, driven=0)
    robot.driven += ["leg1_2", "leg1_3"]
    assert load_mechanism(robot.text).redundant_joints == ("leg1_1",)
