# SPDX-License-Identifier: Apache-2.0
"""Folders of the disk cache, and how its files are written and read.

Files that others can write are ignored: cached robots are unpickled, as trusted as Python's own bytecode.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from pkm_runtime.whole_files import read_safely, safe_folder, write_whole

MOST = 100  # files of a kind that are kept
_DIGEST = hashlib.sha256().digest_size
HERE = Path(__file__).resolve().parent / "__pycache__"


def folders() -> tuple[Path, Path]:
    """Beside the sources, and the user's own; the first writable one is used."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return HERE, Path(cache) / "pkm_control"


def made(folder: Path) -> Path:
    """One of the folders, created where missing; OSError where unusable."""
    return safe_folder(folder, _sources(folder))


def read(file: Path) -> bytes:
    """Content of a file in one of the folders; OSError where it is missing or others may have written it."""
    return read_safely(file.parent, file.name, _sources(file.parent))


def write(file: Path, content: bytes) -> None:
    """Write a file into one of the folders, created where missing, whole or not at all."""
    made(file.parent)
    write_whole(file, content)


def find(name: str) -> bytes | None:
    """What `keep` wrote under a name; None where it is missing or not whole."""
    for folder in folders():
        with contextlib.suppress(OSError):
            content = read(folder / name)
            if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                return content[_DIGEST:]
    return None


def keep(name: str, content: bytes) -> None:
    """Keep content under a name whose ending says its kind, where that is possible; the oldest of many go."""
    for folder in folders():
        with contextlib.suppress(OSError):
            kept = sorted(folder.glob(f"*{Path(name).suffix}"), key=lambda file: file.stat().st_mtime)
            for file in kept[: max(0, len(kept) + 1 - MOST)]:
                file.unlink(missing_ok=True)
            write(folder / name, hashlib.sha256(content).digest() + content)
            return


def _sources(folder: Path) -> Path | None:
    return HERE.parent if folder == HERE else None
