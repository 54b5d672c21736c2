# SPDX-License-Identifier: Apache-2.0
"""What a motion requires, as a picture: efforts, speeds and power over time, and the use of each limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, sheet, write
from pkm_analysis.prediction.performance import Prediction
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["prediction_picture", "write"]

BEYOND = "#d62728"


def prediction_picture(found: Prediction) -> Figure:
    """Draw a prediction."""
    figure = sheet(9.6, 9.0)
    effort, speed, power, use = figure.subplots(4, 1, height_ratios=(3, 3, 3, 0.7 + 0.32 * len(found.names)))
    units = sorted(set(found.units), reverse=True)
    torque = " or ".join({"rad": "N m", "m": "N"}[unit] for unit in units)
    _lines(effort, found, found.effort, found.effort_limits, f"effort [{torque}]")
    _lines(speed, found, found.velocity, found.velocity_limits, f"speed [{' or '.join(f'{u}/s' for u in units)}]")
    _lines(power, found, found.power, None, "power [W]")
    power.plot(found.times, found.power.sum(axis=1), color=INK, lw=1.4, label="all together")
    power.set_xlabel("time [s]")
    _bars(use, found)
    handles, labels = power.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.suptitle(f"{found.robot}: {found._summary()}", color=INK, fontsize=11)
    return figure


def _lines(axes: Axes, found: Prediction, values: Array, limits: Array | None, text: str) -> None:
    for k, name in enumerate(found.names):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(found.times, values[:, k], color=colour, lw=1.3, label=name)
        limit = np.inf if limits is None else limits[k]
        if limit < 2.0 * max(float(np.abs(values).max()), 1e-12):  # one far away would flatten the curves
            for side in (-limit, limit):
                axes.axhline(side, color=colour, lw=0.9, ls=(k, (4, 4)))
    axes.set_ylabel(text, fontsize=9)
    axes.set_xlim(found.times[0], found.times[-1])
    axes.grid(True, color="#d9dfe5", linewidth=0.5)
    axes.tick_params(labelsize=8)


def _bars(axes: Axes, found: Prediction) -> None:
    """Draw the share used of each limit that exists."""
    rows = np.arange(len(found.names))
    for shift, values, word, shade in (
        (-0.2, found.effort_use, "effort", 0.95),
        (0.2, found.velocity_use, "speed", 0.55),
    ):
        known = np.nan_to_num(values, posinf=0.0)
        colours = [BEYOND if one > 1.0 else COLOURS[0] for one in known]
        axes.barh(rows + shift, 100.0 * known, 0.36, color=colours, alpha=shade)
        for row, one in zip(rows, values, strict=True):
            share = f"{100.0 * one:.3g} % of {word}" if one > 0.0 else f"{word} has no limit"
            axes.text(100.0 * np.nan_to_num(one), row + shift, f" {share}", fontsize=7, va="center")
    axes.axvline(100.0, color=INK, lw=1.0)
    axes.set_xlim(0.0, 100.0 * 1.35 * max(1.0, float(np.nan_to_num([found.effort_use, found.velocity_use]).max())))
    axes.set_yticks(rows, found.names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("peak as a part of the description's limit [%]", fontsize=9)
    axes.tick_params(labelsize=8)
