# SPDX-License-Identifier: Apache-2.0
"""The lowest natural vibrations of an elastic robot at a pose, to be looked at: their amplitude is arbitrary."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.plottable import Plottable, Table
from pkm_analysis.stiffness.stiffness import DIRECTIONS, Stiffness
from pkm_description.mechanism import Array
from pkm_kinematics.solve.singularity import scaling
from pkm_runtime.describable import vector

LOWEST = 4  # that are shown


@dataclass(frozen=True, eq=False, repr=False)
class ModeShapes(Plottable):
    """The `LOWEST` vibrations of `of`, drives held, without rotors."""

    _picture: ClassVar[str] = "mode_pictures.mode_picture"
    of: Stiffness

    def __post_init__(self) -> None:
        """Refuse a robot that does not vibrate."""
        if not len(self.of.vibrations.frequency):
            problem = "nothing gives way, or nothing has a mass"
            raise AnalysisError(f"vibrations of {self.of.robot.name}", problem, "describe sections, masses or drives")

    @property
    def frequency(self) -> Array:
        """Hz (k,), the lowest first."""
        return self.of.vibrations.frequency[:LOWEST]

    @property
    def shapes(self) -> Array:
        """Displacements (n_nodes, 6, k) of the nodes at the platform's origin."""
        return self.of.vibrations.shapes[:, :, :LOWEST]

    @property
    def platform(self) -> Array:
        """The platform's twist (6, k) in each: its largest element is 1, turns at the robot's length."""
        twists = self.shapes[self.of.model.platform]
        scaled = twists * scaling(self.of.system.length)[:, None]
        return np.asarray(scaled / np.maximum(np.abs(scaled).max(axis=0), 1e-12 * np.abs(self.shapes).max()))

    @property
    def names(self) -> list[str]:
        """Number and frequency of each."""
        return [f"mode {k}: {value:.4g} Hz" for k, value in enumerate(self.frequency, start=1)]

    @property
    def animation(self) -> str:
        """The vibrations as a moving SVG picture, for a page."""
        return str(importlib.import_module("pkm_analysis.drawing.mode_pictures").moving_picture(self))

    def save(self, path: str | Path) -> Path:
        """Write a .glb layer for the browser page, where the vibrations move, and for RViz, where they stand still."""
        return Path(importlib.import_module("pkm_analysis.drawing.mode_pictures").write_moving_layer(self, path))

    def _summary(self) -> str:
        return f"of {self.of.robot.name} at {vector(np.round(self.of.pose[:3], 6))} m: the lowest natural vibrations"

    def _details(self) -> list[str]:
        lines = []
        for name, twist in zip(self.names, self.platform.T, strict=True):
            along = ", ".join(f"{d} {v:.3g}" for d, v in zip(DIRECTIONS, twist, strict=True) if abs(v) > 0.05)
            lines.append(f"{name}, platform {along or 'at rest'}")
        return lines

    @property
    def tables(self) -> list[Table]:
        """What the platform does in each."""
        rows = [
            [name, *(f"{v:.3g}" if abs(v) > 5e-4 else "0" for v in twist)]
            for name, twist in zip(self.names, self.platform.T, strict=True)
        ]
        return [Table("The platform in each vibration, turns at the robot's length", ["", *DIRECTIONS], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {"frequency": self.frequency.tolist(), "shapes": self.shapes.tolist()}
