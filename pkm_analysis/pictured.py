# SPDX-License-Identifier: Apache-2.0
"""Results that can be drawn; the drawing modules know them, not vice versa, and import matplotlib on demand."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pkm_description.introduction import Introduced

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Pictured(Introduced):
    """A result with a picture, the robot in it to scale."""

    _picture: ClassVar[str]  # module in `pkm_analysis.drawing` whose function of the same name draws it

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the result, and write it if `path` is given: .png, .svg or .pdf, else `AnalysisError`."""
        module = importlib.import_module(f"pkm_analysis.drawing.{self._picture}")
        figure: Figure = getattr(module, self._picture)(self)
        if path is not None:
            module.write(figure, path)
        return figure
