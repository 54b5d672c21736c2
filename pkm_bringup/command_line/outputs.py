# SPDX-License-Identifier: Apache-2.0
"""Checks that a run's report and page are possible, before anything starts. Nothing heavy is imported."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from pathlib import Path

_PATIENCE = 0.8  # s, for the name of a host: a resolver that nobody answers takes half a minute


def leave_terminal() -> None:
    """Stop writing to a terminal that was closed, where each write would fail."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def check_report(directory: str | Path) -> None:
    """Raise `ValueError` for a directory that cannot be made or written to; it may be missing, and is not changed."""
    folder = Path(directory)
    made: list[Path] = []
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.exists():
                part.mkdir()
                made.append(part)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ValueError(
            f"report '{directory}' cannot be written to ({why}); give another directory with --report"
        ) from error
    finally:
        for part in reversed(made):
            with contextlib.suppress(OSError):  # somebody else took it meanwhile
                part.rmdir()


def check_host(host: str) -> None:
    """Raise `ValueError` for an address (number, or name known within a second) that this computer cannot listen on."""
    found: list[tuple[int, tuple[object, ...]]] = []
    problem = [f"its name is not known after {_PATIENCE:g} s"]

    def resolve() -> None:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
            found.append((family, address))
        except (OSError, UnicodeError) as error:
            problem[0] = getattr(error, "strerror", None) or str(error)

    asking = threading.Thread(target=resolve, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    if found:
        family, address = found[0]
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind(address)
            return
        except OSError as error:
            problem[0] = error.strerror or str(error)
    raise ValueError(
        f"the page cannot listen on host '{host}' ({problem[0]}); give an address of this computer: 127.0.0.1 for this "
        "computer alone, 0.0.0.0 for all of its networks"
    )
