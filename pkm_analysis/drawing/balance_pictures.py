# SPDX-License-Identifier: Apache-2.0
"""Pictures of a balance: what the drives hold without springs, as described and balanced, over the domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, grid, sheet
from pkm_analysis.requirements.grammar import familiar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkm_analysis.balance.balance import Balance


def balance_picture(found: Balance) -> Figure:
    """Largest effort of a drive over the first two coordinates, before and after; of one coordinate as curves."""
    units, names = set(found.units), list(found.efforts)
    largest = {}  # over the nodes, in parts of the largest effort without springs where units are mixed
    scale = found.worst(names[0]) if len(units) > 1 else np.ones(len(found.drives))
    for which, efforts in found.efforts.items():
        values = np.full(len(found.mask), np.nan)
        values[found.mask] = np.abs(efforts / np.maximum(scale, 1e-300)).max(axis=1)
        largest[which] = values.reshape([len(axis) for axis in found.axes])
    unit = f"[{next(iter(units))}]" if len(units) == 1 else "/ largest without springs"
    if len(found.axes) == 1:
        figure = sheet(7.0, 4.2)
        curves(figure.subplots(), found, largest, unit)
        return figure
    figure = sheet(4.2 * len(names) + 0.8, 4.2)
    top = max(float(np.nanmax(values)) for values in largest.values())
    panels = np.atleast_1d(figure.subplots(1, len(names)))
    for axes, (which, values) in zip(panels, largest.items(), strict=True):
        flat = values.reshape(*values.shape[:2], -1)
        worst = np.where(np.isfinite(flat), flat, -np.inf).max(axis=2)
        worst = np.where(np.isfinite(worst), worst, np.nan)
        (x, y), (c, d) = (_familiar(found, k) for k in (0, 1)), (_label(found, k) for k in (0, 1))
        drawn = axes.pcolormesh(x, y, worst.T, vmin=0.0, vmax=top or 1.0, cmap="viridis", shading="nearest")
        axes.set_xlabel(c)
        axes.set_ylabel(d)
        axes.set_title(which, fontsize=10)
    figure.colorbar(drawn, ax=list(panels), label=f"largest effort of a drive {unit}")
    return figure


def curves(axes: Axes, found: Balance, largest: dict[str, np.ndarray], unit: str) -> None:
    """The largest effort along one coordinate."""
    for (which, values), colour in zip(largest.items(), COLOURS, strict=False):
        axes.plot(_familiar(found, 0), values, color=colour, label=which)
    axes.set_xlabel(_label(found, 0))
    axes.set_ylabel(f"largest effort of a drive {unit}")
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=8, frameon=False)
    grid(axes)


def _familiar(found: Balance, k: int) -> np.ndarray:
    return np.asarray(found.axes[k] * familiar(found.domain.units[k])[1])


def _label(found: Balance, k: int) -> str:
    return f"{found.domain.labels[k]} [{familiar(found.domain.units[k])[0]}]"
