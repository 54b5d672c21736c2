# SPDX-License-Identifier: Apache-2.0
"""Proofs as slices of proved and undecided boxes or as a bar along a path, and budgets of errors."""

from __future__ import annotations

import textwrap
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, grid, legend, sheet
from pkm_analysis.proof.halving import Part, Proof
from pkm_analysis.requirements.grammar import shown
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkm_analysis.errors.allocation import Allocation
    from pkm_analysis.errors.error_budget import ErrorBudget, SampledErrors


PROVED, OPEN, REFUTED, UNSEEN = "#8fc9a0", "#f0b44c", "#d62728", "#e8ecf0"
MOST_SLICES = 3
WIDTH = 96  # characters of a line of the title
BARS = 24
KINDS = {"geometry": COLOURS[0], "sensors": COLOURS[2], "clearance": COLOURS[3], "thermal": COLOURS[1]}


def proof_picture(found: Proof) -> Figure:
    """Draw a proof of a box or of a path."""
    first = found.parts[0].domain
    if len(found.parts) > 1 or first.dimension == 1:
        figure = sheet(8.8, 4.6)
        _bar(figure.subplots(), found)
    else:
        pairs = list(combinations(range(first.dimension), 2))[:MOST_SLICES]
        figure = sheet(4.4 * max(len(pairs), 2), 5.2)
        for axes, pair in zip(figure.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
            _slice(axes, found, pair)
    legend(figure, _keys(found.point is not None))
    title = textwrap.shorten(found._summary(), 3 * WIDTH)
    figure.suptitle("\n".join(textwrap.wrap(title, WIDTH)), color=INK, fontsize=9)
    return figure


def _keys(refuted: bool) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(fc=PROVED, ec="white", label="proved"), Patch(fc=OPEN, ec="white", label="undecided")]
    if refuted:
        handles[1:] = [Patch(fc=UNSEEN, ec="white", label="not decided before it was refuted")]
        handles.append(Line2D([], [], color=REFUTED, marker="X", ls="", ms=9, label="refuted here"))
    return handles


def _draw_boxes(axes: Axes, boxes: Array, colour: str) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    patches = [Rectangle(low, *(high - low)) for low, high in zip(boxes[..., 0], boxes[..., 1], strict=True)]
    axes.add_collection(PatchCollection(patches, facecolor=colour, edgecolor="white", linewidth=0.4))


def parameters_of(part: Part, point: Array) -> Array:
    """The domain's point (k,) that is nearest to task coordinates (c,)."""
    known = np.isfinite(part.domain.origin)  # the others follow
    found = np.linalg.lstsq(part.domain.directions[known], (point - part.domain.origin)[known], rcond=None)
    return np.asarray(found[0])


def _pivot(found: Proof) -> Array:
    """The point that slices pass through: the refuting one, else the undecided box nearest to the middle."""
    (part,) = found.parts
    if found.point is not None:
        return parameters_of(part, found.point)
    middle, sides = part.domain.box.mean(axis=-1), np.ptp(part.domain.box, axis=-1)
    centres = part.open.mean(axis=-1) if len(part.open) else middle[None]
    return np.asarray(centres[np.linalg.norm((centres - middle) / sides, axis=1).argmin()])


def _slice(axes: Axes, found: Proof, pair: tuple[int, int]) -> None:
    (part,) = found.parts
    pivot, coordinates, (a, b) = _pivot(found), part.domain.coordinates, pair
    others = [k for k in range(len(coordinates)) if k not in pair]
    axes.set_facecolor(UNSEEN)
    for boxes, colour in ((part.proved, PROVED), (part.open, OPEN)):
        low, high = boxes[..., 0], boxes[..., 1]
        cut = ((low[:, others] <= pivot[others]) & (pivot[others] <= high[:, others])).all(axis=1)
        _draw_boxes(axes, boxes[cut][:, [a, b]], colour)
    (low, high), names = part.domain.box[[a, b]].T, [f"{c.label} [{c.unit}]" for c in coordinates]
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set_xlabel(names[a], fontsize=9)
    axes.set_ylabel(names[b], fontsize=9)
    axes.tick_params(labelsize=8)
    held = ", ".join(f"{coordinates[k].label} = {shown(pivot[k], coordinates[k].unit)}" for k in others)
    axes.set_title(f"at {held}" if held else "", fontsize=9)
    if found.point is not None:
        axes.plot(pivot[a], pivot[b], "X", color=REFUTED, mec="white", ms=11, zorder=6, clip_on=False)


def _bar(axes: Axes, found: Proof) -> None:
    coordinates = found.parts[0].domain.coordinates  # none of a path
    for k, part in enumerate(found.parts):
        shift = 0 if coordinates else k
        for boxes, colour, line in (
            (part.domain.box[None], UNSEEN, 0.0),
            (part.proved, PROVED, 0.3),
            (part.open, OPEN, 0.3),
        ):
            for low, high in _along(boxes) + shift:
                axes.axvspan(low, high, 0.0, 0.25, fc=colour, ec="white", lw=line)
    if coordinates:
        axes.set(xlabel=f"{coordinates[0].label} [{coordinates[0].unit}]", yticks=[])
        axes.set_xlim(*found.parts[0].domain.box[0])
    else:
        _coordinates(axes, found)
        rounded = any(part.domain.dimension > 1 for part in found.parts)
        axes.set_xlabel(f"along the path, one for each straight {'line or rounded corner' if rounded else 'part'}")
    if found.point is not None:
        there = parameters_of(found.parts[-1], found.point)
        at = float(_along(np.repeat(there[None, :, None], 2, axis=-1)).mean()) + shift
        axes.axvline(at, color=REFUTED, lw=1.5)
        axes.plot(at, 0.125, "X", color=REFUTED, mec="white", ms=11, transform=axes.get_xaxis_transform(), zorder=6)


def _along(boxes: Array) -> Array:
    """Boxes (n, k, 2) as intervals (n, 2) of the way; a corner's parameters: rest before it, progress after it."""
    if boxes.shape[1] == 1:
        return boxes[:, 0]
    return np.asarray(0.5 * (1.0 - boxes[:, 0, ::-1] + boxes[:, 1]))


def _coordinates(axes: Axes, found: Proof) -> None:
    ends = []
    for part, which in ((found.parts[0], 0), *((part, 1) for part in found.parts)):
        corner = part.domain.box[:, which] if part.domain.dimension == 1 else np.array([1.0 - which, float(which)])
        ends.append(part.domain.values(corner))
    for c, column in zip(found.task.all, np.array(ends).T, strict=True):
        if np.ptp(column) > 0.0:
            axes.plot(range(len(column)), column, lw=1.6, label=f"{c.label} [{c.unit}]")
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.4 * (high - low), high)  # room for the bar
    grid(axes)
    axes.legend(fontsize=8, loc="best")


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
    along.set(xlabel="configurations, the worst first", ylabel="position error [mm]")
    along.set_ylim(bottom=0.0)
    grid(along, key=True)
    return figure


def sampled_picture(found: SampledErrors) -> Figure:
    """Histogram of the largest position error of each machine."""
    figure = sheet(7.0, 4.0)
    axes = figure.subplots()
    axes.hist(1e3 * np.nanmax(found.errors[:, :, 0], axis=1), bins=30, color=COLOURS[0], zorder=3)
    axes.axvline(1e3 * found.quantile(0.95)[0], color=INK, linestyle="--", label="95 % of the machines")
    axes.set(xlabel="largest position error of a machine [mm]", ylabel="machines")
    grid(axes, key=True)
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
