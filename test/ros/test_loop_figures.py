# SPDX-License-Identifier: Apache-2.0
"""What the report says of the machine's loop, also where that was begun anew after a fault."""

from __future__ import annotations

import pytest

from pkm_bringup.nodes.motion_player.run_streams import loop_figures
from pkm_interfaces.msg import LoopStatistics


def told(second: int, cycles: int, missed: int) -> LoopStatistics:
    message = LoopStatistics(
        period=1e-3, cycles=cycles, missed_deadlines=missed, deviation_p50=2e-5, deviation_p99=1e-4
    )
    message.header.stamp.sec = second
    return message


def test_figures_are_those_between_the_first_and_the_last_message_of_the_run() -> None:
    heard = [told(0, 500, 1), told(1, 1500, 1), told(2, 2490, 5), told(3, 3490, 6)]
    figures = loop_figures(heard, 1.2, 1.9)
    assert figures is not None
    assert (figures.wakes, figures.missed) == (990, 4)
    assert figures.rate == pytest.approx(990.0)
    assert figures.deadlines == 1000


def test_a_loop_that_begins_anew_counts_no_negative_cycles() -> None:
    heard = [told(0, 500, 1), told(1, 1500, 3), told(4, 200, 0), told(5, 1200, 0)]
    figures = loop_figures(heard, 0.5, 5.0)
    assert figures is not None
    assert (figures.rate, figures.missed) == (1000.0, 2)
    assert loop_figures(heard[1:], 1.5, 5.0) is None
    assert loop_figures([], 0.0, 1.0) is None
    assert loop_figures([told(0, 500, 1), told(1, 500, 900)], 0.0, 1.0) is None  # it held all the time
