# SPDX-License-Identifier: Apache-2.0
"""When a stream counts as silent, and when as trusted again."""

from __future__ import annotations

from pkm_bringup.nodes.silences import Health


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
