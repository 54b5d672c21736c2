# SPDX-License-Identifier: Apache-2.0
"""Where the report of a run goes: the terminal, a picture and a table."""

from __future__ import annotations

from pathlib import Path

from pkm_control.report.recording import Recording
from pkm_control.report.report import Report
from pkm_control.report.report_plot import plot


def publish_report(recording: Recording, report: Report, directory: Path | None, name: str) -> None:
    """Print a report, and write the picture (PNG) and the table (CSV) of its recording into a directory.

    Args:
        recording: of the run.
        report: of the same.
        directory: made where it is missing; None: nothing is written.
        name: of the files.
    """
    print(f"\n{report}", flush=True)
    if directory is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    picture, table = directory / f"{name}.png", directory / f"{name}.csv"
    plot(recording, picture)
    recording.save(table)
    print(f"picture: {picture}\ntable:   {table}", flush=True)
