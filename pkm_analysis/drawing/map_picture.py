# SPDX-License-Identifier: Apache-2.0
"""A map as a picture: a quantity in colour, loci as curves, the robot at home to scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import INK, directions, draw_robot, label, offset_of, sheet, write
from pkm_analysis.maps.map import Map
from pkm_description.introduction import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["map_picture", "write"]

LOCI = ("#1f4fd6", "#d62728", "#aa3377", "#228833")
LEVELS = 12
OUTLIERS = 2.0  # percent of the values at either end that colours do not follow where they are far off


def map_picture(found: Map) -> Figure:
    """Draw a map.

    Args:
        found: of one or two coordinates.

    Returns:
        A figure of matplotlib.
    """
    figure = sheet(8.8, 8.0 if len(found.axes) == 2 else 4.2)
    axes = figure.subplots()
    shown = list(found.domain.coordinates)
    unit = "" if found.quantity.unit == "1" else f" [{found.quantity.unit}]"
    if len(found.axes) == 2:
        _field(figure, axes, found, unit)
        along = directions(shown, found.domain.task)
        if along is not None:
            draw_robot(axes, found.membership.robot.mechanism, along, offset_of(shown, found.domain.task, along))
        axes.autoscale_view()
        label(axes, shown)
    else:
        axes.plot(found.axes[0], found.values, color="#4477aa", lw=1.8)
        label(axes, shown)
        axes.set_ylabel(found.quantity.name + unit)
    axes.set_title(found.domain.in_words(), fontsize=9)
    figure.suptitle(f"{found.membership.robot.name}: {found.quantity.name}{unit}", color=INK, fontsize=13)
    return figure


def _field(figure: Figure, axes: Axes, found: Map, unit: str) -> None:
    from matplotlib.lines import Line2D

    x, y = found.axes
    values = np.ma.masked_invalid(found.values).T
    low, high = (float(v) for v in np.nanpercentile(found.values, (OUTLIERS, 100.0 - OUTLIERS)))
    least, most = float(values.min()), float(values.max())
    wide = 0.25 * (high - low)
    low, high = (least if low - least < wide else low), (most if most - high < wide else high)
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    mesh = axes.pcolormesh(
        x, y, values, cmap="viridis", vmin=low, vmax=high, shading="nearest", rasterized=True, zorder=1
    )
    bar = figure.colorbar(mesh, ax=axes, shrink=0.85, extend=extend[least < low, most > high])
    bar.set_label(found.quantity.name + unit)
    if high > low:
        lines = axes.contour(
            x, y, values, levels=np.linspace(low, high, LEVELS), colors="white", linewidths=0.5, zorder=2
        )
        axes.clabel(lines, fontsize=6, fmt=lambda level: measure(level))
    handles = []
    for (name, locus), colour in zip(found.loci.items(), LOCI, strict=False):
        known = locus[np.isfinite(locus)]
        if known.size and known.min() < 0.0 < known.max():
            axes.contour(x, y, np.ma.masked_invalid(locus).T, levels=[0.0], colors=colour, linewidths=2.0, zorder=4)
            handles.append(Line2D([], [], color=colour, lw=2.0, label=name))
    (_, a), (_, b) = found.least, found.most
    for place, mark, word, value in ((a, "v", "least", least), (b, "^", "most", most)):
        axes.plot(*place, mark, color="white", mec=INK, ms=9, zorder=6)
        handles.append(
            Line2D([], [], color="white", marker=mark, mec=INK, ls="", ms=8, label=f"{word}: {measure(value)}")
        )
    handles.append(Line2D([], [], ls="", label=f"mean: {measure(found.mean)}"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
