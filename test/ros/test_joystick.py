# SPDX-License-Identifier: Apache-2.0
"""What a joystick asks for: nothing unless a button is held, speeds by its sticks, and no step at the dead zone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pkm_bringup.nodes.joystick_node import Hand

HAND = Hand((1, 0, 4, -1, -1, 3), held=4, fast=5, linear=0.1, angular=0.3, faster=2.0, dead_zone=0.1)
HELD = [0, 0, 0, 0, 1, 0]
AT_REST = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]  # triggers rest at one


def axes(**values: float) -> list[float]:
    found = list(AT_REST)
    for name, value in values.items():
        found[int(name.removeprefix("a"))] = value
    return found


def test_nothing_moves_unless_the_button_is_held() -> None:
    assert HAND.twist(axes(a1=1.0), [1, 1, 1, 1, 0, 1]) is None
    assert HAND.twist(axes(a1=1.0), []) is None
    assert HAND.twist(axes(a1=1.0), [1]) is None


def test_sticks_say_the_speeds() -> None:
    found = HAND.twist(axes(a0=-1.0, a1=1.0, a4=0.55, a3=1.0), HELD)
    np.testing.assert_allclose(found, [0.1, -0.1, 0.05, 0.0, 0.0, 0.3], rtol=1e-12)
    fast = HAND.twist(axes(a0=-1.0, a1=1.0, a4=0.55, a3=1.0), [0, 0, 0, 0, 1, 1])
    np.testing.assert_allclose(fast, 2.0 * np.asarray(found), rtol=1e-12)


def test_the_dead_zone_is_rest_and_no_step_follows_it() -> None:
    np.testing.assert_array_equal(HAND.twist(axes(a1=0.0999), HELD), np.zeros(6))
    just_beyond = HAND.twist(axes(a1=0.1001), HELD)
    assert just_beyond is not None
    assert 0.0 < just_beyond[0] < 1e-4


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_axis_that_is_no_number_moves_nothing(value: float) -> None:
    assert HAND.twist(axes(a4=value), HELD) is None
    np.testing.assert_array_equal(HAND.twist(axes(a2=value), HELD), np.zeros(6))  # no direction has it


def test_more_than_all_the_way_is_all_the_way() -> None:
    found = HAND.twist(axes(a1=-32767.0), HELD)
    assert found is not None
    assert found[0] == pytest.approx(-0.1)


def test_a_small_joystick_moves_what_it_has() -> None:
    found = HAND.twist([0.0, 1.0], HELD)
    np.testing.assert_allclose(found, [0.1, 0, 0, 0, 0, 0])
    assert HAND.lacks(2, 5) == (
        "this joystick has 2 axes and 5 buttons, and not axis 4 (z), axis 3 (rz), button 5 (fast)"
    )
    assert HAND.lacks(8, 11) == ""


@pytest.mark.parametrize("wrong", [(1, 2, 3), (0, 1, 2, 3, 4, -2)])
def test_axes_are_six_numbers(wrong: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="give six numbers"):
        replace(HAND, axes=wrong)
