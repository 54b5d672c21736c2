# SPDX-License-Identifier: Apache-2.0
"""The page of a run's report in files, as PNG, PDF and one self-contained HTML file with every figure as a table.

Heavy, with matplotlib: import it late. As a program, it draws a recording and a report that it reads, pickled.
"""

from __future__ import annotations

import io
import pickle
import signal
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pkm_runtime.whole_files import whole, write_whole
from pkm_viewer.report.page_figure import page, style
from pkm_viewer.report.recording import Recording
from pkm_viewer.report.report import Report, Use

_CSS = Path(__file__).with_name("page.css")

_DOTS = 150  # per inch


def html(figure: Figure, report: Report) -> str:
    """The text of the HTML file."""
    drawn = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(drawn, format="svg", metadata=nothing)
    picture = drawn.getvalue()
    picture = picture[picture.index("<svg") :]
    name = escape(report.run.robot)
    faults = "".join(f'<p class="fault">The run ended early: {escape(fault)}</p>' for fault in report.faults)
    faults += "".join(f'<p class="remark">{escape(remark)}</p>' for remark in report.remarks())
    of_actuators = {f"{what} of {actuator}" for what in ("effort", "speed") for actuator in report.actuated_names}
    bad = {"fault": ' class="bad"'}
    figures = "".join(
        f"<tr><th>{escape(key)}</th><td{bad.get(key, '')}>{escape(value)}</td></tr>"
        for key, value in report.lines()
        if key not in of_actuators
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: what the run measured</title><style>{_CSS.read_text()}</style></head>\n<body><main>"
        f"<h1>{name}: what the run measured</h1>{faults}"
        f'<div class="sheet">{picture}</div>\n<section><h2>Figures</h2><table>{figures}</table>'
        f"<h2>Actuators</h2>{_actuators(report)}</section></main></body></html>\n"
    )


def _actuators(report: Report) -> str:
    use = ("RMS", "limit", "peak", "RMS")
    measured = report.has_efforts
    head = ("", *(("effort, peak", *use, "saturated") if measured else ("held back",)), "speed, peak", *use)
    cells = "".join(f'<th class="number">{escape(text)}</th>' for text in head)
    rows = []
    for i, name in enumerate(report.actuated_names):
        saturated = int(report.saturated_periods[i])
        effort, speed = _use(report.effort, i) if measured else [], _use(report.speed.in_degrees(), i)
        numbers = [*effort, f"{saturated} periods" if saturated else "no", *speed]
        made = "".join(
            f'<td class="number{" bad" if k == len(effort) and saturated else ""}">{escape(number)}</td>'
            for k, number in enumerate(numbers)
        )
        rows.append(f"<tr><th>{escape(name)}</th>{made}</tr>")
    return f'<div class="wide"><table><tr>{cells}</tr>{"".join(rows)}</table></div>'


def _use(use: Use, i: int) -> list[str]:
    limited = bool(np.isfinite(use.limit[i]))
    return [
        f"{use.peak[i]:.4g} {use.units[i]}",
        f"{use.rms[i]:.4g}",
        f"{use.limit[i]:.4g}" if limited else "none",
        f"{use.peak_share[i]:.1%}" if limited else "",
        f"{use.rms_share[i]:.1%}" if limited else "",
    ]


def write_page(recording: Recording, report: Report, files: Mapping[str, Path]) -> None:
    """Draw the page of a run and write it to the files "png", "pdf" and "html"."""
    with style():
        figure = page(recording, report)
        with whole(files["png"]) as part:
            figure.savefig(part, dpi=_DOTS)
        with whole(files["pdf"]) as part:
            title = f"{report.run.robot}: what a run measured"
            figure.savefig(part, metadata={"CreationDate": None, "Title": title})
        write_whole(files["html"], html(figure, report))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an exception, which removes the file that is being written
    try:
        write_page(*pickle.load(sys.stdin.buffer))
    except OSError as problem:
        sys.exit(f"the page of the report: {problem.strerror}")
