# SPDX-License-Identifier: Apache-2.0
"""Errors of questions that cannot be answered as asked; what is checked before work begins: endings of files."""

from __future__ import annotations

from pathlib import Path

from pkm_runtime.errors import UsageError

PICTURES = (".png", ".svg", ".pdf")
MESHES = (".stl", ".ply", ".obj", ".glb")


class AnalysisError(UsageError):
    """A question that cannot be answered as asked: the part it is about, what is wrong, and what to ask instead."""


def check_ending(what: str, path: str | Path, endings: tuple[str, ...]) -> None:
    """Raise `AnalysisError` unless the file's extension is among `endings`; `what` names the file, as "picture"."""
    if Path(path).suffix not in endings:
        problem = "its file extension is unknown"
        raise AnalysisError(f"{what} {Path(path).name}", problem, f"use one of {', '.join(endings)}")
