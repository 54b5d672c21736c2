# SPDX-License-Identifier: Apache-2.0
"""Statistics of the machine's loop over the time of a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pkm_control.loop.fixed_rate import LoopStatistics as LoopFigures
from pkm_control.nodes import motion_messages
from pkm_interfaces.msg import LoopStatistics


def loop_figures(heard: Sequence[LoopStatistics], begin: float, end: float) -> LoopFigures | None:
    """The figures of a loop between two times [s], of its messages in the order of their stamps.

    p50 is the median of those of single messages, p99 the greatest. A loop that begins anew, as after a fault, counts
    from zero again: what came after that is not of the run. None where fewer than two messages are.
    """
    stamps = np.array([motion_messages.seconds(one.header.stamp) for one in heard])
    first = max(int(np.searchsorted(stamps, begin)) - 1, 0)
    of_run = list(heard[first : int(np.searchsorted(stamps, end)) + 1])
    for at, (one, other) in enumerate(pairwise(of_run), start=1):
        if other.cycles < one.cycles or other.missed_deadlines < one.missed_deadlines:
            of_run = of_run[:at]
            break
    if len(of_run) < 2:
        return None
    cycles = int(of_run[-1].cycles) - int(of_run[0].cycles)
    span = motion_messages.seconds(of_run[-1].header.stamp) - motion_messages.seconds(of_run[0].header.stamp)
    if cycles == 0 or not span > 0.0:
        return None
    return LoopFigures(
        wanted_rate=1.0 / of_run[-1].period,
        rate=cycles / span,
        deviation_p50=float(np.median([one.deviation_p50 for one in of_run[1:]])),
        deviation_p99=max(one.deviation_p99 for one in of_run[1:]),
        deviation_max=max(one.worst_deviation for one in of_run[1:]),
        wakes=cycles,
        missed=int(of_run[-1].missed_deadlines) - int(of_run[0].missed_deadlines),
    )
