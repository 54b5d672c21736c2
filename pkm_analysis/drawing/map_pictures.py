# SPDX-License-Identifier: Apache-2.0
"""Maps and statistics as pictures: a quantity in colour with loci and the robot to scale, or its histogram."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy  # submodules load on first use

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import through
from pkm_analysis.drawing.sheet import COLOURS, INK, Scene, grid, label, legend, outline, shaded, sheet
from pkm_analysis.maps import Map, Statistics, colours_of
from pkm_analysis.requirements.conditions import INSIDE, RANGE
from pkm_analysis.requirements.grammar import familiar, shown
from pkm_analysis.workspace.workspace import refined
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Polygons

Found = TypeVar("Found", Map, Statistics)
LOCI = ("#1f4fd6", "#d62728", "#aa3377", "#228833")
LEVELS = 12
FINE, SLOW_FINE = 0.05, 0.5  # of a step of the grid: how far the border that is drawn may be off


def _familiar(found: Found) -> Found:
    unit, factor = familiar(found.quantity.unit)
    changed: dict[str, Any] = {
        name: factor * getattr(found, name) for name in ("values", "edges") if hasattr(found, name)
    }
    for name in ("least", "most"):
        value, place = getattr(found, name)
        changed[name] = factor * value, place
    return replace(found, quantity=replace(found.quantity, unit=unit), mean=factor * found.mean, **changed)


def map_picture(found: Map) -> Figure:
    """Draw a map; of three coordinates, slices and isosurfaces."""
    found = _familiar(found)
    dimension = len(found.axes)
    figure = sheet(*{1: (8.8, 4.2), 2: (8.8, 8.0), 3: (16.0, 11.0)}[dimension])
    if dimension == 3:
        _volume(figure, found)
    else:
        axes = figure.subplots()
        axes.set_title(found.domain.in_words(), fontsize=9)
        if dimension == 1:
            axes.plot(found.axes[0], found.values, color=COLOURS[0], lw=1.8)
            label(axes, found.domain.coordinates)
            axes.set_ylabel(found.quantity.axis)
        else:
            _key(figure, [axes], found, _slice(axes, found, [slice(None), slice(None)]))
    figure.suptitle(f"{found.membership.robot.name}: {found.quantity.axis}", color=INK, fontsize=13)
    return figure


def _volume(figure: Figure, found: Map) -> None:
    """Six panels: slices through home or the middle, the least and the largest value, isosurfaces cut open."""
    coordinates = found.domain.coordinates
    middle = [through(c, float(axis[0]), float(axis[-1])) for c, axis in zip(coordinates, found.axes, strict=True)]
    cuts: list[tuple[int, Any, str]] = [(2, middle, ""), (1, middle, ""), (0, middle, "")]
    cuts += [(2, found.least[1], ", through the least value"), (2, found.most[1], ", through the largest value")]
    panels, mesh = list(figure.subplots(2, 3).ravel()), None
    for axes, (axis, place, text) in zip(panels, cuts, strict=False):
        at = int(np.abs(found.axes[axis] - place[axis]).argmin())
        chosen: list[slice | int] = [slice(None)] * 3
        chosen[axis] = at
        mesh = _slice(axes, found, chosen)
        c = coordinates[axis]
        axes.set_title(f"{c.label} = {shown(found.axes[axis][at], c.unit)}{text}", fontsize=10)
    _surfaces(panels[-1], found)
    _key(figure, panels, found, mesh)


def _surfaces(axes: Axes, found: Map) -> None:
    """Isosurfaces in parallel projection, the near half cut away; the robot to scale only with three lengths."""
    inside = np.stack([axis[k] for axis, k in zip(found.axes, np.nonzero(found.inside), strict=True)], axis=1)
    scene = Scene(found.domain, found.membership.robot, inside)
    depth = scene.view.seen(scene.placed(inside))[:, 2]
    half = 0.5 * float(depth.min() + depth.max())
    triangles, colours = [np.empty((0, 3, 3))], [np.empty((0, 4))]
    for one in found.surfaces:
        each = scene.placed(one.corners)[one.triangles]
        each = each[scene.view.seen(each)[:, :, 2].mean(axis=1) < half]
        colour = colours_of(np.array([one.value]), found.shown)[0, :3] / 255.0
        triangles.append(each)
        colours.append(np.c_[shaded(each)[1][:, None] * colour, np.full(len(each), 0.6)])
    scene.paint(axes, np.concatenate(triangles), np.concatenate(colours))
    values = ", ".join(measure(one.value) for one in found.surfaces) + found.quantity.suffix
    title = f"surfaces of {values}, the near half cut away" if found.surfaces else "no surface of one value"
    axes.set_title(title if scene.lengths else f"{title}; coordinates by their ranges", fontsize=10)


def round_levels(low: float, high: float) -> Array:
    """About `LEVELS` round contour values (k,) between two values."""
    from matplotlib.ticker import MaxNLocator

    levels = np.asarray(MaxNLocator(LEVELS, steps=[1, 2, 5, 10]).tick_values(low, high))
    return levels[(levels >= low) & (levels <= high)]


def _slice(axes: Axes, found: Map, chosen: list[slice | int]) -> Any:
    """Draw the part of the grid that is chosen along each axis; return the coloured mesh."""
    varying = [k for k, part in enumerate(chosen) if isinstance(part, slice)]
    x, y = (found.axes[k] for k in varying)
    coordinates = [found.domain.coordinates[k] for k in varying]
    values, inside = np.ma.masked_invalid(found.values[tuple(chosen)]).T, found.inside[tuple(chosen)]
    low, high = found.shown
    look: dict[str, Any] = {"vmin": low, "vmax": high, "shading": "nearest", "rasterized": True, "zorder": 1}
    shades = values
    border: Polygons | None = None
    with contextlib.suppress(AnalysisError):  # without scikit-image the border has the steps of the grid
        border = border_of(found, chosen, varying) if inside.any() else None
        near = scipy.ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
        shades = np.ma.masked_invalid(found.values[tuple(chosen)][tuple(near)]).T
    mesh = axes.pcolormesh(x, y, shades, **look)
    if border is not None:
        mesh.set_clip_path(border, axes.transData)
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
    label(axes, coordinates, found.membership.robot)
    return mesh


def border_of(found: Map, chosen: list[slice | int], varying: list[int]) -> Polygons:
    """The border of the part of the grid that is chosen along each axis, finer than the grid."""
    each, ranges, held = [found.axes[k] for k in varying], dict(found.domain.ranges), dict[str, float]()
    for c, axis, at in zip(found.domain.coordinates, found.axes, chosen, strict=True):
        if isinstance(at, int):
            del ranges[c.name]
            held[c.name] = float(axis[at])
    membership = found.membership.over(found.domain.within(ranges, held))
    scale = membership.domain.scale
    quick = membership.quick and all(one.quantity.near is None for one in membership.requirements)
    axes = [axis * per for axis, per in zip(each, scale, strict=True)]
    fine = (FINE if quick else SLOW_FINE) * min(float(axis[1] - axis[0]) for axis in axes)
    on_grid = np.where(found.inside[tuple(chosen)], INSIDE, RANGE).astype(np.int32)
    border = refined(membership, on_grid, axes, fine, quick)
    return outline(border.corners / scale, border.simplices)


def _crosses(locus: Array) -> bool:
    known = locus[np.isfinite(locus)]
    return bool(known.size and known.min() < 0.0 < known.max())


def _key(figure: Figure, axes: list[Axes], found: Map, mesh: Any) -> None:
    """Draw the legend of colours, curves and marks; on the bar of colours, lines at the values of isosurfaces."""
    from matplotlib.lines import Line2D

    (least, _), (most, _), (low, high) = found.least, found.most, found.shown
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    bar = figure.colorbar(mesh, ax=axes, shrink=0.85, extend=extend[least < low, most > high])
    bar.set_label(found.quantity.axis)
    for one in found.surfaces:
        bar.ax.axhline(one.value, color=INK, lw=1.5)
    loci = zip(found.loci.items(), LOCI, strict=False)
    handles = [Line2D([], [], color=c, lw=2.0, label=name) for (name, locus), c in loci if _crosses(locus)]
    for mark, word, value in (("v", "least", least), ("^", "most", most)):
        text = f"{word}: {measure(value)}"
        handles.append(Line2D([], [], color="white", marker=mark, mec=INK, ls="", ms=8, label=text))
    legend(figure, [*handles, Line2D([], [], ls="", label=f"mean: {measure(found.mean)}")])


def statistics_picture(found: Statistics) -> Figure:
    """Draw statistics."""
    found = _familiar(found)
    figure = sheet(8.8, 5.4)
    axes = figure.subplots()
    known = int(found.counts.sum() + sum(found.beyond))
    shares, widths = 100.0 * found.counts / known, np.diff(found.edges)
    axes.bar(found.edges[:-1], shares, widths, align="edge", color=COLOURS[0], alpha=0.75)
    axes.axvline(found.mean, color=INK, lw=1.2)
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "fontsize": 8, "va": "top"}
    axes.annotate(f" mean {measure(found.mean)}", (found.mean, 0.98), **place)
    axes.set_xlabel(found.quantity.axis)
    axes.set(ylabel="share of the poses inside, each bar [%]", xlim=(found.edges[0], found.edges[-1]))
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
