# SPDX-License-Identifier: Apache-2.0
"""Files that are whole or missing, whatever ends the writing process."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MODE = 0o666  # of a new file, less what the user's mask takes


@contextlib.contextmanager
def whole(file: str | Path) -> Iterator[Path]:
    """Yields a temporary path of the same ending beside `file`, which becomes the file unless an exception comes."""
    file = Path(file).resolve()
    mode = _mode(file)
    if mode is None:
        yield file
        return
    handle, name = tempfile.mkstemp(prefix=".", suffix=file.suffix, dir=file.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        os.chmod(part, mode)
        os.replace(part, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _mode(file: Path) -> int | None:
    """Permissions of a file, or of a new one; None for a device or a pipe, which is written as it is."""
    try:
        found = file.stat().st_mode
    except OSError:
        return _MODE & ~_mask()
    return stat.S_IMODE(found) if stat.S_ISREG(found) else None


def write_whole(file: str | Path, content: bytes | str) -> None:
    """Write a file whole or not at all; a text is written in UTF-8."""
    with whole(file) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def _mask() -> int:
    """The user's mask, which can only be read by setting it; from Linux' process data without that."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("Umask:")).split()[1], 8)
    return 0o022
