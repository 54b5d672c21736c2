# SPDX-License-Identifier: Apache-2.0
"""The panels of the report's page, each drawn into axes that it is given, and the series that they draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_runtime.describable import in_degrees
from pkm_viewer.report.recording import Recording, Rows, tracking_errors
from pkm_viewer.report.report import Report, Use

BINS = 1200  # a panel is not that many pixels wide
_STILL = 1e-6  # m
_UNTURNED = 1e-3  # rad

INK, SOFT = "#1d2733", "#5c6b7a"
ASKED, DONE, BAD, WARNING = "#8fb3e6", "#b3471b", "#c0182b", "#8a5200"
_ACTUATORS = ("#0b6fb8", "#d9730d", "#1b8a5a", "#a03d8f", "#7a5c2e", "#12a0a8", "#5a53c4", "#86871a", "#c43f5d", "#555")
_XYZ = ("#b3471b", "#1b8a5a", "#0b6fb8")
_A4 = (8.27, 11.69)  # inches
_SPATIAL = 0.05  # of the largest extent: from there on a path does not lie in a plane
_NOTHING = 1e-9  # m and rad: rounding
_THIN, _WIDER, _DASH = 0.9, 0.35, 4.0  # points: a line; by how much those below many others are wider; a dash
_MOST_DASHED = 4  # curves that lie on each other and share a line in turn
_COINCIDE, _OFTEN = 0.01, 0.6  # of the range of all curves: nearer, two are one line; of the time
_CLEAR = 80.0  # %: a label beside a longer bar would lie on the line of the limit
_MOST_MARKS = 30  # in one panel
_FEW_CYCLES = 6  # up to so many, errors are drawn as they are


def envelope(x: Array, y: Array) -> tuple[Array, Array]:
    """At most 2 `BINS` points of a curve x, y (n,) that draw the same picture: lowest and highest of each bin."""
    if len(x) <= 2 * BINS:
        return x, y
    edges = np.linspace(0, len(x), BINS + 1).astype(np.int64)
    picked = []
    for begin, end in pairwise(edges):
        part = y[begin:end]
        low, high = begin + int(np.argmin(part)), begin + int(np.argmax(part))
        picked += [min(low, high), max(low, high)]
    return x[picked], y[picked]


def rms_and_max(x: Array, y: Array, bins: int) -> tuple[Array, Array, Array]:
    """The middle (bins,) of each bin, and the RMS and the maximum of y (n,) in it."""
    edges = np.linspace(0, len(x), bins + 1).astype(np.int64)
    parts = [slice(begin, end) for begin, end in pairwise(edges) if end > begin]
    rms = np.array([np.sqrt(np.mean(y[part] ** 2)) for part in parts])
    return np.array([x[part].mean() for part in parts]), rms, np.array([y[part].max() for part in parts])


def moves(poses: Array) -> bool:
    """Whether the position changes along poses (n, 7)."""
    return bool(np.ptp(poses[:, :3], axis=0).max() > _STILL)


def turns(poses: Array) -> bool:
    """Whether the orientation changes along poses (n, 7)."""
    return bool(np.abs(rotation_vectors(poses, poses[0])).max() > _UNTURNED)


def rotation_vectors(poses: Array, start: Array) -> Array:
    """Rotation vectors (n, 3) [rad], base axes, from a pose (7,) to poses (n, 7), without jumps; NaN stays."""
    turned = np.full((len(poses), 3), np.nan)
    known = np.isfinite(poses[:, 3:]).all(axis=1)
    turned[known] = (Rotation.from_quat(poses[known, 3:]) * Rotation.from_quat(start[3:]).inv()).as_rotvec()
    angle = np.linalg.norm(turned, axis=1)
    jumps = np.flatnonzero(np.linalg.norm(np.diff(turned, axis=0), axis=1) > np.pi)
    for jump in jumps:
        axis = turned[jump + 1] / angle[jump + 1]
        rounds = np.round((turned[jump] - turned[jump + 1]) @ axis / (2.0 * np.pi))
        after = slice(jump + 1, None)
        units = turned[after] / np.maximum(np.linalg.norm(turned[after], axis=1, keepdims=True), 1e-12)
        turned[after] += 2.0 * np.pi * rounds * units * np.sign(units @ axis)[:, None]
    return np.asarray(turned, dtype=np.float64)


def widest_plane(points: Array) -> tuple[int, int, int]:
    """The two coordinates in which points (n, 3) extend most, in order, and the third."""
    spans = np.ptp(points, axis=0)
    third = int(np.argmin(spans))
    if np.isclose(spans[2], spans[third]) and np.allclose(np.delete(spans, int(np.argmax(spans))), spans[third]):
        third = 1 if int(np.argmax(spans)) != 1 else 0  # a straight line: show its height
    first, second = (axis for axis in range(3) if axis != third)
    return first, second, third


def colour(actuator: int) -> str:
    """The colour of an actuator."""
    return _ACTUATORS[actuator % len(_ACTUATORS)]


def titled(axes: Axes, title: str, x: str = "time [s]", y: str = "") -> None:
    """Give axes a title and labels."""
    axes.set_title(title, loc="left", fontsize=9, fontweight="bold", color=INK, pad=6)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def path(figure: Figure, axes: Axes, wanted: Array, measured: Array, words: tuple[str, str, Sequence[str]]) -> None:
    """Draw points (n, 3), reference and measured, in the widest plane; `words`: title, unit, three coordinates."""
    title, unit, names = words
    across, up, third = widest_plane(wanted)
    axes.plot(wanted[:, across], wanted[:, up], color=ASKED, linewidth=3.2, label="reference", solid_capstyle="round")
    axes.plot(measured[:, across], measured[:, up], color=DONE, linewidth=0.9, label="measured")
    axes.plot(*wanted[0, [across, up]], "o", color=INK, markersize=3.5, label="start")
    titled(axes, title, f"{names[across]} [{unit}]", f"{names[up]} [{unit}]")
    axes.set_aspect("equal", adjustable="datalim")
    spans = np.ptp(wanted, axis=0)
    spatial = spans[third] > _SPATIAL * spans.max()
    both = np.concatenate([wanted, measured])[:, [across, up]]  # a platform that left its path is seen, too
    low, high = np.nanmin(both, axis=0), np.nanmax(both, axis=0)
    box = axes.get_position(original=True)  # which it keeps, and which does not look at limits yet
    right, top = _fit(axes, low, high, float(box.width * _A4[0] / (box.height * _A4[1])), spatial)
    axes.legend(loc="lower left", ncols=3, borderaxespad=0.2)
    if spatial:
        corner = box.x1 - right * box.width, box.y1 - top * box.height
        inset = figure.add_axes((*corner, right * box.width, top * box.height), projection="3d")
        assert isinstance(inset, Axes3D)
        inset.plot(*wanted.T, color=ASKED, linewidth=1.6)
        inset.plot(*measured.T, color=DONE, linewidth=0.6)
        inset.set_box_aspect(np.maximum(spans, 0.25 * spans.max()), zoom=1.1)
        inset.patch.set_alpha(0.0)
        for axis, name in zip((inset.xaxis, inset.yaxis, inset.zaxis), "xyz", strict=True):
            axis.set_ticks([])
            axis.set_label_text(name, fontsize=6.5)
            axis.labelpad = -14.0
            axis.set_pane_color((0.96, 0.97, 0.98, 1.0))


def _fit(axes: Axes, low: Array, high: Array, ratio: float, inset: bool) -> tuple[float, float]:
    """Set limits of equal scale that show points between corners `low` and `high` (2,), clear of legend and inset. The
    legend is below, the inset takes the upper right corner; returns the shares of width and height that it gets.
    `ratio` is width over height of the axes.
    """
    least = 0.02 * max(float((high - low).max()), 1e-9)
    size = np.maximum(high - low, least)
    below, around = 0.16, 0.06  # of the height for the legend, and around
    best: tuple[float, float, float] = (np.inf, 1.0, 1.0)  # units per height; share of width, of height for points
    for wide, tall in ((0.62, 1.0), (1.0, 0.45)) if inset else ((1.0, 1.0),):
        scale = max(size[0] / (ratio * wide * (1.0 - around)), size[1] / ((1.0 - below - around) * tall))
        best = min(best, (scale, wide, tall))
    scale, wide, tall = best
    middle = 0.5 * (low + high)
    left = middle[0] - 0.5 * wide * ratio * scale
    bottom = middle[1] - (0.5 * (1.0 - below) * tall + below) * scale
    axes.set_xlim(left, left + ratio * scale)
    axes.set_ylim(bottom, bottom + scale)
    return (0.38, 0.95) if wide < 1.0 else (0.36, 0.62)


def components(axes: Axes, rows: Rows, wanted: Array, measured: Array, words: tuple[str, str, Sequence[str]]) -> None:
    """Three coordinates (n, 3) against time, reference and measured; those that stay zero are left out."""
    title, unit, names = words
    spans = np.ptp(wanted, axis=0)
    for k in range(3):
        if spans[k] > 1e-3 * max(float(spans.max()), 1e-12):
            axes.plot(*envelope(rows.times, wanted[:, k]), color=_XYZ[k], alpha=0.35, linewidth=2.8)
            axes.plot(*envelope(rows.times, measured[:, k]), color=_XYZ[k], linewidth=0.9, label=names[k])
    titled(axes, title, y=unit)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.16 * (high - low))
    if axes.lines:  # of a platform that rested, nothing
        axes.legend(ncols=3, loc="upper left", borderaxespad=0.2)


def has_error(recording: Recording, which: int) -> bool:
    """Whether there is an error of position (0) or orientation (1): a platform has none where it cannot move."""
    return bool(recording.tally.error_max[which] >= _NOTHING)


def error(axes: Axes, recording: Recording, which: int, title: str) -> None:
    """The error of position (0) or orientation (1) along the whole run."""
    rows, highest = recording.rows, float(recording.tally.error_max[which])
    factor, unit = fine_unit(highest, "rad" if which else "m")
    titled(axes, title, y=unit)
    errors = factor * tracking_errors(rows)[which]
    rms = factor * float(recording.tally.rms(recording.tally.error_squares)[which])
    few = (rows.times[-1] - rows.times[0]) <= _FEW_CYCLES * recording.run.cycle_duration
    if few:
        axes.plot(*envelope(rows.times, errors), color=DONE, linewidth=0.9, label="error")
    else:
        x, middle, top = rms_and_max(rows.times, errors, min(240, len(rows)))
        axes.fill_between(x, top, color=DONE, alpha=0.25, linewidth=0.0, label="highest")
        axes.plot(x, middle, color=DONE, linewidth=1.1, label="RMS")
    axes.axhline(rms, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), label=f"RMS of the run {rms:.3g} {unit}")
    axes.set_ylim(bottom=0.0)
    axes.set_ylim(top=axes.get_ylim()[1] * 1.22)
    axes.legend(ncols=3, loc="upper left")


def fine_unit(value: float, unit: str) -> tuple[float, str]:
    """The factor from m or rad to a unit in which a value is readable, and that unit."""
    return (1e6, f"µ{unit}") if value < 1e-4 else (1e3, f"m{unit}")


def actuators(axes: Axes, times: Array, values: Array, use: Use, words: tuple[str, str]) -> None:
    """Efforts or speeds (n, n_actuated) against times (n,) [s] with their limits, held from one time to the next. Of
    actuators of different units, as shares of the limits. `words` are title and quantity.
    """
    title, what = words
    values, use = values * [in_degrees(unit)[0] for unit in use.units], use.in_degrees()
    scale = _scale(use)
    for k, look in enumerate(line_styles(values * scale)):
        x, y = _steps(times, values[:, k] * scale[k])
        axes.plot(x, y, color=colour(k), **look)
    unit = "% of the limit" if scale[0] != 1.0 else " or ".join(sorted(set(use.units)))
    limits = np.unique((use.limit * scale)[np.isfinite(use.limit)])
    highest = float(np.abs(values * scale).max()) if values.size else 0.0
    shown = [limit for limit in limits if limit <= 2.0 * highest]
    for end in np.unique(use.ends * scale) if shown else ():
        if abs(end) <= max(shown):
            axes.axhline(end, color=BAD, linewidth=0.9, linestyle=(0, (5, 3)))
    if shown:
        room = 1.12 * max(shown)
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, -room), max(high, room))
    elif len(limits):
        title += f"; limit {limits[0]:.4g}" + (f" to {limits[-1]:.4g} {unit}" if len(limits) > 1 else f" {unit}")
    titled(axes, title, y=f"{what} [{unit}]")


def _scale(use: Use) -> Array:
    mixed = len(set(use.units)) > 1 and np.isfinite(use.limit).all()
    return 100.0 / use.limit if mixed else np.ones(len(use.limit))


def line_styles(curves: Array) -> list[dict[str, Any]]:
    """Keywords of `Axes.plot` for each of the curves (k, n), so that all are seen where they coincide. Identical limbs
    do the same. The first of such curves is drawn through, and the others leave gaps over it, each in another place;
    where they are many, the first are wider, too.
    """
    n = curves.shape[1]
    near = _COINCIDE * max(float(np.ptp(curves)), 1e-12) if curves.size else 0.0
    steps = np.abs(np.diff(curves, axis=0)) + 1e-6 * near  # what counts is where a curve goes, not where it rests
    styles = []
    for k in range(n):
        close = np.abs(curves[1:] - curves[1:, [k]]) < near
        weight = steps[:, k]
        with_it = np.flatnonzero((close * weight[:, None]).sum(axis=0) > _OFTEN * max(float(weight.sum()), 1e-12))
        many, place = max(len(with_it), 1), int((with_it < k).sum())
        width = _THIN + (_WIDER * (many - 1 - place) if many > _MOST_DASHED else 0.0)
        style: dict[str, Any] = {"linewidth": width}
        if place:
            parts = min(many, _MOST_DASHED)
            dash = _DASH / width
            style["linestyle"] = (-(place % parts) * dash, (dash, (parts - 1) * dash))
        styles.append(style)
    return styles


def marks(axes: Axes, recording: Recording) -> None:
    """Mark the instants at which outputs were set, as far as the axes show them."""
    begin, end = axes.get_xlim()
    seen = [mark for mark in recording.marks if begin <= mark.time <= end]
    for mark in seen[:_MOST_MARKS]:
        axes.axvline(mark.time, color=WARNING, linewidth=0.6, linestyle=(0, (1, 2)))
        text = f" {mark.name} {mark.value:g}"
        axes.text(mark.time, 0.0, text, rotation=90, fontsize=5, color=WARNING, transform=axes.get_xaxis_transform())


def saturations(axes: Axes, rows: Rows, use: Use) -> None:
    """Mark the efforts that were cut to their limits."""
    scale, saturated = _scale(use), rows.saturated
    for k in np.flatnonzero(saturated.any(axis=0)):
        at = saturated[:, k]
        axes.plot(rows.times[at], rows.efforts[at, k] * scale[k], ".", color=BAD, markersize=4.0, zorder=5)
    if saturated.any():
        axes.plot([], [], ".", color=BAD, markersize=6.0, label="at the limit")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.14 * (high - low))  # clear of the line of the limit
        axes.legend(loc="upper right", borderaxespad=0.2)


def held_back(axes: Axes, rows: Rows, report: Report) -> None:
    """Mark where drives that take positions, and report no efforts, were held back by limits of their motion."""
    title = "Held back (drives tell of no efforts)"
    if not rows.saturated.any():
        earlier = " in these cycles" if report.saturated_periods.any() else ""
        _nothing_to_draw(axes, title, f"No drive was held back by its limits of speed or acceleration{earlier}.")
        return
    for k in range(len(report.actuated_names)):
        at = rows.saturated[:, k]
        axes.plot(rows.times[at], np.full(int(at.sum()), k), "|", color=colour(k), markersize=9.0)
    axes.set_ylim(len(report.actuated_names) - 0.5, -0.5)
    _name_rows(axes, report.actuated_names)
    titled(axes, title, y="")


def use_of_limits(axes: Axes, report: Report) -> None:
    """Peak and RMS of efforts and speeds as shares of the limits, one row per actuator."""
    n = len(report.actuated_names)
    y = np.arange(n, dtype=np.float64)
    for k, (use, name) in enumerate(((report.effort, "effort"), (report.speed, "speed"))):
        if k == 0 and not report.has_efforts:
            continue
        place = y + (-0.2 if k == 0 else 0.2)
        colours = [colour(i) if k == 0 else SOFT for i in range(n)]
        axes.barh(place, 100.0 * use.peak_share, height=0.34, color=colours, alpha=0.35)
        axes.barh(place, 100.0 * use.rms_share, height=0.34, color=colours)
        for i in range(n):
            share = 100.0 * use.peak_share[i]
            text = f"{name} {share:.0f} %" if np.isfinite(use.limit[i]) else f"{name}: no limit"
            size = 6.0 if n <= 6 else 5.0
            at = share + 1.5 if share < _CLEAR or share > 100.0 else 101.5  # clear of the line of the limit
            axes.text(at, place[i], text, va="center", fontsize=size, color=SOFT)
    axes.axvline(100.0, color=BAD, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
    _name_rows(axes, report.actuated_names)
    axes.invert_yaxis()
    highest = 100.0 * float(max(report.effort.peak_share.max(), report.speed.peak_share.max()))
    axes.set_xlim(0.0, max(122.0, highest + 22.0))
    titled(axes, "Use of the limits: RMS dark, peak light", "% of the limit")


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    n, longest = len(names), max(len(name) for name in names)
    axes.set_yticks(np.arange(n), names, fontsize=min(7.0 if n <= 6 else 6.0, 75.0 / longest))
    for k, label in enumerate(axes.get_yticklabels()):
        label.set_color(colour(k))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _nothing_to_draw(axes: Axes, title: str, why: str) -> None:
    titled(axes, title, "")
    axes.text(0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes, color=SOFT)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)


def margins(axes: Axes, report: Report) -> None:
    """The margins to singularities and to joint limits along the motion."""
    found = report.margins
    title = "Margins (0: singular, or a joint at its end)"
    if found is None:
        _nothing_to_draw(axes, title, "not computed")
        return
    titled(axes, title, y="share")
    drawn = (
        (found.type1, _XYZ[2], "type 1 / home", "-"),
        (found.type2, _ACTUATORS[3], "type 2 / home", (0, (3, 1.5))),
        (found.stop, _XYZ[1], f"joint range, {found.stop_joint}", "-"),
    )
    highest = 1.0
    for values, line, label, dashes in drawn:
        if np.isfinite(values).any():
            finite = np.where(np.isfinite(values), values, np.nan)
            axes.plot(found.times, finite, color=line, linewidth=1.2, linestyle=dashes, label=label)
            highest = max(highest, float(values[np.isfinite(values)].max()))
    axes.axhline(0.0, color=BAD, linewidth=1.0)
    axes.set_ylim(min(0.0, axes.get_ylim()[0]) - 0.03 * highest, 1.2 * highest)
    characters = sum(len(label) for values, _, label, _ in drawn if np.isfinite(values).any())
    axes.legend(loc="upper left", ncols=3, fontsize=min(6.0, 6.0 * 46.0 / max(characters, 1)), borderaxespad=0.2)


def _steps(times: Array, values: Array) -> tuple[Array, Array]:
    if len(times) > 3000:
        return envelope(times, values)
    return np.repeat(times, 2)[1:], np.repeat(values, 2)[:-1]


def rotated(rows: Rows) -> tuple[Array, Array]:
    """Rotation [deg] from the first reference, as asked and as measured, (n, 3) each."""
    start = rows.reference[0]
    return np.degrees(rotation_vectors(rows.reference, start)), np.degrees(rotation_vectors(rows.measured, start))
