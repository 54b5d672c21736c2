# SPDX-License-Identifier: Apache-2.0
"""Which files of layers somebody means."""

from __future__ import annotations

from pathlib import Path

_ENDING = ".glb"


def layer_files(text: str) -> list[Path]:
    """Files of layers.

    Args:
        text: names with commas between, of files or of folders that hold some.

    Returns:
        Paths, in order.
    """
    found: list[Path] = []
    for name in filter(None, (word.strip() for word in text.split(","))):
        path = Path(name)
        found += sorted(path.glob(f"*{_ENDING}")) if path.is_dir() else [path]
    return found
