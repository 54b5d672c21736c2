# SPDX-License-Identifier: Apache-2.0
"""Files of layers by name."""

from __future__ import annotations

from pathlib import Path


def layer_files(text: str) -> list[Path]:
    """Sorted paths of layers from names, separated by commas, of files or of folders that hold some."""
    found: list[Path] = []
    for name in filter(None, (word.strip() for word in text.split(","))):
        path = Path(name)
        found += sorted(path.glob("*.glb")) if path.is_dir() else [path]
    return found
