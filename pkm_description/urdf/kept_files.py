# SPDX-License-Identifier: Apache-2.0
"""Where results are kept from one process to the next, and how files are written there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent / "__pycache__"


def folders() -> tuple[Path, Path]:
    """Beside the sources, and the user's own: what is kept is in the first that can be written."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return HERE, Path(cache) / "pkm_control"


def write(file: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Args:
        file: in a folder that is made where it is missing.
        content: of the file.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        os.chmod(part, 0o644)
        os.replace(part, file)
    except OSError:
        os.unlink(part)
        raise
