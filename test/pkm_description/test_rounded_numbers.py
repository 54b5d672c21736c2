# SPDX-License-Identifier: Apache-2.0
"""Files whose numbers have few digits: loops that repeat each other agree again, and larger gaps are told."""

from __future__ import annotations

import re

import pytest

from pkm_description import load_mechanism
from pkm_description.description_error import DescriptionError
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.load import expand_told
from pkm_kinematics import Kinematics

GIVEN = {"platform": "platform", "base": "base_link"}


def _rounded(digits: int) -> str:
    text = re.sub("<custom>.*?</custom>", "", export_mjcf(load_mechanism("delta")), flags=re.DOTALL)
    return re.sub(r'(?<=["\s])-?\d+\.\d+(e-?\d+)?(?=["\s])', lambda one: f"{float(one.group()):.{digits}g}", text)


@pytest.mark.parametrize(("digits", "most"), [(7, 1e-7), (6, 1e-6)])
def test_rounded_loops_close_where_the_platform_goes(digits: int, most: float) -> None:
    text, _, notes = expand_told(_rounded(digits), GIVEN)
    (said,) = [note for note in notes if "rounded" in note]
    miss, moved = map(float, re.findall(r"by (?:up to )?(\S+) m", said))
    assert 1e-12 < miss < most
    assert 1e-12 < moved < most  # no more than the digits left out
    kinematics, drawn = Kinematics(load_mechanism(text)), Kinematics(load_mechanism("delta"))
    for step in (0.0, 0.05, 0.1):
        pose = drawn.home.copy()
        pose[:3] += [step, -0.5 * step, step]
        found, exact = kinematics.inverse(pose), drawn.inverse(pose)
        assert found.status == exact.status == 0  # it was open by 1e-9 of its size, ten times what counts as closed
        # an arm of 0.2 m and numbers that differ by `most`
        assert found.actuated == pytest.approx(exact.actuated, abs=20 * most)


def test_a_gap_that_digits_do_not_explain_is_told() -> None:
    text = _rounded(17)
    place = re.search(r'<site name="limb1_a_ball[^>]* pos="(\S+)', text)
    assert place is not None
    wrong = text[: place.start(1)] + repr(float(place[1]) + 1e-4) + text[place.end(1) :]
    with pytest.raises(DescriptionError, match=r"stays open by \S+e-05 m"):
        load_mechanism(wrong, GIVEN)
