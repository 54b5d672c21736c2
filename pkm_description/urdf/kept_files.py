# SPDX-License-Identifier: Apache-2.0
"""Where results are kept from one process to the next, and how files are written and read there.

What others can write to is not used: robots that are kept are read as Python's own bytecode is.
"""

from __future__ import annotations

import os
from pathlib import Path

from pkm_description import safe_folders
from pkm_description.whole_files import write_whole

HERE = Path(__file__).resolve().parent / "__pycache__"


def folders() -> tuple[Path, Path]:
    """Beside the sources, and the user's own: what is kept is in the first that can be written."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return HERE, Path(cache) / "pkm_control"


def made(folder: Path) -> Path:
    """One of the folders, made where it is missing; raises OSError where it cannot be used."""
    return safe_folders.made(folder, _sources(folder))


def read(file: Path) -> bytes:
    """What a file in one of the folders holds; raises OSError where there is none, or where others may have written it.

    Args:
        file: its path.

    Returns:
        The content.
    """
    return safe_folders.read(file.parent, file.name, _sources(file.parent))


def write(file: Path, content: bytes) -> None:
    """Write a file into one of the folders, whole or not at all.

    Args:
        file: in a folder that is made where it is missing.
        content: of the file.

    Raises:
        OSError: it cannot be written.
    """
    made(file.parent)
    write_whole(file, content)


def _sources(folder: Path) -> Path | None:
    return HERE.parent if folder == HERE else None
