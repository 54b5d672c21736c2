# SPDX-License-Identifier: Apache-2.0
"""Calibrations of printers and robots in words, as settings to be pasted, and as pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkm_analysis.drawing.report_page import write_report
from pkm_analysis.drawing.sheet import COLOURS, INK, grid, paint, sheet
from pkm_analysis.drawing.sheet import write as write_picture
from pkm_analysis.plottable import Table
from pkm_calibration.calibration import Calibration
from pkm_calibration.measured_robot import EXPECTED
from pkm_calibration.printer_calibration import Calibrated, printer_numbers
from pkm_description.mechanism import Array
from pkm_description.picture import View, facets, held

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def printer_words(found: Calibrated) -> list[str]:
    """The answer for people: results first."""
    count = len(found.printer.measured.names)
    lines = [f"{found.printer.source}: {'refused' if found.reasons else 'calibrated'} by {count} measurements"]
    lines += [f"  {reason}" for reason in found.reasons]
    if found.bed is not None:
        error, unsure = found.bed[1], found.bed[2]
        lines.append(f"  measurement error {found.rms[0]:.3f} mm before, {found.rms[1]:.3f} mm after (rms)")
        lines.append(
            f"  height of the nozzle at z = 0, over the bed: {np.nanmin(error):+.3f} to {np.nanmax(error):+.3f} mm "
            f"before; after, 0 within {np.nanmax(unsure):.3f} mm (95 %)"
        )
    lines += [f"  {note}" for note in found.notes]
    if found.outliers:
        places = ", ".join(f"{name} (line {found.printer.measured.lines.get(name, 0)})" for name in found.outliers)
        lines.append(f"  left out as inconsistent: {places}; measure again")
    if found.bed is None:
        return lines
    lines.append("  settings with 95 % intervals:")
    width = max(map(len, found.parameters))
    before, intervals = found.settings, found.intervals()
    for name, value in found.parameters.items():
        unit = "deg" if name.endswith(("angle", "M665.X", "M665.Y", "M665.Z")) else "mm"
        old, half = before[name], intervals[name][1] - value
        if name in found.unidentified:
            lines.append(
                f"    {name:<{width}}  {value:12.4f} {unit:<3}  held: not identifiable from these measurements"
            )
        else:
            known = f"± {half:.4f}" if half > 0.0 else "by the firmware's rule"
            lines.append(f"    {name:<{width}}  {value:12.4f} {unit:<3}  {known}, was {old:.4f}")
    if len(found.unidentified) > 1:
        lines.append("  intervals include errors of the held parameters (--json also has them for exact ones)")
    if found.printer.pasted and not found.reasons:
        lines += ["  to send or paste:", *(f"    {line}" for line in found.printer.pasted(found.parameters))]
    return lines


def settings_text(found: Calibrated) -> str:
    """Settings to be pasted into printer.cfg, or sent to the printer."""
    if found.printer.pasted:
        return "\n".join(found.printer.pasted(found.parameters)) + "\n"
    lines = [
        f"# Calibrated by pkm calibrate from {len(found.printer.measured.names)} measurements, "
        f"rms {found.rms[0]:.3f} -> {found.rms[1]:.3f} mm.",
        "# Replace the same settings with these; above the block of SAVE_CONFIG they override its settings.",
    ]
    sections = dict.fromkeys(name.split(".")[0] for name in found.parameters)
    for section in sections:
        lines += ["", f"[{section}]"]
        lines += [f"{n.split('.')[1]}: {v:.6f}" for n, v in found.parameters.items() if n.split(".")[0] == section]
    return "\n".join(lines) + "\n"


class _Page(NamedTuple):
    words: list[str]
    tables: list[Table]
    numbers: dict[str, Any]
    figure: Figure

    def __str__(self) -> str:
        return "calibration " + "\n".join(self.words)

    def to_dict(self) -> dict[str, Any]:
        return self.numbers

    def plot(self, path: str | Path | None = None) -> Figure:
        if path is not None:
            write_picture(self.figure, path)
        return self.figure


def _printer_tables(found: Calibrated) -> list[Table]:
    intervals = found.intervals()
    rows = [
        [
            name,
            f"{value:.4f}",
            f"{intervals[name][0]:.4f} to {intervals[name][1]:.4f}",
            "no, held" if name in found.unidentified else "yes",
        ]
        for name, value in found.parameters.items()
    ]
    residuals = zip(found.printer.measured.names, *found.residuals, strict=True)
    errors = [[name, f"{a:+.4f}", f"{b:+.4f}", "left out" * (name in found.outliers)] for name, a, b in residuals]
    return [
        Table("Settings, mm and degrees", ["setting", "value", "95 % interval", "told by the data"], rows),
        Table("Measurements, predicted less measured [mm]", ["measurement", "before", "after", ""], errors),
    ]


def _bed_picture(found: Calibrated) -> Figure:
    figure = sheet(10.0, 4.6)
    if found.bed is not None:
        points, error, unsure = found.bed
        titles = ("height of the nozzle at z = 0, before [mm]", "what is not known of it after [mm, 95 %]")
        for axes, values, title in zip(figure.subplots(1, 2), (error, unsure), titles, strict=True):
            most = max(float(np.nanmax(np.abs(values))), 1e-3)
            low, colours = (-most, "RdBu_r") if values is error else (0.0, "viridis")
            drawn = axes.scatter(*points.T, c=values, s=14, marker="s", vmin=low, vmax=most, cmap=colours)
            figure.colorbar(drawn, ax=axes, shrink=0.85)
            axes.set_title(title, fontsize=9, color=INK)
            axes.set_xlabel("x [mm]")
            axes.set_ylabel("y [mm]")
            axes.set_aspect("equal")
            grid(axes)
    return figure


def write_printer_page(path: Path, found: Calibrated, numbers: str) -> None:
    """Write the page."""
    words, caution = printer_words(found), "; ".join((*found.reasons, *found.notes))
    values = printer_numbers(found) | ({"caution": caution} if caution else {})
    page = _Page(words, _printer_tables(found), values, _bed_picture(found))
    write_report(path, f"Calibration of {found.printer.source}", [page], [page.figure], words, numbers)


def as_numbers(found: Calibration) -> dict[str, Any]:
    """The answer for JSON, in m and rad."""
    e = found.estimate
    interval = {name: row.tolist() for name, row in zip(e.names, e.interval95, strict=True)}
    return {
        "robot": found.mechanism.name,
        "verdict": "refused" if found.refused else "accepted",
        "reasons": list(found.refused),
        "parameters": found.values,
        "interval95": interval,
        "units": {one.name: one.unit for one in found.parameters},
        "rank": e.rank,
        "unidentified": [*e.unidentified, *(name for name in found.hidden if name not in e.unidentified)],
        "unseen": list(e.unseen),
        "outliers": [f"line {line}" for line in e.outliers],
        "noise": e.noise,
        "rms_before": dict(found.before),
        "rms_after": dict(found.after),
        "rms_kept": dict(found.kept),
        "frame": found.frame.tolist(),
        "notes": list(found.notes),
        "displacements": [
            {"element": one.element, "place": one.place, "twist": one.twist.tolist()} for one in found.displacements
        ],
    }


def in_words(found: Calibration) -> list[str]:
    """The answer for people: results first."""
    e, n = found.estimate, len(found.measured)
    lines = [f"{found.mechanism.name}: {'refused' if found.refused else 'calibrated'} by {n} poses"]
    lines += [f"  {reason}" for reason in found.refused]
    lines.append("  errors are root mean squares of single numbers, such as x; distances are larger:")
    for kind, after in found.after.items():
        unit = "rad" if _turns(found, kind) else "m"
        kept = f", {shown(found.kept[kind], unit)} on the poses kept aside" if kind in found.kept else ""
        lines.append(
            f"  error of {kind}: {shown(found.before[kind], unit)} as drawn, {shown(after, unit)} corrected{kept}"
        )
    lines += [f"  {note}" for note in found.notes]
    if e.outliers:
        lines.append(f"  left out as inconsistent: line {', '.join(map(str, e.outliers))}")
    lines.append(f"  {e.rank} of {len(e.names)} directions are identified; errors of the drawing, with 95 % intervals:")
    width = max(map(len, e.names))
    for one, value, (low, high) in zip(found.parameters, e.values, e.interval95, strict=True):
        mark = "  not told apart" if one.name in e.unidentified else ""
        half = 0.5 * (high - low)
        lines.append(f"    {one.name:<{width}}  {_with_half(value, half, one.unit)}{mark}")
    if e.unseen:
        lines.append("  without effect on the measurements, these stay as drawn:")
        lines += [f"    {one}" for one in e.unseen[:6]]
        if len(e.unseen) > 6:
            lines.append(f"    and {len(e.unseen) - 6} more (--json has all)")
    return lines


def _turns(found: Calibration, kind: str) -> bool:
    if kind in ("position", "distance"):
        return False
    joint = found.mechanism.joint_named.get(kind)
    return joint is None or joint.unit == "rad"


def shown(value: float, unit: str) -> str:
    """A size in mm, deg, or percent."""
    factor, name = _shown_in(unit)
    return f"{factor * value:.3g} {name}"


def _shown_in(unit: str) -> tuple[float, str]:
    return {"m": (1e3, "mm"), "rad": (57.29577951308232, "deg"), "1": (100.0, "%")}[unit]


def _with_half(value: float, half: float, unit: str) -> str:
    factor, name = _shown_in(unit)
    return f"{factor * value:+9.4f} ± {factor * half:.4f} {name}"


SHOWN = 0.08  # of the picture: the longest arrow
MOST = 45  # parameters in the bar chart
PAIRS = 30  # of parameters, in the table of correlations


def _parameter_table(found: Calibration) -> Table:
    e, rows = found.estimate, []
    for one, value, (low, high) in zip(found.parameters, e.values, e.interval95, strict=True):
        factor, unit = _shown_in(one.unit)
        interval = f"{factor * low:.4f} to {factor * high:.4f} {unit}"
        rows.append([one.name, f"{factor * value:.4f} {unit}", interval, "no" if one.name in e.unidentified else "yes"])
    return Table("Errors of the drawing", ["parameter", "value", "95 % interval", "told apart"], rows)


def _correlations(found: Calibration) -> Table:
    names, R = found.estimate.names, found.estimate.correlations
    one, other = np.triu_indices(len(R), 1)
    strongest = np.argsort(-np.abs(R[one, other]), kind="stable")[:PAIRS]
    rows = [[names[one[k]], names[other[k]], f"{R[one[k], other[k]]:+.4f}"] for k in strongest]
    return Table("Strongest correlations", ["parameter", "parameter", "correlation"], rows)


def _on_robot(axes: Axes, found: Calibration) -> None:
    """Measured points on the robot, with arrows to where the drawing and the corrected robot are, enlarged."""
    polygons, colours = facets(found.mechanism)
    points, before, after = found.arrows
    view = View(np.vstack([points, held(found.mechanism)]))  # perhaps without visuals, or without points
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
    axes.set_xlabel("error of the drawing [mm, 5 mrad, or 0.1 %]; grey: not told apart", fontsize=8)
    grid(axes)


def write_page(path: Path, found: Calibration, numbers: str) -> None:
    """Write the page."""
    figure = sheet(10.0, 6.0)
    robot, bars = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    _on_robot(robot, found)
    _bars(bars, found)
    page = _Page(in_words(found), [_parameter_table(found), _correlations(found)], as_numbers(found), figure)
    write_report(path, f"Calibration of {found.mechanism.name}", [page], [figure], list(found.notes), numbers)
