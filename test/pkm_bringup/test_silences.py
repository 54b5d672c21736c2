# SPDX-License-Identifier: Apache-2.0
"""A node whose process hangs is told of once, and again when it has spoken in between."""

from __future__ import annotations

from pkm_bringup.nodes.silences import Silences


def test_silences_are_told_once_each() -> None:
    silences = Silences(5.0)
    told = []
    for k in range(200):  # ten looks a second
        now = 0.1 * k
        if k % 10 == 0 and not 40 <= k < 120:
            assert silences.hear("kinematics", now) == (k == 120)
        if k % 10 == 0:
            assert not silences.hear("dynamics", now)
        told += [(name, k) for name in silences.begun(now)]
    assert told == [("kinematics", 81)]  # heard last at 3.0 s


def test_who_stood_still_himself_blames_nobody() -> None:
    silences = Silences(5.0)
    silences.hear("kinematics", 0.0)
    assert silences.begun(0.1) == []
    assert silences.begun(9.0) == []
    assert [k for k in range(100) if silences.begun(9.0 + 0.1 * k)] == [51]


def test_who_never_came_is_not_silent() -> None:
    assert Silences(5.0).begun(100.0) == []
