# SPDX-License-Identifier: Apache-2.0
"""Indices as a picture: each over the poses, with its worst value marked and its mean stated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, sheet, write
from pkm_analysis.indices.performance import PerformanceIndices
from pkm_description.introduction import measure
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["indices_picture", "write"]

STILL = 1e-12  # m or rad: what does not vary
ACROSS = 3


def indices_picture(found: PerformanceIndices) -> Figure:
    """Draw indices: in colour over two coordinates, as a curve over one, else as the share of poses below."""
    worst = found.worst()
    varying = [k for k in range(found.coordinates.shape[1]) if np.ptp(found.coordinates[:, k]) > STILL]
    down = -(-max(len(worst), 1) // ACROSS)
    figure = sheet(13.0, 3.8 * down)
    panels = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for axes, (name, (value, at, mean)) in zip(panels, worst.items(), strict=False):
        values, unit = found.of(name), found.units[name]
        shown = f"{name.replace('_', ' ')}{'' if unit == '1' else f' [{unit}]'}"
        place = [float(at[k]) for k in varying]
        if len(varying) == 2:
            _coloured(figure, axes, found.coordinates[:, varying], values, place)
            axes.set_xlabel(found.labels[varying[0]])
            axes.set_ylabel(found.labels[varying[1]])
        elif len(varying) == 1:
            x = found.coordinates[:, varying[0]]
            order = np.argsort(x)
            axes.plot(x[order], values[order], ".-", color=COLOURS[0], lw=1.4, ms=4)
            axes.plot(place[0], value, "v", color="white", mec=INK, ms=8)
            axes.set_xlabel(found.labels[varying[0]])
        else:
            known = np.sort(values[np.isfinite(values)])
            axes.plot(known, 100.0 * (np.arange(len(known)) + 0.5) / max(len(known), 1), ".-", color=COLOURS[0], ms=4)
            axes.axvline(value, color=COLOURS[1], lw=1.2)
            axes.set_ylabel("poses below [%]")
        axes.set_title(f"{shown}: worst {measure(value)}, mean {measure(mean)}", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(True, color="#d9dfe5", linewidth=0.5, zorder=0)
    for axes in panels[len(worst) :]:
        axes.set_axis_off()
    text = f"{found.robot}: indices at {len(found.coordinates)} poses, {found.part}, rotations at {found.length:.4g} m"
    figure.suptitle(text, color=INK, fontsize=13)
    return figure


def _coloured(figure: Figure, axes: Axes, points: Array, values: Array, place: list[float]) -> None:
    known = np.isfinite(values)
    x, y = points[known].T
    size = 2.0e4 / max(len(points), 1)
    dots = axes.scatter(x, y, s=min(max(size, 4.0), 400.0), c=values[known], marker="s", cmap="viridis")
    figure.colorbar(dots, ax=axes, shrink=0.9)
    axes.plot(*place, "v", color="white", mec=INK, ms=9)
    axes.margins(0.08)
