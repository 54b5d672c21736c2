# SPDX-License-Identifier: Apache-2.0
"""Where the report of a run goes: the terminal, a picture and a table."""

from __future__ import annotations

from pathlib import Path

from pkm_control.report.recording import Recording
from pkm_control.report.report import Report
from pkm_control.report.report_plot import plot


def publish_report(recording: Recording, directory: Path) -> None:
    """Print the report of a recording, and write its picture (PNG) and its table (CSV) into a directory."""
    print(f"\n{Report.of(recording)}")
    directory.mkdir(parents=True, exist_ok=True)
    picture, table = directory / f"{recording.robot}.png", directory / f"{recording.robot}.csv"
    plot(recording, picture)
    recording.save(table)
    print(f"picture: {picture}\ntable:   {table}", flush=True)
