# SPDX-License-Identifier: Apache-2.0
"""Pictures of error budgets: who contributes what, where, and how machines at random are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, grid, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pkm_analysis.errors.allocation import Allocation
    from pkm_analysis.errors.certified_errors import ProvedErrors
    from pkm_analysis.errors.error_budget import ErrorBudget, SampledErrors

BARS = 24
KINDS = {"geometry": COLOURS[0], "sensors": COLOURS[2], "clearance": COLOURS[3], "thermal": COLOURS[1]}


def budget_picture(found: ErrorBudget) -> Figure:
    """Bars of what each source makes where the error is worst, and the error at all configurations."""
    figure = sheet(10.0, 5.4)
    bars, along = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    sources = found.sources[:BARS][::-1]
    sizes = [1e3 * float(np.linalg.norm(one.effects[found.at_worst, :3])) for one in sources]
    bars.barh(range(len(sources)), sizes, color=[KINDS[one.kind] for one in sources], zorder=3)
    bars.set_yticks(range(len(sources)), [one.name for one in sources], fontsize=7)
    bars.set_xlabel("position error that the tolerance makes [mm]")
    for kind, colour in KINDS.items():
        if any(one.kind == kind for one in found.sources):
            bars.barh([0], [0], color=colour, label=kind)
    bars.legend(fontsize=8, frameon=False, loc="lower right")
    grid(bars)
    order = np.argsort(-found.worst[:, 0])
    along.plot(1e3 * found.worst[order, 0], color=COLOURS[1], label="worst case")
    along.plot(1e3 * found.expected[order, 0], color=COLOURS[0], label="root mean square")
    along.set_xlabel("configurations, the worst first")
    along.set_ylabel("position error [mm]")
    along.set_ylim(bottom=0.0)
    along.legend(fontsize=8, frameon=False)
    grid(along)
    return figure


def sampled_picture(found: SampledErrors) -> Figure:
    """Histogram of the largest position error of each machine."""
    figure = sheet(7.0, 4.0)
    axes = figure.subplots()
    largest = 1e3 * np.nanmax(found.errors[:, :, 0], axis=1)
    axes.hist(largest, bins=30, color=COLOURS[0], zorder=3)
    axes.axvline(1e3 * found.quantile(0.95)[0], color=INK, linestyle="--", label="95 % of the machines")
    axes.set_xlabel("largest position error of a machine [mm]")
    axes.set_ylabel("machines")
    axes.legend(fontsize=8, frameon=False)
    grid(axes)
    return figure


def proof_picture(found: ProvedErrors) -> Figure:
    """Boxes that are proved and undecided, over the first two coordinates that vary."""
    from matplotlib.collections import PolyCollection

    figure = sheet(6.5, 5.5)
    axes = figure.subplots()
    varies = [k for k in range(len(found.labels)) if found.domain[k, 1] > found.domain[k, 0]]
    first, second = (varies + varies)[:2]
    for boxes, colour, label in (
        (found.proved_boxes, COLOURS[2], "proved"),
        (found.open_boxes, COLOURS[3], "undecided"),
    ):
        if len(boxes):
            (a, b), (c, d) = boxes[:, first].T, boxes[:, second].T
            corners = np.stack([np.column_stack(pair) for pair in ((a, c), (b, c), (b, d), (a, d))], axis=1)
            axes.add_collection(
                PolyCollection(
                    list(corners), facecolors=colour, edgecolors="white", linewidths=0.3, alpha=0.5, label=label
                )
            )
    if found.point is not None:
        axes.plot(*found.point[[first, second]], "x", color=COLOURS[1], markersize=9, label="missed by more")
    for k, name in ((first, "x"), (second, "y")):
        getattr(axes, f"set_{name}lim")(*found.domain[k])
        getattr(axes, f"set_{name}label")(f"{found.labels[k]} [{found.units[k]}]")
    axes.legend(fontsize=8, frameon=False, loc="upper right")
    grid(axes)
    return figure


def allocation_picture(found: Allocation) -> Figure:
    """The part of the coarsest tolerance that each source is left with, the finest first."""
    figure = sheet(8.0, 5.0)
    axes = figure.subplots()
    parts = found.tolerances / np.array([one.size for one in found.sources])
    order = np.argsort(parts, kind="stable")[:BARS][::-1]
    axes.barh(range(len(order)), parts[order], color=COLOURS[0], zorder=3)
    axes.set_yticks(range(len(order)), [found.sources[k].name for k in order], fontsize=7)
    axes.set_xlabel("part of the coarsest tolerance")
    grid(axes)
    return figure
