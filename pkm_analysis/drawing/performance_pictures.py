# SPDX-License-Identifier: Apache-2.0
"""Indices over poses, a polytope of velocities or forces, and what a motion requires, as pictures."""

from __future__ import annotations

from itertools import combinations, product
from math import pi
from typing import TYPE_CHECKING

import numpy as np
import scipy  # submodules load on first use

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.drawing.sheet import COLOURS, INK, grid, sheet
from pkm_analysis.indices.performance_indices import PerformanceIndices
from pkm_analysis.indices.polytopes import ForcePolytope, VelocityPolytope, largest_ellipsoid
from pkm_analysis.prediction.prediction import Prediction
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STILL = 1e-12  # m or rad: what does not vary
ACROSS = 3


BEYOND = "#d62728"


def indices_picture(found: PerformanceIndices) -> Figure:
    """Draw indices: in colour over two coordinates, as a curve over one, else as the share of poses below."""
    worst = found.worst()
    varying = [k for k in range(found.coordinates.shape[1]) if np.ptp(found.coordinates[:, k]) > STILL]
    down = -(-max(len(worst), 1) // ACROSS)
    figure = sheet(13.0, 3.8 * down)
    panels = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for axes, (name, (value, at, mean)) in zip(panels, worst.items(), strict=False):
        values, unit = found.of(name), found.units[name]
        shown = f"{name.replace('_', ' ')}{'' if unit == '1' else f' [{unit}]'}"
        place = [float(at[k]) for k in varying]
        if len(varying) == 2:
            _coloured(figure, axes, found.coordinates[:, varying], values, place)
            axes.set_xlabel(found.labels[varying[0]])
            axes.set_ylabel(found.labels[varying[1]])
        elif len(varying) == 1:
            x = found.coordinates[:, varying[0]]
            order = np.argsort(x)
            axes.plot(x[order], values[order], ".-", color=COLOURS[0], lw=1.4, ms=4)
            axes.plot(place[0], value, "v", color="white", mec=INK, ms=8)
            axes.set_xlabel(found.labels[varying[0]])
        else:
            known = np.sort(values[np.isfinite(values)])
            axes.plot(known, 100.0 * (np.arange(len(known)) + 0.5) / max(len(known), 1), ".-", color=COLOURS[0], ms=4)
            axes.axvline(value, color=COLOURS[1], lw=1.2)
            axes.set_ylabel("poses below [%]")
        axes.set_title(f"{shown}: worst {measure(value)}, mean {measure(mean)}", fontsize=9)
        axes.tick_params(labelsize=8)
        grid(axes)
    for axes in panels[len(worst) :]:
        axes.set_axis_off()
    text = f"{found.robot}: indices at {len(found.coordinates)} poses, {found.part}, rotations at {found.length:.4g} m"
    figure.suptitle(text, color=INK, fontsize=13)
    return figure


def _coloured(figure: Figure, axes: Axes, points: Array, values: Array, place: list[float]) -> None:
    known = np.isfinite(values)
    x, y = points[known].T
    size = 2.0e4 / max(len(points), 1)
    dots = axes.scatter(x, y, s=min(max(size, 4.0), 400.0), c=values[known], marker="s", cmap="viridis")
    figure.colorbar(dots, ax=axes, shrink=0.9)
    axes.plot(*place, "v", color="white", mec=INK, ms=9)
    axes.margins(0.08)


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        grid(axes)
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


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def prediction_picture(found: Prediction) -> Figure:
    """Draw a prediction."""
    figure = sheet(9.6, 9.0)
    effort, speed, power, use = figure.subplots(4, 1, height_ratios=(3, 3, 3, 0.7 + 0.32 * len(found.names)))
    units = sorted(set(found.units), reverse=True)
    torque = " or ".join({"rad": "N m", "m": "N"}[unit] for unit in units)
    _lines(effort, found, found.effort, found.effort_limits, f"effort [{torque}]")
    _lines(speed, found, found.velocity, found.velocity_limits, f"speed [{' or '.join(f'{u}/s' for u in units)}]")
    _lines(power, found, found.power, None, "power [W]")
    power.plot(found.times, found.power.sum(axis=1), color=INK, lw=1.4, label="all together")
    power.set_xlabel("time [s]")
    _bars(use, found)
    handles, labels = power.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.suptitle(f"{found.robot}: {found._summary()}", color=INK, fontsize=11)
    return figure


def _lines(axes: Axes, found: Prediction, values: Array, limits: Array | None, text: str) -> None:
    for k, name in enumerate(found.names):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(found.times, values[:, k], color=colour, lw=1.3, label=name)
        limit = np.inf if limits is None else limits[k]
        if limit < 2.0 * max(float(np.abs(values).max()), 1e-12):  # one far away would flatten the curves
            for side in (-limit, limit):
                axes.axhline(side, color=colour, lw=0.9, ls=(k, (4, 4)))
    axes.set_ylabel(text, fontsize=9)
    axes.set_xlim(found.times[0], found.times[-1])
    grid(axes)
    axes.tick_params(labelsize=8)


def _bars(axes: Axes, found: Prediction) -> None:
    """Draw the share used of each limit that exists."""
    rows = np.arange(len(found.names))
    for shift, values, word, shade in (
        (-0.2, found.effort_use, "effort", 0.95),
        (0.2, found.velocity_use, "speed", 0.55),
    ):
        known = np.nan_to_num(values, posinf=0.0)
        colours = [BEYOND if one > 1.0 else COLOURS[0] for one in known]
        axes.barh(rows + shift, 100.0 * known, 0.36, color=colours, alpha=shade)
        for row, one in zip(rows, values, strict=True):
            share = f"{100.0 * one:.3g} % of {word}" if one > 0.0 else f"{word} has no limit"
            axes.text(100.0 * np.nan_to_num(one), row + shift, f" {share}", fontsize=7, va="center")
    axes.axvline(100.0, color=INK, lw=1.0)
    axes.set_xlim(0.0, 100.0 * 1.35 * max(1.0, float(np.nan_to_num([found.effort_use, found.velocity_use]).max())))
    axes.set_yticks(rows, found.names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("peak as a part of the description's limit [%]", fontsize=9)
    axes.tick_params(labelsize=8)
