# SPDX-License-Identifier: Apache-2.0
"""Folders of the disk cache, and how its files are written and read.

Files that others can write are ignored: cached robots are unpickled, as trusted as Python's own bytecode.
"""

from __future__ import annotations

import os
from pathlib import Path

from pkm_runtime import safe_folders
from pkm_runtime.whole_files import write_whole

HERE = Path(__file__).resolve().parent / "__pycache__"


def folders() -> tuple[Path, Path]:
    """Beside the sources, and the user's own; the first writable one is used."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return HERE, Path(cache) / "pkm_control"


def made(folder: Path) -> Path:
    """One of the folders, created where missing; OSError where unusable."""
    return safe_folders.made(folder, _sources(folder))


def read(file: Path) -> bytes:
    """Content of a file in one of the folders; OSError where it is missing or others may have written it."""
    return safe_folders.read(file.parent, file.name, _sources(file.parent))


def write(file: Path, content: bytes) -> None:
    """Write a file into one of the folders, created where missing, whole or not at all."""
    made(file.parent)
    write_whole(file, content)


def _sources(folder: Path) -> Path | None:
    return HERE.parent if folder == HERE else None
