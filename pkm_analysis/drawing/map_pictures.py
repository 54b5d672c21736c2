# SPDX-License-Identifier: Apache-2.0
"""Maps and statistics as pictures: a quantity in colour with loci and the robot to scale, or its histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_analysis.domain import through
from pkm_analysis.drawing.sheet import COLOURS, INK, draw_robot, frame_of, frame_view, grid, label, shaded, sheet
from pkm_analysis.maps.map import Map
from pkm_analysis.maps.map_surfaces import colours_of
from pkm_analysis.maps.statistics import Statistics
from pkm_description.mechanism import Array
from pkm_description.picture import View, facets
from pkm_runtime.describable import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

LOCI = ("#1f4fd6", "#d62728", "#aa3377", "#228833")
LEVELS = 12


def map_picture(found: Map) -> Figure:
    """Draw a map; of three coordinates, isosurfaces, whole and cut open, and slices."""
    dimension = len(found.axes)
    figure = sheet(*{1: (8.8, 4.2), 2: (8.8, 8.0), 3: (20.0, 13.0)}[dimension])
    if dimension == 1:
        axes = figure.subplots()
        axes.plot(found.axes[0], found.values, color="#4477aa", lw=1.8)
        label(axes, found.domain.coordinates)
        axes.set_ylabel(found.quantity.axis)
        axes.set_title(found.domain.in_words(), fontsize=9)
    elif dimension == 2:
        axes = figure.subplots()
        _key(figure, [axes], found, _slice(axes, found, [slice(None), slice(None)]))
        axes.set_title(found.domain.in_words(), fontsize=9)
    else:
        _volume(figure, found)
    figure.suptitle(f"{found.membership.robot.name}: {found.quantity.axis}", color=INK, fontsize=13)
    return figure


def _volume(figure: Figure, found: Map) -> None:
    """Isosurfaces of a few values, and nine slices: through home or the middle, the least and the largest value."""
    coordinates = found.domain.coordinates
    middle = [through(c, float(axis[0]), float(axis[-1])) for c, axis in zip(coordinates, found.axes, strict=True)]
    grid = figure.add_gridspec(6, 4, width_ratios=(1.5, 1.0, 1.0, 1.0))
    rows = np.array([[figure.add_subplot(grid[2 * i : 2 * i + 2, 1 + j]) for j in range(3)] for i in range(3)])
    mesh = None
    places: tuple[Any, ...] = (middle, found.least[1], found.most[1])
    for row, place, word in zip(rows, places, ("", "least", "largest"), strict=True):
        for axes, cut in zip(row, (2, 1, 0), strict=True):
            at = int(np.abs(found.axes[cut] - place[cut]).argmin())
            chosen: list[slice | int] = [slice(None)] * 3
            chosen[cut] = at
            mesh = _slice(axes, found, chosen)
            c = coordinates[cut]
            through_it = f", through the {word} value" if word else ""
            axes.set_title(f"{c.label} = {found.axes[cut][at]:.4g} {c.unit}{through_it}", fontsize=9)
    bar = _key(figure, list(rows.ravel()), found, mesh)
    for half, whole in enumerate((True, False)):
        _surfaces(figure.add_subplot(grid[3 * half : 3 * half + 3, 0]), found, whole=whole)
    for one in found.surfaces:
        bar.ax.axhline(one.value, color=INK, lw=1.5)


def _surfaces(axes: Axes, found: Map, *, whole: bool) -> None:
    """Isosurfaces in parallel projection, cut open unless `whole`; the robot to scale only with three lengths."""
    from matplotlib.collections import PolyCollection

    coordinates = found.domain.coordinates
    lengths = all(c.unit == "m" for c in coordinates)
    if lengths:
        frame, offset = frame_of(found.domain)
        robot, robot_colours = facets(found.membership.robot.mechanism)
    else:
        ends = np.array([[axis[0], axis[-1]] for axis in found.axes])
        frame, offset = np.diag(1.0 / np.ptp(ends, axis=1)), ends[:, 0]
        robot, robot_colours = [], []
    inside = np.stack([axis[k] for axis, k in zip(found.axes, np.nonzero(found.inside), strict=True)], axis=1)
    view = View(np.vstack([(inside - offset) @ frame, *robot]))
    depth = view.seen((inside - offset) @ frame)[:, 2]
    cut = np.inf if whole else 0.5 * float(depth.min() + depth.max())
    polygons = [view.seen(one) for one in robot]
    shades = [(*colour[:3], 0.9) for colour in robot_colours]
    for one in found.surfaces:
        corners = (one.corners - offset) @ frame
        triangles = corners[one.triangles]
        seen = view.seen(triangles)
        _, light = shaded(triangles)
        colour = colours_of(np.array([one.value]), found.shown)[0, :3] / 255.0
        behind = seen[:, :, 2].mean(axis=1) < cut
        polygons.extend(seen[behind])
        shades.extend(map(tuple, np.c_[light[behind, None] * colour, np.full(behind.sum(), 0.3 if whole else 0.6)]))
    order = np.argsort([float(polygon[:, 2].mean()) for polygon in polygons])  # the farthest first
    drawn = PolyCollection(
        [polygons[k][:, :2] for k in order],
        facecolors=[shades[k] for k in order],
        edgecolors="none",
        rasterized=True,
    )
    axes.add_collection(drawn)
    title = _values(found) if whole else "the same, the near half cut away"
    axes.set_title(title if lengths else f"{title}; coordinates by their ranges", fontsize=9)
    names = [c.label for c in coordinates]
    frame_view(axes, view, frame if lengths else np.eye(3), names, scale=lengths)


def _values(found: Map) -> str:
    if not found.surfaces:
        return "no surface of one value"
    return "surfaces of " + ", ".join(measure(one.value) for one in found.surfaces) + found.quantity.suffix


def round_levels(low: float, high: float) -> Array:
    """About `LEVELS` round contour values (k,) between two values."""
    from matplotlib.ticker import MaxNLocator

    levels = np.asarray(MaxNLocator(LEVELS, steps=[1, 2, 5, 10]).tick_values(low, high))
    return levels[(levels >= low) & (levels <= high)]


def _slice(axes: Axes, found: Map, chosen: list[slice | int]) -> Any:
    """Draw the part of the grid that is chosen along each axis; return the coloured mesh."""
    varying = [k for k, part in enumerate(chosen) if isinstance(part, slice)]
    x, y = (found.axes[k] for k in varying)
    shown = [found.domain.coordinates[k] for k in varying]
    values = np.ma.masked_invalid(found.values[tuple(chosen)]).T
    low, high = found.shown
    mesh = axes.pcolormesh(
        x, y, values, cmap="viridis", vmin=low, vmax=high, shading="nearest", rasterized=True, zorder=1
    )
    if high > low and values.count() > 0:
        levels = round_levels(low, high)
        if len(levels) and values.min() < levels[-1] and values.max() > levels[0]:
            lines = axes.contour(x, y, values, levels=levels, colors="white", linewidths=0.5, zorder=2)
            axes.clabel(lines, fontsize=6, fmt=lambda level: measure(level))
    for locus, colour in zip(found.loci.values(), LOCI, strict=False):
        part = locus[tuple(chosen)]
        if _crosses(part):
            axes.contour(x, y, np.ma.masked_invalid(part).T, levels=[0.0], colors=colour, linewidths=2.0, zorder=4)
    for (_, place), mark in ((found.least, "v"), (found.most, "^")):
        held = [k for k in range(len(chosen)) if k not in varying]
        if all(found.axes[k][chosen[k]] == place[k] for k in held):
            axes.plot(*(place[k] for k in varying), mark, color="white", mec=INK, ms=9, zorder=6)
    draw_robot(axes, found.membership.robot, shown)
    axes.autoscale_view()
    label(axes, shown)
    return mesh


def _crosses(locus: Array) -> bool:
    known = locus[np.isfinite(locus)]
    return bool(known.size and known.min() < 0.0 < known.max())


def _key(figure: Figure, axes: list[Axes], found: Map, mesh: Any) -> Colorbar:
    """Draw the legend of colours, curves and marks; return the colour bar."""
    from matplotlib.lines import Line2D

    (least, _), (most, _), (low, high) = found.least, found.most, found.shown
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    bar = figure.colorbar(mesh, ax=axes, shrink=0.85, extend=extend[least < low, most > high])
    bar.set_label(found.quantity.axis)
    handles = []
    for (name, locus), colour in zip(found.loci.items(), LOCI, strict=False):
        if _crosses(locus):
            handles.append(Line2D([], [], color=colour, lw=2.0, label=name))
    for mark, word, value in (("v", "least", least), ("^", "most", most)):
        handles.append(
            Line2D([], [], color="white", marker=mark, mec=INK, ls="", ms=8, label=f"{word}: {measure(value)}")
        )
    handles.append(Line2D([], [], ls="", label=f"mean: {measure(found.mean)}"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return bar


if TYPE_CHECKING:
    from matplotlib.figure import Figure


def statistics_picture(found: Statistics) -> Figure:
    """Draw statistics."""
    figure = sheet(8.8, 5.4)
    axes = figure.subplots()
    known = int(found.counts.sum() + sum(found.beyond))
    axes.bar(
        found.edges[:-1], 100.0 * found.counts / known, np.diff(found.edges), align="edge", color=COLOURS[0], alpha=0.75
    )
    axes.axvline(found.mean, color=INK, lw=1.2)
    axes.annotate(
        f" mean {measure(found.mean)}", (found.mean, 0.98), xycoords=("data", "axes fraction"), fontsize=8, va="top"
    )
    axes.set_xlabel(found.quantity.axis)
    axes.set_ylabel("share of the poses inside, each bar [%]")
    axes.set_xlim(found.edges[0], found.edges[-1])
    grid(axes)
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
    figure.suptitle(f"{found.membership.robot.name}: {found.quantity.axis}", color=INK, fontsize=13)
    return figure
