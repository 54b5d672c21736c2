# SPDX-License-Identifier: Apache-2.0
"""A program that runs while something is measured."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def running(
    command: Sequence[str], patience: float, output: IO[bytes] | int = subprocess.DEVNULL, folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in a session of its own, and end it, as Ctrl-C does, and all of it where that takes too long.

    Args:
        command: its words.
        patience: s, from the interrupt until the session is killed.
        output: where it writes, errors too.
        folder: where it runs; this one by default.

    Yields:
        Its process.
    """
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=folder)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
