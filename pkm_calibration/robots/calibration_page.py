# SPDX-License-Identifier: Apache-2.0
"""A calibration as a page: what the corrections change, on the robot, and how well each parameter is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_analysis.drawing.report_page import write_report
from pkm_analysis.drawing.sheet import COLOURS, INK, grid, paint, sheet
from pkm_analysis.drawing.sheet import write as write_picture
from pkm_analysis.plottable import Table
from pkm_calibration.robots.calibration import EXPECTED, Calibration
from pkm_calibration.robots.calibration_words import as_numbers, in_words
from pkm_description.mechanism import Array
from pkm_description.picture import View, facets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 0.08  # of the picture: the longest arrow
MOST = 45  # parameters in the bar chart


class CalibrationPicture:
    """A calibration as a result of a report page."""

    def __init__(self, found: Calibration) -> None:
        self.found = found

    def __str__(self) -> str:
        """The heading and the sentences of the page."""
        return "calibration " + "\n".join(in_words(self.found))

    @property
    def tables(self) -> list[Table]:
        """Parameters with their intervals."""
        e = self.found.estimate
        rows = []
        for one, value, (low, high) in zip(self.found.parameters, e.values, e.interval95, strict=True):
            factor, unit = (1e3, "mm") if one.unit == "m" else (57.29577951308232, "deg")
            rows.append(
                [one.name, f"{factor * value:.4f} {unit}", f"{factor * low:.4f} to {factor * high:.4f} {unit}",
                 "no" if one.name in e.unidentified else "yes"]
            )  # fmt: skip
        return [Table("Errors of the drawing", ["parameter", "value", "95 % interval", "told apart"], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The numbers."""
        return as_numbers(self.found)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw it; written to a file if one is named."""
        figure = sheet(10.0, 6.0)
        robot, bars = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
        _on_robot(robot, self.found)
        _bars(bars, self.found)
        if path is not None:
            write_picture(figure, path)
        return figure


def _on_robot(axes: Axes, found: Calibration) -> None:
    """Measured points on the robot, with arrows to where the drawing and the corrected robot are, enlarged."""
    polygons, colours = facets(found.mechanism)
    points, before, after = found.arrows
    view = View(np.vstack([points, *polygons]) if polygons else points)
    if polygons:
        seen = [view.seen(polygon) for polygon in polygons]
        outlines = [one[:, :2] for one in seen]
        paint(axes, outlines, [(*c[:3], 0.35) for c in colours], [float(one[:, 2].mean()) for one in seen])
        axes.update_datalim(np.concatenate(outlines))
    if len(points):
        longest = max(float(np.linalg.norm(before, axis=1).max()), 1e-12)
        at = view.seen(points)[:, :2]
        size = float(np.ptp(at, axis=0).max()) + 1e-9
        factor = SHOWN * max(size, found.mechanism_size) / longest
        for arrows, colour, label in ((before, COLOURS[1], "as drawn"), (after, COLOURS[0], "corrected")):
            ends = view.seen(points + factor * arrows)[:, :2]
            _lines(axes, at, ends, colour, label)
        axes.update_datalim(at)
        axes.set_title(f"Errors at the measured points, {factor:.0f} times enlarged", fontsize=9, color=INK)
        axes.legend(fontsize=8, frameon=False, loc="lower left")
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()


def _lines(axes: Axes, starts: Array, ends: Array, colour: str, label: str) -> None:
    from matplotlib.collections import LineCollection

    segments = np.stack((starts, ends), axis=1)
    axes.add_collection(LineCollection(list(segments), colors=colour, linewidths=1.4, label=label, zorder=5))
    axes.scatter(ends[:, 0], ends[:, 1], s=4, color=colour, zorder=5)


def _bars(axes: Axes, found: Calibration) -> None:
    """Parameters with their intervals, in units of the error that is expected of each."""
    e = found.estimate
    scale = np.array([EXPECTED[one.unit] for one in found.parameters])
    values, half = e.values / scale, 0.5 * (e.interval95[:, 1] - e.interval95[:, 0]) / scale
    order = np.argsort(-np.abs(values))[:MOST][::-1]
    rows = np.arange(len(order))
    unknown = np.array([e.names[k] in e.unidentified for k in order])
    for there, colour in ((unknown, COLOURS[9]), (~unknown, COLOURS[0])):
        at = order[there]
        axes.errorbar(values[at], rows[there], xerr=half[at], fmt="o", markersize=3, color=colour, elinewidth=1.2)
    axes.axvline(0.0, color=INK, linewidth=0.6)
    axes.set_yticks(rows, [e.names[k] for k in order], fontsize=6)
    axes.set_xlabel("error of the drawing [mm, or 5 mrad]; grey: not told apart", fontsize=8)
    grid(axes)


def write_page(path: Path, found: Calibration, numbers: str) -> None:
    """Write the page."""
    result = CalibrationPicture(found)
    write_report(path, f"Calibration of {found.mechanism.name}", [result], [result.plot()], list(found.notes), numbers)
