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
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pkm_control.control_errors import ReportError
from pkm_viewer.report.recording import Recording
from pkm_viewer.report.report import Report

_LOOK = 0.05  # s, between two looks whether it is given up
_LONGEST = 100  # bytes of a name, of which systems of files take 255
_LAST_WORD = 5.0  # s, for its end without a part of a file left
_PACKAGES = str(Path(__file__).parents[2])


def publish_report(
    recording: Recording, report: Report, directory: Path | None, given_up: Callable[[], bool] = lambda: False
) -> list[Path]:
    """Print a report, and write the page and the table (CSV) into a directory; return the files. Files are named after
    robot and motion; those of an earlier run of the same are replaced. The directory is made where it is missing; None:
    nothing is written. Raises `ReportError` where table or page cannot be written. Without the page, as where that is
    `given_up`, which is asked while it is drawn, the table is there.
    """
    _say(f"\n{report}")
    if directory is None:
        return []
    both = recording.run.robot, Path(recording.run.motion).stem
    parts = (part.encode()[:_LONGEST].decode(errors="ignore") for part in both)
    name = re.sub(r"[^\w.-]+", "_", "_".join(parts)).lstrip(".")
    files = {kind: directory / f"{name}.{kind}" for kind in ("png", "pdf", "html", "csv")}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        recording.save(files["csv"])  # first: who cannot wait for the page has the numbers
    except OSError as error:
        raise ReportError(f"the table cannot be written to {directory} ({error.strerror})") from error
    _say(f"table: {files['csv']}\nthe page of the report is being drawn ...")
    if not _draw(recording, report, files, given_up):
        _say("the page of the report was given up")
        return [files["csv"]]
    _say(f"page:  {files['html']} (also .png, .pdf)")
    return list(files.values())


def _draw(recording: Recording, report: Report, files: Mapping[str, Path], given_up: Callable[[], bool]) -> bool:
    """Draw the page in another process: it takes a third more memory, which this one would not release; false: given
    up. Terminal signals do not reach it: it ends when it is done or given up, or with the process that waits for it.
    """
    with tempfile.TemporaryFile() as handed_over:
        pickle.dump((recording, report, dict(files)), handed_over, protocol=pickle.HIGHEST_PROTOCOL)
        handed_over.seek(0)
        command = [sys.executable, "-m", "pkm_viewer.report.page"]
        path = os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": path}  # the packages that this process has
        drawing = subprocess.Popen(command, stdin=handed_over, env=environment, start_new_session=True)
    try:
        while drawing.poll() is None:
            if given_up():
                return False
            time.sleep(_LOOK)
    finally:
        if drawing.poll() is None:
            drawing.terminate()
            try:
                drawing.wait(_LAST_WORD)
            except subprocess.TimeoutExpired:
                drawing.kill()
                drawing.wait()
    if drawing.returncode:
        raise ReportError(f"its page could not be drawn (exit code {drawing.returncode}); the table is {files['csv']}")
    return True


def _say(text: str) -> None:
    """Print, unless the terminal was closed: the files are written then, too."""
    with contextlib.suppress(OSError):
        print(text, flush=True)
