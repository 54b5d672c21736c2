# SPDX-License-Identifier: Apache-2.0
"""The whole page: a sheet of A4 with key figures on top and eight panels below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import FancyBboxPatch, Rectangle

from pkm_viewer.report import page_panels as panels
from pkm_viewer.report.page_panels import BAD, INK, SOFT, WARNING, moves, turns
from pkm_viewer.report.recording import Recording, Rows
from pkm_viewer.report.report import Report

_A4 = (8.27, 11.69)  # inches
_CYCLES = 2.0  # that are drawn against time, at the end of the run
_STYLE = Path(__file__).with_name("page.mplstyle")


@contextmanager
def style() -> Iterator[None]:
    """The look of the page, for drawing and for writing."""
    with rc_context(fname=_STYLE):
        yield


def page(recording: Recording, report: Report) -> Figure:
    """The page of a run; call it, and save what it returns, within `style`."""
    figure = Figure(figsize=_A4)
    FigureCanvasAgg(figure)
    top = _head(figure, report)
    grid = figure.add_gridspec(4, 2, left=0.10, right=0.965, bottom=0.075, top=top, hspace=0.46, wspace=0.24)
    axes = {i: [figure.add_subplot(grid[i, k]) for k in range(2)] for i in (0, 2, 3)}
    shown = _last_cycles(recording)
    _place(figure, axes[0], shown)
    _errors(figure, grid, recording)
    when = "last cycles" if shown.times[0] > recording.rows.times[0] + 1e-9 else "whole run"
    if report.has_efforts:
        panels.actuators(axes[2][0], shown.times, shown.efforts, report.effort, (f"Efforts, {when}", "effort"))
        panels.saturations(axes[2][0], shown, report.effort)
    else:
        panels.held_back(axes[2][0], shown, report)
    panels.actuators(axes[2][1], shown.times, shown.velocities, report.speed, (f"Speeds, {when}", "speed"))
    panels.use_of_limits(axes[3][0], report)
    panels.margins(axes[3][1], report)
    for k in (0, 1):
        axes[2][k].set_xlim(shown.times[0], max(shown.times[-1], shown.times[0] + 1e-3))
        panels.marks(axes[2][k], recording)
    _foot(figure, recording, report)
    return figure


def _errors(figure: Figure, grid: GridSpec, recording: Recording) -> None:
    titles = ("Position error of the platform", "Orientation error of the platform")
    drawn = [which for which in (0, 1) if panels.has_error(recording, which)] or [0]
    for which in drawn:
        place = grid[1, which] if len(drawn) == 2 else grid[1, :]
        panels.error(figure.add_subplot(place), recording, which, titles[which])


def _last_cycles(recording: Recording) -> Rows:
    rows = recording.recent
    begin = rows.times[-1] - _CYCLES * recording.run.cycle_duration - 1e-9
    return Rows(rows.table[int(np.searchsorted(rows.times, begin)) :])


def _place(figure: Figure, axes: list, rows: Rows) -> None:
    names, wanted = "xyz", rows.reference
    turning, moving = turns(wanted), moves(wanted)
    places = 1e3 * wanted[:, :3], 1e3 * rows.measured[:, :3]
    about = ("rotation about x", "about y", "about z")
    if moving or not turning:
        panels.path(figure, axes[0], *places, ("Path of the platform", "mm", names))
    else:
        panels.path(figure, axes[0], *panels.rotated(rows), ("Rotation of the platform", "deg", about))
    if turning:
        title = "Orientation: rotation vector from the start"
        panels.components(axes[1], rows, *panels.rotated(rows), (title, "deg", about))
    else:
        start = places[0][0]
        title = "Position from the start of the cycle"
        panels.components(axes[1], rows, places[0] - start, places[1] - start, (title, "mm", names))


def _in_lines(notes: Sequence[str], width: int = 130, lines: int = 3) -> list[str]:
    for kept in range(len(notes), 0, -1):
        left = len(notes) - kept
        rest = [f"{left} more in the table of figures"] if left else []
        wrapped = textwrap.wrap("  ·  ".join([*notes[:kept], *rest]), width)
        if len(wrapped) <= lines:
            return wrapped
    return textwrap.wrap("  ·  ".join(notes), width, max_lines=lines, placeholder=" ... (all in the table of figures)")


def _head(figure: Figure, report: Report) -> float:
    """Name, conditions, key figures, and in red why the run ended early; returns where the panels begin."""
    run = report.run
    figure.text(0.06, 0.963, run.robot, fontsize=20, fontweight="bold", color=INK, va="center")
    rate = f"{report.loop.rate:.0f} Hz of {run.rate:.0f} Hz" if report.loop and report.slow else f"{run.rate:.0f} Hz"
    done = f"{report.count_line()} cycles in {report.duration:.1f} s at {rate}"
    done += f"  ·  {run.date}" if run.date else ""
    figure.text(0.965, 0.97, run.motion, fontsize=10, color=INK, ha="right", va="center")
    figure.text(0.965, 0.955, done, fontsize=8, color=SOFT, ha="right", va="center")
    notes = _in_lines(run.notes)
    y = 0.938
    for line in notes:
        figure.text(0.06, y, line, fontsize=7.5, color=SOFT, va="center")
        y -= 0.013
    tiles = _tiles(report)
    width, height, gap = (0.905 - 4 * 0.014) / 5, 0.052, 0.014
    y -= height - 0.004
    for k, (value, unit, name, alarming) in enumerate(tiles):
        x = 0.06 + k * (width + gap)
        shape = FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.006",
            transform=figure.transFigure,
            facecolor="#fbe9ea" if alarming else "#f3f6f9",
            edgecolor="none",
        )
        figure.add_artist(shape)
        colour = BAD if alarming else INK
        drawn = figure.text(x + 0.012, y + 0.031, value, fontsize=14, fontweight="bold", color=colour, va="center")
        figure.text(x + width - 0.010, y + 0.031, unit, fontsize=7.5, color=SOFT, va="center", ha="right")
        size = min(6.8, 6.8 * 25.0 / len(name))  # no wider than the tile
        figure.text(x + 0.012, y + 0.011, name, fontsize=size, color=SOFT, va="center")
        drawn.set_in_layout(False)
    for fault in report.faults[:2]:
        y = _box(figure, y, f"The run ended early: {fault}", (BAD, "#fbe9ea"), bold=True)
    for remark in report.remarks():
        y = _box(figure, y, remark, (WARNING, "#fdf3e1"))
    return y - 0.038


def _box(figure: Figure, y: float, text: str, colours: tuple[str, str], bold: bool = False) -> float:
    """Put sentences below y, on a ground of the second colour; returns the lower edge."""
    lines = textwrap.wrap(text, 112 if bold else 120)[:3]
    tall = 0.012 + 0.0135 * len(lines)
    y -= tall + 0.008
    colour, ground = colours
    box = Rectangle((0.06, y), 0.905, tall, transform=figure.transFigure, facecolor=ground, edgecolor=colour)
    box.set_linewidth(0.8)
    figure.add_artist(box)
    weight = "bold" if bold else "normal"
    middle = y + 0.5 * tall
    words = "\n".join(lines)
    figure.text(0.072, middle, words, fontsize=8, color=colour, va="center", fontweight=weight, linespacing=1.4)
    return y


def _tiles(report: Report) -> list[tuple[str, str, str, bool]]:
    reached = f"{report.cycles_per_minute:.1f}" if report.cycles_done else "–"
    effort, speed = float(report.effort.peak_share.max()), float(report.speed.peak_share.max())
    saturated = bool(report.saturated_periods.any())
    drives = (f"{100 * effort:.0f} %", "of limit", "highest effort" + (", saturated" if saturated else ""), saturated)
    if not report.has_efforts:
        held = int(report.saturated_periods.max())
        drives = (f"{held}", "periods", "held back by their limits", saturated)
    return [
        (reached, f"plan {report.planned_per_minute:.1f}", "cycles per minute", report.cycles_done < report.run.cycles),
        _error_tile("position error", "m", report.position_max, report.position_rms),
        _error_tile("orientation error", "rad", report.attitude_max, report.attitude_rms),
        drives,
        (f"{100 * speed:.0f} %", "of limit", "highest speed", speed > 1.0),
    ]


def _error_tile(name: str, unit: str, highest: float, rms: float) -> tuple[str, str, str, bool]:
    factor, unit = panels.fine_unit(highest, unit)
    value, mean = (f"{factor * one:.3g}" if highest > 1e-9 else "0" for one in (highest, rms))
    return value, f"{unit} max", f"{name}, RMS {mean}", False


def _foot(figure: Figure, recording: Recording, report: Report) -> None:
    line = f"Loop: {report.loop_line()}"
    kept = f"  ·  curves of the whole run: one period in {recording.every}" if recording.every > 1 else ""
    figure.text(0.06, 0.028, line + kept, fontsize=7, color=SOFT, va="center")
