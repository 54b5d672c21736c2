# SPDX-License-Identifier: Apache-2.0
"""A node whose process hangs is told of once, and again when it has spoken in between; when a stream counts as silent,
and when as trusted again.
"""

from __future__ import annotations

import numpy as np

from pkm_bringup.nodes.silences import Health, Silences


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


def test_a_stream_that_never_spoke_is_silent() -> None:
    health = Health(silence=0.1, steady=0.5)
    assert "nothing has come on states" in health.silent(["states"], 5.0)
    assert not health.steady(["states"], 5.0)
    assert not health.silent([], 5.0)


def test_one_silent_stream_is_enough() -> None:
    health = Health(silence=0.1, steady=0.5)
    health.hear("states", 1.0)
    health.hear("commands", 0.8)
    assert not health.silent(["states"], 1.05)
    assert "commands has been silent for 0.25 s" in health.silent(["states", "commands"], 1.05)


def test_trust_comes_back_after_a_while_and_goes_at_once() -> None:
    health = Health(silence=0.105, steady=0.495)
    trusted = []
    for k in range(200):
        now = 0.01 * k
        if not 100 <= k < 120:  # silent from 1.0 s to 1.2 s
            health.hear("states", now)
        if health.steady(["states"], now):
            trusted.append(k)
    assert trusted == [*range(50, 110), *range(170, 200)]


def test_streams_that_stop_again_and_again_are_left_alone_for_longer() -> None:
    health = Health(silence=0.1, steady=0.5)
    waits = []
    for at in (0.0, 10.0, 20.0, 30.0):
        health.started(at)
        waits.append(health.stopped(at + 5.0))
    assert waits == [1.0, 2.0, 4.0, 8.0]
    for now in np.arange(40.0, 48.2, 0.05):
        health.hear("states", now)
        assert health.steady(["states"], now) == (now - 40.0 >= 8.0)
    health.started(50.0)
    assert health.stopped(150.0) == 0.5  # it held for long


def test_who_sees_to_it_does_not_wait_for_longer() -> None:
    health = Health(silence=0.1, steady=0.5)
    for at in (0.0, 10.0, 20.0):
        health.started(at)
        health.stopped(at + 5.0)
    health.forgive()
    for now in np.arange(30.0, 31.0, 0.05):
        health.hear("states", now)
        assert health.steady(["states"], now) == (now - 30.0 >= 0.5)
