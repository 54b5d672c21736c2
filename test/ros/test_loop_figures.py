# SPDX-License-Identifier: Apache-2.0
"""What the report says of the machine's loop, also where that was begun anew after a fault."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_bringup.nodes.motion_run import loop_figures
from pkm_bringup.nodes.node_parts import LoopMonitor
from pkm_control.loop.between_processes import Figures
from pkm_interfaces.msg import LoopStatistics
from pkm_runtime.fixed_rate import deviation_counts

from .conftest import Graph


def told(second: int, cycles: int, missed: int) -> LoopStatistics:
    message = LoopStatistics(period=1e-3, cycles=cycles, missed_deadlines=missed)
    message.header.stamp.sec = second
    return message


def test_figures_are_those_between_the_first_and_the_last_message_of_the_run() -> None:
    heard = [told(0, 500, 1), told(1, 1500, 1), told(2, 2490, 5), told(3, 3490, 6)]
    figures = loop_figures(heard, 1.2, 1.9)
    assert figures is not None
    assert (figures.wakes, figures.missed) == (990, 4)
    assert figures.rate == pytest.approx(990.0)
    assert figures.deadlines == 1000


def test_p99_is_that_of_all_periods_not_of_the_worst_second() -> None:
    steps = np.full(4000, 1e-3)
    steps[:1000] += 20e-6
    steps[:30] += 500e-6  # 3 % of the first second, less than 1 % of all
    wakes = np.concatenate([[0.0], np.cumsum(steps)])
    heard = [told(0, 0, 0)]
    for second in range(1, 5):
        heard.append(told(second, 1000 * second, 0))
        heard[-1].deviations = deviation_counts(wakes[1000 * (second - 1) : 1000 * second + 1], 1000.0).tolist()
    figures = loop_figures(heard, 0.0, 4.0)
    assert figures is not None
    assert figures.deviation_p99 == pytest.approx(20e-6, rel=0.13)  # a step is 12 %


@pytest.mark.parametrize(("late", "cycles", "worst"), [(0, 2000, 0.0), (999, 1001, 1.0)], ids=["unread", "stood still"])
def test_periods_that_nobody_read_are_no_standstill(graph: Graph, late: int, cycles: int, worst: float) -> None:
    monitor = LoopMonitor(graph.client, 1000.0)
    wakes = 1e-3 * np.array([*range(500), *range(1499, 2000)])
    missed = np.where(wakes > 1.0, late, 0)
    for part in (slice(0, 500), slice(500, None)):
        monitor.cycles(Figures(wakes[part], missed[part], np.zeros(len(wakes[part]))))
    monitor._publish()
    assert monitor.last.cycles == cycles
    assert monitor.last.worst_deviation == pytest.approx(worst, abs=2e-3)


def test_a_loop_that_begins_anew_counts_no_negative_cycles() -> None:
    heard = [told(0, 500, 1), told(1, 1500, 3), told(4, 200, 0), told(5, 1200, 0)]
    figures = loop_figures(heard, 0.5, 5.0)
    assert figures is not None
    assert (figures.rate, figures.missed) == (1000.0, 2)
    assert loop_figures(heard[1:], 1.5, 5.0) is None
    assert loop_figures([], 0.0, 1.0) is None
    assert loop_figures([told(0, 500, 1), told(1, 500, 900)], 0.0, 1.0) is None  # it held all the time
