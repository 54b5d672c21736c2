# SPDX-License-Identifier: Apache-2.0
"""A polytope of velocities or of forces as a picture: projections, inner and outer balls, the ellipsoid."""

from __future__ import annotations

from itertools import combinations, product
from math import pi
from typing import TYPE_CHECKING

import numpy as np
import scipy  # submodules load on first use

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.drawing.sheet import COLOURS, INK, sheet, write
from pkm_analysis.indices.ellipsoid import largest_ellipsoid
from pkm_analysis.indices.polytopes import ForcePolytope, VelocityPolytope
from pkm_description.introduction import measure
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["polytope_picture", "write"]


def polytope_picture(found: VelocityPolytope | ForcePolytope) -> Figure:
    """Draw projections on planes of two directions each; `AnalysisError` where the polytope is unbounded."""
    velocities = isinstance(found, VelocityPolytope)
    what, unit, symbol = ("velocities", "m/s", "v") if velocities else ("forces", "N", "f")
    corners = found.vertices if isinstance(found, VelocityPolytope) else _corners(found)
    outer, inner = (
        (found.fastest, found.slowest) if isinstance(found, VelocityPolytope) else (found.strongest, found.weakest)
    )
    if not np.isfinite(outer) or not len(corners):
        raise AnalysisError(f"picture of {what}", "they have no end", "leave the singular pose")
    f = corners.shape[1]
    pairs = list(combinations(range(f), 2)) if f < 4 else [(k, k + 1) for k in range(0, f - 1, 2)]
    figure = sheet(5.6 * max(len(pairs), 1), 6.0 if f > 1 else 2.6)
    panels = figure.subplots(1, max(len(pairs), 1), squeeze=False).ravel()
    for axes, pair in zip(panels, pairs or [(0, 0)], strict=True):
        if f == 1:
            axes.plot([corners.min(), corners.max()], [0.0, 0.0], color=COLOURS[0], lw=8, solid_capstyle="butt")
            axes.set_yticks([])
        else:
            _shadow(axes, corners[:, pair], inner, outer)
            if isinstance(found, VelocityPolytope) or not found.centre.any():
                _ellipse(axes, found.rows, pair)
            axes.set_ylabel(f"{symbol}{pair[1] + 1} [{unit}]")
            axes.set_aspect("equal")
        axes.set_xlabel(f"{symbol}{pair[0] + 1} [{unit}]")
        axes.grid(True, color="#d9dfe5", linewidth=0.5, zorder=0)
    if f > 1:
        handles, texts = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, texts, loc="outside lower center", ncols=4 if len(pairs) > 1 else 2, fontsize=9, frameon=False
        )
    text = f"{what}: {measure(outer)} {unit} at most, {measure(inner)} {unit} in every direction"
    figure.suptitle(text, color=INK, fontsize=12)
    return figure


def _corners(found: ForcePolytope) -> Array:
    """Sums (2^m, f) of the forces of all actuators at their limits: they include its vertices."""
    return found.centre + np.array(list(product((1.0, -1.0), repeat=len(found.generators)))) @ found.generators


def _shadow(axes: Axes, points: Array, inner: float, outer: float) -> None:
    from matplotlib.patches import Circle

    try:
        outline = points[scipy.spatial.ConvexHull(points).vertices]
        axes.fill(*outline.T, facecolor="#dfe9f3", edgecolor=COLOURS[0], lw=1.8, zorder=2, label="the polytope")
    except scipy.spatial.QhullError:  # flat: its projection is a line
        axes.plot(*points.T, color=COLOURS[0], lw=1.8, zorder=2, label="the polytope")
    for radius, colour, text in ((inner, COLOURS[2], "in every direction"), (outer, COLOURS[9], "at most")):
        axes.add_patch(Circle((0.0, 0.0), radius, fill=False, edgecolor=colour, lw=1.3, ls="--", zorder=3, label=text))
    axes.set_xlim(-1.08 * outer, 1.08 * outer)
    axes.set_ylim(-1.08 * outer, 1.08 * outer)


def _ellipse(axes: Axes, rows: Array, pair: tuple[int, int]) -> None:
    """The projection of the largest inner ellipsoid, if it exists and the solver is installed."""
    try:
        semi_axes, columns = largest_ellipsoid(rows)
    except AnalysisError:
        return
    part = columns[list(pair)] * semi_axes
    values, vectors = np.linalg.eigh(part @ part.T)
    angle = np.linspace(0.0, 2.0 * pi, 121)
    outline = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * np.stack([np.cos(angle), np.sin(angle)]))
    axes.plot(*outline, color=COLOURS[1], lw=1.6, zorder=4, label="largest ellipsoid inside")
