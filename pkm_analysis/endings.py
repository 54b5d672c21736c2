# SPDX-License-Identifier: Apache-2.0
"""Endings of files that results are written to, checked before work is done for them."""

from __future__ import annotations

from pathlib import Path

from pkm_analysis.analysis_errors import AnalysisError

PICTURES = (".png", ".svg", ".pdf")
MESHES = (".stl", ".ply", ".obj", ".glb")


def check_ending(what: str, path: str | Path, endings: tuple[str, ...]) -> None:
    """Raise where a file has an ending that says no known format.

    Args:
        what: of the file, such as "picture".
        path: of the file.
        endings: that are known.

    Raises:
        AnalysisError: its ending is another.
    """
    if Path(path).suffix not in endings:
        problem = "its ending is none that is known"
        raise AnalysisError(f"{what} {Path(path).name}", problem, f"use one of {', '.join(endings)}")
