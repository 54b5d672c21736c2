# SPDX-License-Identifier: Apache-2.0
"""Output of a run's report: the terminal, a page as PNG, PDF and HTML, and a table."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pkm_control.control_errors import ReportError
from pkm_viewer.report.recording import Recording
from pkm_viewer.report.report import Report

_PACKAGES = str(Path(__file__).parents[2])


def publish_report(recording: Recording, report: Report, directory: Path | None) -> list[Path]:
    """Print a report, and write the page and the table (CSV) into a directory; return the files.

    Files are named after robot and motion; those of an earlier run of the same are replaced. The directory is made
    where it is missing; None: nothing is written. Raises `ReportError` where the page cannot be drawn; the table is
    there.
    """
    _say(f"\n{report}")
    if directory is None:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "_", f"{recording.run.robot}_{Path(recording.run.motion).stem}").lstrip(".")
    files = {kind: directory / f"{name}.{kind}" for kind in ("png", "pdf", "html", "csv")}
    recording.save(files["csv"])  # first: who cannot wait for the page has the numbers
    _say(f"table: {files['csv']}\nthe page of the report is being drawn ...")
    _draw(recording, report, files)
    _say(f"page:  {files['html']} (also .png, .pdf)")
    return list(files.values())


def _draw(recording: Recording, report: Report, files: Mapping[str, Path]) -> None:
    """Draw the page in another process: it takes a third more memory, which this one would not release.

    Terminal signals do not reach it: it ends when it is done, or with the process that waits for it.
    """
    with tempfile.TemporaryFile() as handed_over:
        pickle.dump((recording, report, dict(files)), handed_over, protocol=pickle.HIGHEST_PROTOCOL)
        handed_over.seek(0)
        command = [sys.executable, "-m", "pkm_viewer.report.page.write"]
        path = os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": path}  # the packages that this process has
        done = subprocess.run(command, stdin=handed_over, env=environment, start_new_session=True, check=False)
    if done.returncode:
        raise ReportError(done.returncode, str(files["csv"]))


def _say(text: str) -> None:
    """Print, unless the terminal was closed: the files are written then, too."""
    with contextlib.suppress(OSError):
        print(text, flush=True)
