# SPDX-License-Identifier: Apache-2.0
"""Loci of singularities, the regions between them, and paths that avoid them, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.domain import through
from pkm_analysis.drawing.sheet import COLOURS, INK, draw_robot, grid, label, sheet
from pkm_analysis.kernels.pose_quantities import TYPE1, TYPE2
from pkm_analysis.maps.loci import LOCUS_COLOURS, OTHER, Loci
from pkm_analysis.regions.path import Path
from pkm_analysis.regions.regions import Regions
from pkm_analysis.requirements.quantities import Requirement
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PANELS = 6  # modes shown at most


def loci_picture(found: Loci) -> Figure:
    """Draw loci."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    domain = found.domain
    figure = sheet(15.0, 6.0)
    for axes, cut in zip(figure.subplots(1, 3), (2, 1, 0), strict=True):
        c = domain.coordinates[cut]
        value = through(c, float(domain.lower[cut]), float(domain.upper[cut]))
        shown = [one for one in domain.coordinates if one is not c]
        draw_robot(axes, found.graph.membership.robot, shown)
        for one in found.loci:
            lines = _cut(one.corners[one.triangles], cut, value)
            colour = np.array(LOCUS_COLOURS.get(one.name, OTHER)) / 255.0
            axes.add_collection(LineCollection(list(lines), colors=[colour], linewidths=2.0, zorder=4))
        axes.update_datalim(np.delete(np.array([domain.lower, domain.upper]), cut, axis=1))
        axes.autoscale_view()
        label(axes, shown)
        axes.set_title(f"{c.label} = {value:.4g} {c.unit}", fontsize=9)
    shades = [tuple(part / 255.0 for part in LOCUS_COLOURS.get(one.name, OTHER)) for one in found.loci]
    handles = [
        Line2D([], [], color=(r, g, b), lw=2, label=one.name) for (r, g, b), one in zip(shades, found.loci, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    if found.notes:
        figure.supxlabel("; ".join(found.notes), fontsize=9)
    figure.suptitle(f"{found.graph.membership.robot.name}: loci of singularities", color=INK, fontsize=13)
    return figure


def _cut(triangles: Array, axis: int, value: float) -> Array:
    """Segments (k, 2, 2) in which a plane meets triangles (n, 3, 3)."""
    height = triangles[:, :, axis] - value
    height = np.where(height == 0.0, 1e-15, height)
    triangles, height = (x[(height > 0.0).any(axis=1) & (height < 0.0).any(axis=1)] for x in (triangles, height))
    segments = np.empty((len(triangles), 2, 2))
    filled = np.zeros(len(triangles), dtype=int)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        meets = np.flatnonzero(height[:, a] * height[:, b] < 0.0)
        share = (height[meets, a] / (height[meets, a] - height[meets, b]))[:, None]
        place = triangles[meets, a] + share * (triangles[meets, b] - triangles[meets, a])
        segments[meets, filled[meets]] = np.delete(place, axis, axis=1)
        filled[meets] += 1
    return segments


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def regions_picture(found: Regions) -> Figure:
    """Draw regions of any dimension; of three coordinates in one mode, slices through home."""
    dimension = found.graph.domain.dimension
    modes = list(found.graphs)[:PANELS]
    cuts = _cuts(dimension) if len(modes) == 1 else _cuts(dimension)[:1]
    panels = [(mode, cut) for mode in modes for cut in cuts]
    columns = min(len(panels), 2 if len(panels) in (2, 4) else 3)
    rows = -(-len(panels) // columns)
    figure = sheet(5.6 * columns + 0.5, (5.2 if dimension > 1 else 2.4) * rows + 1.2)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (mode, cut) in zip(grid, panels, strict=False):
        _panel(axes, found, mode, cut)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(f"{found.graph.membership.robot.name}: singularity-free regions", color=INK, fontsize=13)
    _legend(figure, found, modes)
    return figure


def _cuts(dimension: int) -> list[tuple[int, ...]]:
    """Coordinates shown in each panel."""
    if dimension < 3:
        return [tuple(range(dimension))]
    return [(0, 1), (0, 2), (1, 2)]


def _colour(number: int) -> str:
    return COLOURS[(number - 1) % len(COLOURS)]


def _panel(axes: Axes, found: Regions, mode: int, cut: tuple[int, ...]) -> None:
    from matplotlib.colors import ListedColormap

    graph, domain = found.graphs[mode], found.graphs[mode].domain
    numbers = found.numbers[mode].reshape(graph.shape)
    index: list[slice | int] = [slice(None)] * domain.dimension
    held = []
    for k, c in enumerate(domain.coordinates):
        if k not in cut:
            inside = float(np.clip(c.home, domain.lower[k], domain.upper[k]))
            index[k] = int(np.abs(graph.axes[k] - inside).argmin())
            held.append(f"{c.label} = {graph.axes[k][index[k]]:.4g} {c.unit}")
    shown = [domain.coordinates[k] for k in cut]
    there = numbers[tuple(index)]
    most = max(one.number for one in found.regions)
    colours = ListedColormap([_colour(n) for n in range(1, most + 1)])
    if len(cut) == 1:
        x = graph.axes[cut[0]]
        axes.pcolormesh(
            x, [0.0], np.ma.masked_equal(there, 0)[None], cmap=colours, vmin=0.5, vmax=most + 0.5, shading="nearest"
        )
        axes.set_yticks([])
    else:
        x, y = graph.axes[cut[0]], graph.axes[cut[1]]
        values = np.ma.masked_equal(there, 0).T
        axes.pcolormesh(
            x, y, values, cmap=colours, vmin=0.5, vmax=most + 0.5, shading="nearest", rasterized=True, zorder=1
        )
        draw_robot(axes, graph.membership.robot, shown)
        axes.autoscale_view()
    label(axes, shown)
    name = graph.membership.robot.kinematics.mode_label(mode)
    axes.set_title(", ".join([f"mode {mode} {name}".rstrip(), *held]), fontsize=9)


def _legend(figure: Figure, found: Regions, modes: list[int]) -> None:
    from matplotlib.patches import Patch

    words = {1: "as at home", -1: "opposite", 0: "no sign"}
    listed = [one for one in found.regions if one.mode in modes][:12]
    handles = [
        Patch(color=_colour(one.number), label=f"{one.number}: {one.size:.3g} {found.unit}, {words[one.sign]}")
        for one in listed
    ]
    title = "regions, their sizes, and the sign of the direct determinant"
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False, title=title)


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def path_picture(found: Path) -> Figure:
    """Draw a path, or its two ends where there is none."""
    asked = found.graph.membership.requirements if found.found else ()
    figure = sheet(11.0, 5.6 + 1.6 * len(asked))
    panels = figure.add_gridspec(1 + len(asked), 2, height_ratios=[3.0, *[1.0] * len(asked)])
    _trace(figure.add_subplot(panels[:, 0]), found)
    right = figure.add_subplot(panels[0, 1])
    _margins(right, found)
    for k, one in enumerate(asked):
        _bounded(figure.add_subplot(panels[k + 1, 1], sharex=right), found, one)
    figure.suptitle(f"{found.graph.membership.robot.name}: path", color=INK, fontsize=13)
    return figure


def _trace(axes: Axes, found: Path) -> None:
    domain = found.graph.domain
    shown = list(domain.coordinates[:2])
    if len(shown) == 2:
        draw_robot(axes, found.graph.membership.robot, shown)
    points = found.samples() if found.found else np.array([found.start, found.end])
    if len(shown) == 1:
        points = np.c_[points[:, 0], np.zeros(len(points))]
    colour, line = ("#1f4fd6", "-") if found.found else ("#d62728", ":")
    axes.plot(points[:, 0], points[:, 1], line, color=colour, lw=2.0, zorder=5)
    axes.plot(*points[0, :2], "o", color="white", mec=INK, ms=8, zorder=6, label="start")
    axes.plot(*points[-1, :2], "s", color="white", mec=INK, ms=8, zorder=6, label="end")
    label(axes, shown)
    axes.legend(fontsize=8)
    axes.set_title("no path" if not found.found else f"{len(found.waypoints)} waypoints", fontsize=9)


def _bounded(axes: Axes, found: Path, one: Requirement) -> None:
    """Draw the quantity that a requirement bounds along the path, and the bound."""
    gone, poses = _way(found)
    axes.plot(gone, one.quantity.of(found.graph.membership.robot, poses), color=COLOURS[0])
    axes.axhline(one.bound, color="#d62728", lw=1.2, ls="--", label=str(one))
    axes.set_ylabel(one.quantity.axis, fontsize=9)
    axes.legend(fontsize=8)
    grid(axes)


def _way(found: Path) -> tuple[Array, Array]:
    """Arc lengths [m] and poses (n, 7) of the path's samples (n,)."""
    graph = found.graph
    points = found.samples()
    gone = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points * graph.scale, axis=0), axis=1))])
    return gone, graph.domain.poses(graph.within(points))[0]


def _margins(axes: Axes, found: Path) -> None:
    if not found.found:
        axes.set_axis_off()
        lines = [found.reason, *(f"{100.0 * share:.3g} %: {text}" for text, share in list(found.barrier.items())[:6])]
        axes.text(0.02, 0.95, "\n".join(lines), va="top", wrap=True, fontsize=9, color=INK)
        return
    graph = found.graph
    points = found.samples()
    gone, poses = _way(found)
    type1, type2 = graph.membership.robot.evaluator.numbers(poses, (TYPE1, TYPE2))
    axes.plot(gone, type1, color=COLOURS[0], label="type 1")
    axes.plot(gone, type2, color=COLOURS[1], label="type 2, signed")
    axes.axhline(0.0, color=INK, lw=0.8)
    for k, (c, values) in enumerate(zip(graph.domain.coordinates, points.T, strict=True)):
        axes.plot(gone, values, color=COLOURS[(k + 2) % len(COLOURS)], lw=1.0, ls="--", label=f"{c.label} [{c.unit}]")
    axes.set_xlabel("way [m], angles at the characteristic length")
    axes.set_title("margins of singularities", fontsize=9)
    axes.legend(fontsize=8)
    grid(axes)
