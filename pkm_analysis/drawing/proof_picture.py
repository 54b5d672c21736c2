# SPDX-License-Identifier: Apache-2.0
"""A proof as a picture: slices of proved and unproved boxes; a path as a bar."""

from __future__ import annotations

import textwrap
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_analysis.drawing.sheet import INK, grid, sheet
from pkm_analysis.proof.halving import Part, Proof
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROVED, OPEN, REFUTED, UNSEEN = "#8fc9a0", "#f0b44c", "#d62728", "#e8ecf0"
MOST_SLICES = 3
WIDTH = 96  # characters of a line of the title


def proof_picture(found: Proof) -> Figure:
    """Draw a proof of a box or of a path."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    flat = len(found.parts) > 1 or len(found.parts[0].domain.box) == 1
    if flat:
        figure = sheet(8.8, 4.6)
        _bar(figure.subplots(), found)
    else:
        pairs = list(combinations(range(len(found.parts[0].domain.box)), 2))[:MOST_SLICES]
        figure = sheet(4.4 * max(len(pairs), 2), 5.2)
        for axes, pair in zip(figure.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
            _slice(axes, found, pair)
    handles: list[Any] = [Patch(fc=PROVED, ec="white", label="proved"), Patch(fc=OPEN, ec="white", label="undecided")]
    if found.point is not None:
        handles[1] = Patch(fc=UNSEEN, ec="white", label="not decided before it was refuted")
        handles.append(Line2D([], [], color=REFUTED, marker="X", ls="", ms=9, label="refuted here"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    title = textwrap.shorten(found._summary(), 3 * WIDTH)
    figure.suptitle("\n".join(textwrap.wrap(title, WIDTH)), color=INK, fontsize=9)
    return figure


def parameters_of(part: Part, point: Array) -> Array:
    """Parameters (k,) of the domain's point nearest to task coordinates (c,)."""
    return np.asarray(np.linalg.lstsq(part.domain.directions, point - part.domain.origin, rcond=None)[0])


def _pivot(found: Proof) -> Array:
    """Parameters that slices pass through: the refuting point, else the undecided box nearest to the middle."""
    (part,) = found.parts
    if found.point is not None:
        return parameters_of(part, found.point)
    middle = part.domain.box.mean(axis=-1)
    if not len(part.open):
        return np.asarray(middle)
    centres = part.open.mean(axis=-1)
    return np.asarray(centres[np.linalg.norm((centres - middle) / np.ptp(part.domain.box, axis=-1), axis=1).argmin()])


def _slice(axes: Axes, found: Proof, pair: tuple[int, int]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    (part,) = found.parts
    pivot, box = _pivot(found), part.domain.box
    others = [k for k in range(len(box)) if k not in pair]
    a, b = pair
    axes.set_facecolor(UNSEEN)
    for boxes, colour in ((part.proved, PROVED), (part.open, OPEN)):
        low, high = boxes[..., 0], boxes[..., 1]
        cut = ((low[:, others] <= pivot[others]) & (pivot[others] <= high[:, others])).all(axis=1)
        shown = [
            Rectangle((low[k, a], low[k, b]), high[k, a] - low[k, a], high[k, b] - low[k, b])
            for k in np.flatnonzero(cut)
        ]
        axes.add_collection(PatchCollection(shown, facecolor=colour, edgecolor="white", linewidth=0.4))
    axes.set_xlim(*box[a])
    axes.set_ylim(*box[b])
    names = _names(found, part)
    axes.set_xlabel(names[a], fontsize=9)
    axes.set_ylabel(names[b], fontsize=9)
    axes.tick_params(labelsize=8)
    held = ", ".join(f"{names[k].split(' [')[0]} = {pivot[k]:.4g}" for k in others)
    axes.set_title(f"at {held}" if held else "", fontsize=9)
    if found.point is not None:
        axes.plot(pivot[a], pivot[b], "X", color=REFUTED, mec="white", ms=11, zorder=6, clip_on=False)


def _names(found: Proof, part: Part) -> list[str]:
    """Names of a box's parameters, with units."""
    return [f"{c.label} [{c.unit}]" for c in part.domain.coordinates]


def _bar(axes: Axes, found: Proof) -> None:
    """One parameter: a bar along it, for paths with the coordinates above."""
    path = len(found.parts) > 1 or not found.parts[0].domain.coordinates
    start = 0.0
    for part in found.parts:
        ((low, high),) = _along(part.domain.box[None])
        shift = start - low if path else 0.0
        axes.axvspan(low + shift, high + shift, 0.0, 0.25, color=UNSEEN, lw=0)
        for boxes, colour in ((part.proved, PROVED), (part.open, OPEN)):
            for box in _along(boxes):
                axes.axvspan(box[0] + shift, box[1] + shift, 0.0, 0.25, fc=colour, ec="white", lw=0.3)
        start += high - low
    if path:
        _coordinates(axes, found)
        rounded = any(len(part.domain.box) > 1 for part in found.parts)
        axes.set_xlabel(f"along the path, one for each straight {'line or rounded corner' if rounded else 'part'}")
    else:
        axes.set_xlabel(_names(found, found.parts[0])[0])
        axes.set_yticks([])
        axes.set_xlim(*found.parts[0].domain.box[0])
    if found.point is not None:
        last = found.parts[-1]
        there = _along(np.repeat(parameters_of(last, found.point)[None, :, None], 2, axis=-1))[0].mean()
        at = float(there) + (len(found.parts) - 1 if path else 0.0)
        axes.axvline(at, color=REFUTED, lw=1.5)
        axes.plot(at, 0.125, "X", color=REFUTED, mec="white", ms=11, transform=axes.get_xaxis_transform(), zorder=6)


def _along(boxes: Array) -> Array:
    """Boxes (n, k, 2) as intervals (n, 2) of the way; a corner's parameters: rest before it, progress after it."""
    if boxes.shape[1] == 1:
        return boxes[:, 0]
    left, done = boxes[:, 0], boxes[:, 1]
    return np.asarray(0.5 * (1.0 - left[:, ::-1] + done))


def _coordinates(axes: Axes, found: Proof) -> None:
    def end(part: Part, which: int) -> Array:
        box = part.domain.box
        corner = box[:, which] if len(box) == 1 else np.array([1.0 - which, float(which)])
        return part.domain.values(corner)

    values = np.array([end(found.parts[0], 0), *(end(part, 1) for part in found.parts)])
    for c, column in zip(found.task.all, values.T, strict=True):
        if np.ptp(column) > 0.0:
            axes.plot(range(len(column)), column, lw=1.6, label=f"{c.label} [{c.unit}]")
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.4 * (high - low), high)  # room for the bar
    grid(axes)
    axes.legend(fontsize=8, loc="best")
