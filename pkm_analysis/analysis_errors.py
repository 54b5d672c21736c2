# SPDX-License-Identifier: Apache-2.0
"""Errors of questions that cannot be answered as asked; what is checked before work begins: endings, libraries."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from pkm_description.errors import PkmError, shortened

PICTURES = (".png", ".svg", ".pdf")
MESHES = (".stl", ".ply", ".obj", ".glb")


class AnalysisError(PkmError):
    """A question that cannot be answered as asked: the part it is about, what is wrong, and what to ask instead."""

    def __init__(self, about: str, problem: str, remedy: str) -> None:
        self.about = shortened(about)
        self.problem = shortened(problem)
        self.remedy = shortened(remedy)
        super().__init__(f"{self.about}: {self.problem}; {self.remedy}")


def check_ending(what: str, path: str | Path, endings: tuple[str, ...]) -> None:
    """Raise `AnalysisError` unless the file's extension is among `endings`; `what` names the file, as "picture"."""
    if Path(path).suffix not in endings:
        problem = "its ending is none that is known"
        raise AnalysisError(f"{what} {Path(path).name}", problem, f"use one of {', '.join(endings)}")


def optional_library(module: str, package: str, purpose: str) -> Any:
    """Import a module; `AnalysisError` names the pip package and the purpose where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise AnalysisError(
            purpose, f"they need {package}, which is not installed", f"{sys.executable} -m pip install {package}"
        ) from error
