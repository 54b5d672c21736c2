# SPDX-License-Identifier: Apache-2.0
"""Writes the page into files; as a program, of a recording and a report that it reads, pickled."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

from pkm_runtime.whole_files import whole, write_whole
from pkm_viewer.report.page.figure import page, style
from pkm_viewer.report.page.html import html
from pkm_viewer.report.recording import Recording
from pkm_viewer.report.report import Report

_DOTS = 150  # per inch


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
    try:
        write_page(*pickle.load(sys.stdin.buffer))
    except OSError as problem:
        sys.exit(f"the page of the report: {problem.strerror}")
