# SPDX-License-Identifier: Apache-2.0
"""Loci of singularities, the regions between them, and paths that avoid them, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_analysis.domain import through
from pkm_analysis.drawing.sheet import COLOURS, INK, cut, grid, label, legend, sheet
from pkm_analysis.kernels.pose_quantities import TYPE1, TYPE2
from pkm_analysis.regions.loci import LOCUS_COLOURS, OTHER, Loci
from pkm_analysis.regions.path import Path
from pkm_analysis.regions.regions import Regions
from pkm_analysis.requirements.grammar import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 6  # modes shown at most
SIGNS = {1: "as at home", -1: "opposite", 0: "no sign"}


def loci_picture(found: Loci) -> Figure:
    """Draw loci."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    domain = found.domain
    figure = sheet(15.0, 6.0)
    shades: list[Any] = [tuple(part / 255.0 for part in LOCUS_COLOURS.get(one.name, OTHER)) for one in found.loci]
    for axes, axis in zip(figure.subplots(1, 3), (2, 1, 0), strict=True):
        c = domain.coordinates[axis]
        value = through(c, float(domain.lower[axis]), float(domain.upper[axis]))
        coordinates = [one for one in domain.coordinates if one is not c]
        for one, shade in zip(found.loci, shades, strict=True):
            segments, _ = cut(one.corners, one.triangles, axis, value)
            axes.add_collection(LineCollection(list(segments), colors=[shade], linewidths=2.0, zorder=4))
        axes.update_datalim(np.delete(domain.box.T, axis, axis=1))
        label(axes, coordinates, found.membership.robot)
        axes.set_title(f"{c.label} = {shown(value, c.unit)}", fontsize=9)
    named = zip(found.loci, shades, strict=True)
    legend(figure, [Line2D([], [], color=shade, lw=2, label=one.name) for one, shade in named], 4)
    if found.notes:
        figure.supxlabel("; ".join(found.notes), fontsize=9)
    figure.suptitle(f"{found.membership.robot.name}: loci of singularities", color=INK, fontsize=13)
    return figure


def regions_picture(found: Regions) -> Figure:
    """Draw regions of any dimension; of three coordinates in one mode, slices through home."""
    from matplotlib.patches import Patch

    dimension, modes = found.domain.dimension, list(found.graphs)[:PANELS]
    cuts = [tuple(range(dimension))] if dimension < 3 else [(0, 1), (0, 2), (1, 2)]
    panels = [(mode, pair) for mode in modes for pair in (cuts if len(modes) == 1 else cuts[:1])]
    columns = min(len(panels), 2 if len(panels) in (2, 4) else 3)
    rows = -(-len(panels) // columns)
    figure = sheet(5.6 * columns + 0.5, (5.2 if dimension > 1 else 2.4) * rows + 1.2)
    each = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (mode, pair) in zip(each, panels, strict=False):
        _panel(axes, found, mode, pair)
    for axes in each[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(f"{found.membership.robot.name}: singularity-free regions", color=INK, fontsize=13)
    listed = [one for one in found.regions if one.mode in modes][:12]
    texts = [f"{one.number}: {shown(one.size, found.unit, 3)}, {SIGNS[one.sign]}" for one in listed]
    handles = [Patch(color=_colour(one.number), label=text) for one, text in zip(listed, texts, strict=True)]
    legend(figure, handles, title="regions, their sizes, and the sign of the direct determinant")
    return figure


def _colour(number: int) -> str:
    return COLOURS[(number - 1) % len(COLOURS)]


def _panel(axes: Axes, found: Regions, mode: int, varying: tuple[int, ...]) -> None:
    from matplotlib.colors import ListedColormap

    graph, domain = found.graphs[mode], found.graphs[mode].domain
    index: list[slice | int] = [slice(None)] * domain.dimension
    parts = [f"mode {mode} {graph.membership.robot.kinematics.mode_label(mode)}".rstrip()]
    for k, c in enumerate(domain.coordinates):
        if k not in varying:
            at = int(np.abs(graph.axes[k] - np.clip(c.home, domain.lower[k], domain.upper[k])).argmin())
            index[k] = at
            parts.append(f"{c.label} = {shown(graph.axes[k][at], c.unit)}")
    coordinates, ticks = [domain.coordinates[k] for k in varying], [graph.axes[k] for k in varying]
    there = np.ma.masked_equal(found.numbers[mode].reshape(graph.shape)[tuple(index)], 0)
    most = max(one.number for one in found.regions)
    colours = ListedColormap([_colour(n) for n in range(1, most + 1)])
    if len(varying) == 1:
        ticks, there = [*ticks, np.zeros(1)], there[:, None]
        axes.set_yticks([])
    look: dict[str, Any] = {"shading": "nearest", "rasterized": True, "zorder": 1}
    axes.pcolormesh(*ticks, there.T, cmap=colours, vmin=0.5, vmax=most + 0.5, **look)
    label(axes, coordinates, graph.membership.robot if len(varying) > 1 else None)
    axes.set_title(", ".join(parts), fontsize=9)


def path_picture(found: Path) -> Figure:
    """Draw a path with margins and bounded quantities along it, or its two ends where there is none."""
    asked = found.membership.requirements if found.found else ()
    figure = sheet(11.0, 5.6 + 1.6 * len(asked))
    panels = figure.add_gridspec(1 + len(asked), 2, height_ratios=[3.0, *[1.0] * len(asked)])
    _trace(figure.add_subplot(panels[:, 0]), found)
    right = figure.add_subplot(panels[0, 1])
    figure.suptitle(f"{found.membership.robot.name}: path", color=INK, fontsize=13)
    if not found.found:
        right.set_axis_off()
        lines = [found.reason, *(f"{100.0 * share:.3g} %: {text}" for text, share in list(found.barrier.items())[:6])]
        right.text(0.02, 0.95, "\n".join(lines), va="top", wrap=True, fontsize=9, color=INK)
        return figure
    graph, points = found.graph, found.samples()
    gone = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points * graph.scale, axis=0), axis=1))])
    poses = found.domain.poses(graph.within(points))[0]
    margins = found.membership.robot.evaluator.numbers(poses, (TYPE1, TYPE2))
    for values, colour, text in zip(margins, COLOURS, ("type 1", "type 2, signed"), strict=False):
        right.plot(gone, values, color=colour, label=text)
    right.axhline(0.0, color=INK, lw=0.8)
    for k, (c, values) in enumerate(zip(found.domain.coordinates, points.T, strict=True)):
        right.plot(gone, values, color=COLOURS[(k + 2) % len(COLOURS)], lw=1.0, ls="--", label=f"{c.label} [{c.unit}]")
    right.set_xlabel("way [m], angles at the characteristic length")
    right.set_title("margins of singularities", fontsize=9)
    for k, one in enumerate(asked):
        axes = figure.add_subplot(panels[k + 1, 1], sharex=right)
        axes.plot(gone, one.quantity.of(found.membership.robot, poses), color=COLOURS[0])
        axes.axhline(one.bound, color="#d62728", lw=1.2, ls="--", label=str(one))
        axes.set_ylabel(one.quantity.axis, fontsize=9)
    for axes in figure.axes[1:]:
        axes.legend(fontsize=8)
        grid(axes)
    return figure


def _trace(axes: Axes, found: Path) -> None:
    coordinates = list(found.domain.coordinates[:2])
    points = found.samples() if found.found else np.array([found.start, found.end])
    points = np.c_[points, np.zeros(len(points))][:, :2]
    colour, line = ("#1f4fd6", "-") if found.found else ("#d62728", ":")
    axes.plot(*points.T, line, color=colour, lw=2.0, zorder=5)
    for point, mark, word in ((points[0], "o", "start"), (points[-1], "s", "end")):
        axes.plot(*point, mark, color="white", mec=INK, ms=8, zorder=6, label=word)
    label(axes, coordinates, found.membership.robot if len(coordinates) == 2 else None)
    axes.legend(fontsize=8)
    axes.set_title(f"{len(found.waypoints)} waypoints" if found.found else "no path", fontsize=9)
