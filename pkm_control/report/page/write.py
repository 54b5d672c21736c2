# SPDX-License-Identifier: Apache-2.0
"""Writes the page into files; as a program, of a recording and a report that it reads, pickled."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

from pkm_control.report.page.figure import page, style
from pkm_control.report.page.html import html
from pkm_control.report.recording import Recording
from pkm_control.report.report import Report

_DOTS = 150  # per inch


def write_page(recording: Recording, report: Report, files: Mapping[str, Path]) -> None:
    """Draw the page of a run and write it.

    Args:
        recording: of the run.
        report: its figures.
        files: by "png", "pdf" and "html".
    """
    with style():
        figure = page(recording, report)
        figure.savefig(files["png"], dpi=_DOTS)
        figure.savefig(
            files["pdf"], metadata={"CreationDate": None, "Title": f"{report.run.robot}: what a run measured"}
        )
        files["html"].write_text(html(figure, report), encoding="utf-8")


if __name__ == "__main__":
    write_page(*pickle.load(sys.stdin.buffer))
