# SPDX-License-Identifier: Apache-2.0
"""Checks the extensions of output files before any work is done for them."""

from __future__ import annotations

from pathlib import Path

from pkm_analysis.analysis_errors import AnalysisError

PICTURES = (".png", ".svg", ".pdf")
MESHES = (".stl", ".ply", ".obj", ".glb")


def check_ending(what: str, path: str | Path, endings: tuple[str, ...]) -> None:
    """Raise `AnalysisError` unless the file's extension is among `endings`; `what` names the file, as "picture"."""
    if Path(path).suffix not in endings:
        problem = "its ending is none that is known"
        raise AnalysisError(f"{what} {Path(path).name}", problem, f"use one of {', '.join(endings)}")
