# SPDX-License-Identifier: Apache-2.0
"""Pictures of drives: indices, polytopes, requirements of a motion, balance, and a linkage over its range."""

from __future__ import annotations

from itertools import combinations, product
from math import pi
from typing import TYPE_CHECKING

import numpy as np
import scipy  # submodules load on first use

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.drawing.sheet import COLOURS, INK, grid, legend, sheet
from pkm_analysis.indices import ForcePolytope, PerformanceIndices, VelocityPolytope, largest_ellipsoid
from pkm_analysis.prediction import EFFORTS, Drives, Prediction
from pkm_analysis.requirements.grammar import familiar
from pkm_analysis.transmission_range import TransmissionRange
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkm_analysis.balance import Balance


STILL = 1e-12  # m or rad: what does not vary
ACROSS = 3
MOST_PAIRS = 40  # of motor and gear that are drawn
BEYOND = "#d62728"
POLYGONS = 7  # along each joint
FILLED = 0.42  # of the distance between two, that the largest polygon takes to each side


def indices_picture(found: PerformanceIndices) -> Figure:
    """Draw indices: in colour over two coordinates, as a curve over one, else as the share of poses below."""
    worst = found.worst()
    varying = [k for k in range(found.coordinates.shape[1]) if np.ptp(found.coordinates[:, k]) > STILL]
    down = -(-max(len(worst), 1) // ACROSS)
    figure = sheet(13.0, 3.8 * down)
    panels = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for axes, (name, (value, at, mean)) in zip(panels, worst.items(), strict=False):
        values, unit = found.of(name), found.units[name]
        place, labels = [float(at[k]) for k in varying], [found.labels[k] for k in varying]
        known = np.isfinite(values)
        if len(varying) == 2:
            size = min(max(2.0e4 / len(values), 4.0), 400.0)
            dots = axes.scatter(*found.coordinates[known][:, varying].T, s=size, c=values[known], marker="s")
            figure.colorbar(dots, ax=axes, shrink=0.9)
            axes.plot(*place, "v", color="white", mec=INK, ms=9)
            axes.margins(0.08)
            axes.set(xlabel=labels[0], ylabel=labels[1])
        elif len(varying) == 1:
            x = found.coordinates[:, varying[0]]
            order = np.argsort(x)
            axes.plot(x[order], values[order], ".-", color=COLOURS[0], lw=1.4, ms=4)
            axes.plot(place[0], value, "v", color="white", mec=INK, ms=8)
            axes.set_xlabel(labels[0])
        else:
            ordered = np.sort(values[known])
            shares = 100.0 * (np.arange(len(ordered)) + 0.5) / max(len(ordered), 1)
            axes.plot(ordered, shares, ".-", color=COLOURS[0], ms=4)
            axes.axvline(value, color=COLOURS[1], lw=1.2)
            axes.set_ylabel("poses below [%]")
        text = f"{name.replace('_', ' ')}{'' if unit == '1' else f' [{unit}]'}"
        axes.set_title(f"{text}: worst {measure(value)}, mean {measure(mean)}", fontsize=9)
        axes.tick_params(labelsize=8)
        grid(axes)
    for axes in panels[len(worst) :]:
        axes.set_axis_off()
    figure.suptitle(f"{found.robot}: indices {found._summary()}", color=INK, fontsize=13)
    return figure


def polytope_picture(found: VelocityPolytope | ForcePolytope) -> Figure:
    """Draw projections on planes of two directions each; `AnalysisError` where the polytope is unbounded."""
    if isinstance(found, VelocityPolytope):
        what, unit, symbol = "velocities", "m/s", "v"
        corners, outer, inner = found.vertices, found.fastest, found.slowest
    else:  # sums of the forces of all actuators at their limits: they include its vertices
        sums = np.array(list(product((1.0, -1.0), repeat=len(found.generators)))) @ found.generators
        corners, outer, inner = found.centre + sums, found.strongest, found.weakest
        what, unit, symbol = "forces", "N", "f"
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
            axes.set(ylabel=f"{symbol}{pair[1] + 1} [{unit}]", aspect="equal")
        axes.set_xlabel(f"{symbol}{pair[0] + 1} [{unit}]")
        grid(axes)
    if f > 1:
        legend(figure, panels[0].get_legend_handles_labels()[0], 4 if len(pairs) > 1 else 2)
    text = f"{what}: {measure(outer)} {unit} at most, {measure(inner)} {unit} in every direction"
    figure.suptitle(text, color=INK, fontsize=12)
    return figure


def _shadow(axes: Axes, points: Array, inner: float, outer: float) -> None:
    from matplotlib.patches import Circle

    try:
        outline = points[scipy.spatial.ConvexHull(points).vertices]
        axes.fill(*outline.T, facecolor="#dfe9f3", edgecolor=COLOURS[0], lw=1.8, zorder=2, label="the polytope")
    except scipy.spatial.QhullError:  # flat: its projection is a line
        axes.plot(*points.T, color=COLOURS[0], lw=1.8, zorder=2, label="the polytope")
    for radius, colour, text in ((inner, COLOURS[2], "in every direction"), (outer, COLOURS[9], "at most")):
        axes.add_patch(Circle((0.0, 0.0), radius, fill=False, edgecolor=colour, lw=1.3, ls="--", zorder=3, label=text))
    axes.set(xlim=(-1.08 * outer, 1.08 * outer), ylim=(-1.08 * outer, 1.08 * outer))


def _ellipse(axes: Axes, rows: Array, pair: tuple[int, int]) -> None:
    try:
        semi_axes, columns = largest_ellipsoid(rows)
    except AnalysisError:
        return
    part = columns[list(pair)] * semi_axes
    values, vectors = np.linalg.eigh(part @ part.T)
    angle = np.linspace(0.0, 2.0 * pi, 121)
    outline = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * np.stack([np.cos(angle), np.sin(angle)]))
    axes.plot(*outline, color=COLOURS[1], lw=1.6, zorder=4, label="largest ellipsoid inside")


def prediction_picture(found: Prediction) -> Figure:
    """Draw a prediction."""
    figure = sheet(9.6, 9.0)
    effort, speed, power, use = figure.subplots(4, 1, height_ratios=(3, 3, 3, 0.7 + 0.32 * len(found.names)))
    units = sorted(set(found.units), reverse=True)
    _lines(effort, found, found.effort, found.effort_limits, f"effort [{' or '.join(EFFORTS[u] for u in units)}]")
    _lines(speed, found, found.velocity, found.velocity_limits, f"speed [{' or '.join(f'{u}/s' for u in units)}]")
    _lines(power, found, found.power, np.full(len(found.names), np.inf), "power [W]")
    power.plot(found.times, found.power.sum(axis=1), color=INK, lw=1.4, label="all together")
    power.set_xlabel("time [s]")
    _bars(use, found)
    legend(figure, power.get_legend_handles_labels()[0], 4)
    figure.suptitle(f"{found.robot}: {found._summary()}", color=INK, fontsize=11)
    return figure


def _lines(axes: Axes, found: Prediction, values: Array, limits: Array, text: str) -> None:
    for k, name in enumerate(found.names):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(found.times, values[:, k], color=colour, lw=1.3, label=name)
        if limits[k] < 2.0 * max(float(np.abs(values).max()), 1e-12):  # one far away would flatten the curves
            for side in (-limits[k], limits[k]):
                axes.axhline(side, color=colour, lw=0.9, ls=(k, (4, 4)))
    axes.set_ylabel(text, fontsize=9)
    axes.set_xlim(found.times[0], found.times[-1])
    grid(axes)
    axes.tick_params(labelsize=8)


def _bars(axes: Axes, found: Prediction) -> None:
    uses, rows = np.array([found.effort_use, found.velocity_use]), np.arange(len(found.names))
    for shift, values, word, shade in zip((-0.2, 0.2), uses, ("effort", "speed"), (0.95, 0.55), strict=True):
        known = np.nan_to_num(values, posinf=0.0)
        colours = [BEYOND if one > 1.0 else COLOURS[0] for one in known]
        axes.barh(rows + shift, 100.0 * known, 0.36, color=colours, alpha=shade)
        for row, one in zip(rows, values, strict=True):
            share = f"{100.0 * one:.3g} % of {word}" if one > 0.0 else f"{word} has no limit"
            axes.text(100.0 * np.nan_to_num(one), row + shift, f" {share}", fontsize=7, va="center")
    axes.axvline(100.0, color=INK, lw=1.0)
    axes.set_xlim(0.0, 100.0 * 1.35 * max(1.0, float(np.nan_to_num(uses).max())))
    axes.set_yticks(rows, found.names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("peak as a part of the description's limit [%]", fontsize=9)
    axes.tick_params(labelsize=8)


def drives_picture(found: Drives) -> Figure:
    """Draw the largest share of a limit that each pair of motor and gear uses on each drive; red where it fails."""
    pairs = list(found.by_pair.items())[:MOST_PAIRS]
    names = [one.joint for one in pairs[0][1]]
    figure = sheet(8.8, 1.6 + 0.3 * len(pairs) * len(names))
    axes, width = figure.subplots(), 0.8 / len(names)
    for k, name in enumerate(names):
        uses = np.array([100.0 * min(each[k].most, 10.0) for _, each in pairs])  # some are infinite
        rows = np.arange(len(pairs)) + width * (k - 0.5 * (len(names) - 1))
        edges = [BEYOND if use > 100.0 else "none" for use in uses]
        axes.barh(rows, uses, 0.9 * width, color=COLOURS[k % len(COLOURS)], edgecolor=edges, lw=1.5, label=name)
    axes.axvline(100.0, color=INK, lw=1.0)
    axes.set_xlim(0.0, 300.0)
    axes.set_yticks(range(len(pairs)), [pair for pair, _ in pairs], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(
        "largest share of a limit that is used [%], 300 at most; edged in red where the pair fails", fontsize=9
    )
    grid(axes)
    legend(figure, axes.get_legend_handles_labels()[0], 4)
    figure.suptitle(found._summary(), color=INK, fontsize=11)
    return figure


def balance_picture(found: Balance) -> Figure:
    """Largest effort of a drive over the first two coordinates, before and after; of one coordinate as curves."""
    units, names = set(found.units), list(found.efforts)
    largest = {}  # over the nodes, in parts of the largest effort without springs where units are mixed
    scale = found.worst(names[0]) if len(units) > 1 else np.ones(len(found.drives))
    for which, efforts in found.efforts.items():
        values = np.full(len(found.mask), np.nan)
        values[found.mask] = np.abs(efforts / np.maximum(scale, 1e-300)).max(axis=1)
        largest[which] = values.reshape([len(axis) for axis in found.axes])
    unit = f"[{next(iter(units))}]" if len(units) == 1 else "/ largest without springs"
    if len(found.axes) == 1:
        figure = sheet(7.0, 4.2)
        _balance_curves(figure.subplots(), found, largest, unit)
        return figure
    figure = sheet(4.2 * len(names) + 0.8, 4.2)
    top = max(float(np.nanmax(values)) for values in largest.values())
    panels = np.atleast_1d(figure.subplots(1, len(names)))
    for axes, (which, values) in zip(panels, largest.items(), strict=True):
        flat = values.reshape(*values.shape[:2], -1)
        worst = np.where(np.isfinite(flat), flat, -np.inf).max(axis=2)
        worst = np.where(np.isfinite(worst), worst, np.nan)
        (x, c), (y, d) = map(_axis, found.axes[:2], found.domain.labels[:2], found.domain.units[:2])
        drawn = axes.pcolormesh(x, y, worst.T, vmin=0.0, vmax=top or 1.0, cmap="viridis", shading="nearest")
        axes.set(xlabel=c, ylabel=d)
        axes.set_title(which, fontsize=10)
    figure.colorbar(drawn, ax=list(panels), label=f"largest effort of a drive {unit}")
    return figure


def _balance_curves(axes: Axes, found: Balance, largest: dict[str, np.ndarray], unit: str) -> None:
    x, name = _axis(found.axes[0], found.domain.labels[0], found.domain.units[0])
    for (which, values), colour in zip(largest.items(), COLOURS, strict=False):
        axes.plot(x, values, color=colour, label=which)
    axes.set(xlabel=name, ylabel=f"largest effort of a drive {unit}")
    axes.set_ylim(bottom=0.0)
    grid(axes, key=True)


def _axis(values: Array, name: str, unit: str) -> tuple[Array, str]:
    word, factor = familiar(unit)
    return factor * values, f"{name} [{word}]"


def transmission_picture(found: TransmissionRange) -> Figure:
    """One picture of a range; `AnalysisError` for more than two joints."""
    if not found.axes:
        problem = f"it shows one or two joints, and here are {len(found.transmission.joints)}"
        raise AnalysisError("picture", problem, "name fewer: --joints")
    return _ratio_curves(found) if len(found.axes) == 1 else _ratio_maps(found)


def _ratio_curves(found: TransmissionRange) -> Figure:
    figure = sheet(7.0, 7.5)
    ratios, efforts, inertia = figure.subplots(3, 1, sharex=True)
    t = found.transmission
    x, label = _axis(found.axes[0], t.joints[0], t.tree.joint_named[t.joints[0]].unit)
    for k, name in enumerate(t.actuators):
        ratios.plot(x, found.jacobian[:-1, k, 0], color=COLOURS[k % len(COLOURS)], label=name)
    ratios.set_ylabel("rate of a motor per rate of the joint")
    efforts.plot(x, found.effort[:-1, 0], color=COLOURS[0])
    efforts.set_ylabel(f"largest effort [{t.tree.joint_named[t.joints[0]].effort_unit}]")
    inertia.plot(x, found.rotors[:-1, 0, 0], color=COLOURS[0], label="rotors")
    inertia.plot(x, found.armature[:-1, 0, 0], color=COLOURS[1], label="with the linkage")
    inertia.set(ylabel="inertia at the joint", xlabel=label)
    for axes in (ratios, efforts, inertia):
        grid(axes, key=axes is not efforts)
    return figure


def _ratio_maps(found: TransmissionRange) -> Figure:
    figure = sheet(12.5, 4.6)
    polygons, inertia, margin = figure.subplots(1, 3)
    units = [found.transmission.tree.joint_named[name].unit for name in found.transmission.joints]
    (x, first), (y, second) = map(_axis, found.axes, found.transmission.joints, units)
    shape = (len(x), len(y))
    grown = np.full(len(found.solved), np.nan)
    grown[found.solved] = np.sqrt(np.abs(np.linalg.det(found.armature[found.solved])))
    for axes, values, title in (
        (inertia, grown, "inertia at the joints, root of the determinant"),
        (margin, np.where(found.solved, found.margin, np.nan), "margin to a fold"),
    ):
        drawn = axes.pcolormesh(x, y, values[:-1].reshape(shape).T, cmap="viridis", shading="nearest")
        figure.colorbar(drawn, ax=axes)
        axes.set_title(title, fontsize=10)
    _draw_polygons(polygons, found, x, y)
    for axes in (polygons, inertia, margin):
        axes.set(xlabel=first, ylabel=second)
    return figure


def _draw_polygons(axes: Axes, found: TransmissionRange, x: np.ndarray, y: np.ndarray) -> None:
    t = found.transmission
    if not np.isfinite([motor.effort for motor in t.motors.values()]).all():
        axes.set_title("efforts: no limits are known", fontsize=10)
        return
    nodes = [np.linspace(0, len(one) - 1, POLYGONS).round().astype(int) for one in (x, y)]
    places = [(i, j) for i in nodes[0] for j in nodes[1] if found.solved[i * len(y) + j]]
    shapes = [t.effort_polygon(found.q[i * len(y) + j]) for i, j in places]
    largest = np.max([np.abs(one).max(axis=0) for one in shapes], axis=0)
    pitch = np.array([np.ptp(x), np.ptp(y)]) / (POLYGONS - 1)
    for (i, j), shape in zip(places, shapes, strict=True):
        drawn = np.array([x[i], y[j]]) + FILLED * pitch * shape / largest
        axes.fill(*drawn.T, facecolor=COLOURS[0], alpha=0.35, edgecolor=COLOURS[0], linewidth=0.8)
        axes.plot(x[i], y[j], ".", color=COLOURS[0], markersize=2)
    units = [t.tree.joint_named[name].effort_unit for name in t.joints]
    axes.set_title(f"efforts, largest {largest[0]:.3g} {units[0]} and {largest[1]:.3g} {units[1]}", fontsize=10)
