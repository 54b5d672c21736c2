# SPDX-License-Identifier: Apache-2.0
"""The rate at which readings come, by their own clock."""

from __future__ import annotations

import numpy as np

from pkm_control.loop.follower_watches import ReadingRate


def test_it_finds_the_rate_that_there_is() -> None:
    rate = ReadingRate(1000.0, 0.1)
    stamps = 5.0 + np.arange(200) / 130.0
    for k, stamp in enumerate(stamps):
        rate.note(float(stamp))
        assert rate.value == (1000.0 if k < 4 else rate.value)
        if k >= 4:  # soon, as a machine does not wait
            np.testing.assert_allclose(rate.value, 130.0, rtol=0.02)
    assert rate.settled


def test_counting_noise_leaves_the_rate_that_is_asked_for() -> None:
    rate = ReadingRate(1000.0, 0.1)
    for stamp in 5.0 + np.arange(3000) / 960.0:
        rate.note(float(stamp))
        assert rate.value == 1000.0


def test_a_silence_is_not_a_slow_rate() -> None:
    rate = ReadingRate(1000.0, 0.1)
    for start in (5.0, 7.0, 3.0):  # the machine was gone; its clock was set back
        for stamp in start + np.arange(400) / 1000.0:
            rate.note(float(stamp))
    assert rate.value == 1000.0
