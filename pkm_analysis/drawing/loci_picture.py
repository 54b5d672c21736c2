# SPDX-License-Identifier: Apache-2.0
"""Surfaces of singularities as a picture: their sections with three planes through home, or the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.domain import through
from pkm_analysis.drawing.sheet import INK, directions, draw_robot, label, offset_of, sheet, write
from pkm_analysis.loci.loci import COLOURS, OTHER, Loci
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["loci_picture", "write"]


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
        along = directions(shown, domain.task)
        if along is not None:
            draw_robot(axes, found.graph.membership.robot.mechanism, along, offset_of(shown, domain.task, along))
        for one in found.loci:
            lines = _cut(one.corners[one.triangles], cut, value)
            colour = np.array(COLOURS.get(one.name, OTHER)) / 255.0
            axes.add_collection(LineCollection(list(lines), colors=[colour], linewidths=2.0, zorder=4))
        axes.update_datalim(np.delete(np.array([domain.lower, domain.upper]), cut, axis=1))
        axes.autoscale_view()
        label(axes, shown)
        axes.set_title(f"{c.label} = {value:.4g} {c.unit}", fontsize=9)
    shades = [tuple(part / 255.0 for part in COLOURS.get(one.name, OTHER)) for one in found.loci]
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
