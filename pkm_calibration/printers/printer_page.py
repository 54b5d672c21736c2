# SPDX-License-Identifier: Apache-2.0
"""A printer's calibration as a page: the bed before and after, and the settings with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_analysis.drawing.report_page import write_report
from pkm_analysis.drawing.sheet import INK, grid, sheet
from pkm_analysis.drawing.sheet import write as write_picture
from pkm_analysis.plottable import Table
from pkm_calibration.printers.printer_calibration import Calibrated, as_numbers
from pkm_calibration.printers.printer_words import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PrinterPicture:
    """A calibration as a result of a report page."""

    def __init__(self, found: Calibrated) -> None:
        self.found = found

    def __str__(self) -> str:
        """The heading and the sentences of the page."""
        return "calibration " + "\n".join(in_words(self.found))

    @property
    def tables(self) -> list[Table]:
        """Settings with their intervals, and every measurement."""
        found = self.found
        intervals = found.intervals()
        rows = [
            [name, f"{value:.4f}", f"{intervals[name][0]:.4f} to {intervals[name][1]:.4f}", self._told(name)]
            for name, value in found.parameters.items()
        ]
        residuals = zip(found.printer.measured.names, *found.residuals, strict=True)
        errors = [[name, f"{a:+.4f}", f"{b:+.4f}", "left out" * (name in found.outliers)] for name, a, b in residuals]
        return [
            Table("Settings, mm and degrees", ["setting", "value", "95 % interval", "told by the data"], rows),
            Table("Measurements, predicted less measured [mm]", ["measurement", "before", "after", ""], errors),
        ]

    def _told(self, name: str) -> str:
        return "no, held" if name in self.found.unidentified else "yes"

    def to_dict(self) -> dict[str, Any]:
        """The numbers."""
        words = "; ".join((*self.found.reasons, *self.found.notes))
        return as_numbers(self.found) | ({"caution": words} if words else {})

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the bed; written to a file if one is named."""
        figure = sheet(10.0, 4.6)
        if self.found.bed is not None:
            points, error, unsure = self.found.bed
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
        if path is not None:
            write_picture(figure, path)
        return figure


def write_page(path: Path, found: Calibrated, numbers: str) -> None:
    """Write the page."""
    picture = PrinterPicture(found)
    write_report(path, f"Calibration of {found.printer.source}", [picture], [picture.plot()], in_words(found), numbers)
