# SPDX-License-Identifier: Apache-2.0
"""A workspace says whether it is all that the limbs reach, or what they follow the platform to from home."""

from __future__ import annotations

import pytest

from pkm_analysis import Analysis
from pkm_description import load_mechanism


@pytest.mark.parametrize(("name", "all_of_it"), [("five_bar", True), ("irsbot2", False)])
def test_it_says_which_set_it_is(name: str, all_of_it: bool) -> None:
    found = Analysis(load_mechanism(name)).workspace(tolerance=0.02, resolution=9)
    assert found.all_of_it == all_of_it
    assert found.to_dict()["shows"] == found.shows
    assert ("follow the platform on the straight way from home" in str(found)) != all_of_it
