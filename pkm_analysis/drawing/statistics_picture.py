# SPDX-License-Identifier: Apache-2.0
"""Statistics of a quantity as a picture: the histogram and the cumulative distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, sheet, write
from pkm_analysis.maps.statistics import Statistics
from pkm_description.introduction import measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["statistics_picture", "write"]


def statistics_picture(found: Statistics) -> Figure:
    """Draw statistics."""
    figure = sheet(8.8, 5.4)
    axes = figure.subplots()
    unit = "" if found.quantity.unit == "1" else f" [{found.quantity.unit}]"
    known = int(found.counts.sum() + sum(found.beyond))
    axes.bar(
        found.edges[:-1], 100.0 * found.counts / known, np.diff(found.edges), align="edge", color=COLOURS[0], alpha=0.75
    )
    axes.axvline(found.mean, color=INK, lw=1.2)
    axes.annotate(
        f" mean {measure(found.mean)}", (found.mean, 0.98), xycoords=("data", "axes fraction"), fontsize=8, va="top"
    )
    axes.set_xlabel(found.quantity.name + unit)
    axes.set_ylabel("share of the poses inside, each bar [%]")
    axes.set_xlim(found.edges[0], found.edges[-1])
    axes.grid(True, color="#d9dfe5", linewidth=0.5)
    axes.set_axisbelow(True)
    below = axes.twinx()
    sums = 100.0 * (found.beyond[0] + np.concatenate([[0], np.cumsum(found.counts)])) / known
    below.plot(found.edges, sums, color=COLOURS[1], lw=1.8)
    below.set_ylim(0.0, 100.0)
    below.set_ylabel("share below [%]", color=COLOURS[1])
    axes.set_title(f"{found.poses} poses, {100.0 * found.share:.4g} % inside: {found.domain.in_words()}", fontsize=8)
    text = f"least {measure(found.least[0])}, largest {measure(found.most[0])}"
    if any(found.beyond):
        text += f"; left of the picture {found.beyond[0]} poses, right of it {found.beyond[1]}"
    figure.supxlabel(text, fontsize=8)
    figure.suptitle(f"{found.membership.robot.name}: {found.quantity.name}{unit}", color=INK, fontsize=13)
    return figure
