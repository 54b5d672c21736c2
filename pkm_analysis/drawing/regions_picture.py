# SPDX-License-Identifier: Apache-2.0
"""Singularity-free regions as a picture: a colour for each, over two coordinates or as slices, mode by mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, directions, draw_robot, label, offset_of, sheet, write
from pkm_analysis.regions.regions import Regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["regions_picture", "write"]

PANELS = 6  # modes shown at most


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
        along = directions(shown, domain.task)
        if along is not None:
            draw_robot(axes, graph.membership.robot.mechanism, along, offset_of(shown, domain.task, along))
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
