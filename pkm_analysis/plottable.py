# SPDX-License-Identifier: Apache-2.0
"""Results that can be drawn; the drawing modules know them, not vice versa, and import matplotlib on demand."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from pkm_runtime.describable import Describable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Table(NamedTuple):
    """A table of a result, for its page."""

    caption: str
    head: list[str]
    rows: list[list[str]]


class Plottable(Describable):
    """A result with a picture, the robot in it to scale."""

    _picture: ClassVar[str]  # module in `pkm_analysis.drawing`, and the function of it that draws the result

    @property
    def animation(self) -> str:
        """A picture that moves, as SVG, in place of the picture on its page; empty: there is none."""
        return ""

    @property
    def tables(self) -> list[Table]:
        """Tables for its page."""
        return []

    def _plain(self, *names: str) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in names}
        return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in values.items()}

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the result, and write it if `path` is given: .png, .svg or .pdf, else `AnalysisError`."""
        module, _, drawn = self._picture.partition(".")
        figure: Figure = getattr(importlib.import_module(f"pkm_analysis.drawing.{module}"), drawn)(self)
        if path is not None:
            importlib.import_module("pkm_analysis.drawing.sheet").write(figure, path)
        return figure
