# SPDX-License-Identifier: Apache-2.0
"""Where the report of a run goes: the terminal, a page as PNG, PDF and HTML, and a table."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path

from pkm_control.report.recording import Recording
from pkm_control.report.report import Report


def publish_report(recording: Recording, report: Report, directory: Path | None, name: str) -> list[Path]:
    """Print a report, and write the page and the table (CSV) of its recording into a directory.

    Args:
        recording: of the run.
        report: of the same.
        directory: made where it is missing; None: nothing is written.
        name: of the files, without ending.

    Returns:
        The files that were written.
    """
    _say(f"\n{report}")
    if directory is None:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    files = {kind: directory / f"{name}.{kind}" for kind in ("png", "pdf", "html", "csv")}
    recording.save(files["csv"])  # first: who cannot wait for the page has the numbers
    _say(f"table: {files['csv']}\nthe page of the report is being drawn ...")
    importlib.import_module("pkm_control.report.page.write").write_page(recording, report, files)  # matplotlib, late
    _say(f"page:  {files['html']} (also .png, .pdf)")
    return list(files.values())


def _say(text: str) -> None:
    """Print, if somebody still reads: the files are written when a terminal was closed, too."""
    with contextlib.suppress(OSError):
        print(text, flush=True)
