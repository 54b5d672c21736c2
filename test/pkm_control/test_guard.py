# SPDX-License-Identifier: Apache-2.0
"""The guard: silence, nonsense and excess each get their answer."""

import numpy as np
import pytest

from pkm_control.loop.guard import EffortGuard

LIMITS = np.array([10.0, 20.0, 30.0])
POSE = np.array([0.0, 0.0, -0.8, 0.0, 0.0, 0.0, 1.0])
ASKED = np.array([1.0, 2.0, 3.0])


def gravity(pose):
    return np.array([5.0, 25.0, pose[2]])


def zero_guard() -> EffortGuard:
    return EffortGuard(LIMITS, max_age=0.005)


def gravity_guard() -> EffortGuard:
    return EffortGuard(LIMITS, max_age=0.005, fallback="gravity", gravity=gravity, hold_time=0.1)


def test_what_is_in_order_passes_untouched() -> None:
    verdict = zero_guard().check(1.0, {"state": 0.999, "reference": 0.996}, ASKED)
    np.testing.assert_array_equal(verdict.command, ASKED)
    assert verdict.reason == ""
    assert not verdict.saturated.any()


def test_excess_is_cut_and_told() -> None:
    verdict = zero_guard().check(1.0, {"state": 1.0}, np.array([-11.0, 0.0, 30.0]))
    np.testing.assert_array_equal(verdict.command, [-10.0, 0.0, 30.0])
    np.testing.assert_array_equal(verdict.saturated, [True, False, False])
    assert verdict.reason == ""


@pytest.mark.parametrize(
    ("stamps", "efforts", "reason"),
    [
        ({"state": 0.99}, ASKED, "state is 10.0 ms old"),
        ({"state": 1.0, "reference": 0.99}, ASKED, "reference is 10.0 ms old"),
        ({"state": None}, ASKED, "state has never come"),
        ({"state": float("nan")}, ASKED, "state is nan ms old"),
        ({"state": 1.0}, None, "no efforts"),
        ({"state": 1.0}, np.array([1.0, np.nan, 0.0]), "not finite"),
        ({"state": 1.0}, np.array([1.0, np.inf, 0.0]), "not finite"),
        ({"state": 1.0}, np.array([1.0, 2.0]), "2 efforts for 3"),
        ({"state": 1.0}, np.array([[1.0, 2.0, 3.0]]), "an array (1, 3) for 3"),
    ],
)
def test_nonsense_and_silence_stop_the_efforts(stamps, efforts, reason) -> None:
    verdict = zero_guard().check(1.0, stamps, efforts, POSE)
    np.testing.assert_array_equal(verdict.command, np.zeros(3))
    assert reason in verdict.reason
    assert "zero" in verdict.reason


def test_gravity_is_held_for_its_time_and_within_the_limits() -> None:
    held = gravity_guard().check(1.0, {"state": 0.95}, ASKED, POSE)
    np.testing.assert_array_equal(held.command, [5.0, 20.0, -0.8])
    assert "holding gravity" in held.reason
    later = gravity_guard().check(1.0, {"state": 0.8}, ASKED, POSE)
    np.testing.assert_array_equal(later.command, np.zeros(3))
    unknown = gravity_guard().check(1.0, {"state": None}, ASKED, None)
    np.testing.assert_array_equal(unknown.command, np.zeros(3))


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="fallback"):
        EffortGuard(LIMITS, 0.005, fallback="hope")
    with pytest.raises(ValueError, match="gravity"):
        EffortGuard(LIMITS, 0.005, fallback="gravity")
    with pytest.raises(ValueError, match="max_age"):
        EffortGuard(LIMITS, float("nan"))


def test_gravity_for_efforts_that_cannot_be_used_ends_as_well() -> None:
    carries = np.array([1.0, 2.0])
    guard = EffortGuard(np.array([5.0, 5.0]), 0.01, "gravity", lambda pose: carries, hold_time=0.5)
    bad, pose = np.array([np.nan, 0.0]), np.zeros(7)
    held = [guard.check(t, {"state": t}, bad, pose).command for t in np.arange(0.0, 1.0, 0.1)]
    assert [bool(efforts.any()) for efforts in held] == [True] * 6 + [False] * 4
    guard.check(1.0, {"state": 1.0}, carries, pose)  # all is well again
    np.testing.assert_array_equal(guard.check(1.1, {"state": 1.1}, bad, pose).command, carries)
