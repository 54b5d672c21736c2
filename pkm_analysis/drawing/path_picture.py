# SPDX-License-Identifier: Apache-2.0
"""A path as a picture: its way, and the margins along it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, directions, draw_robot, label, offset_of, sheet, write
from pkm_analysis.kernels.pose_quantities import TYPE1, TYPE2
from pkm_analysis.regions.path import Path
from pkm_analysis.requirements.requirement import Requirement
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["path_picture", "write"]


def path_picture(found: Path) -> Figure:
    """Draw a path, or its two ends where there is none."""
    asked = found.graph.membership.requirements if found.found else ()
    figure = sheet(11.0, 5.6 + 1.6 * len(asked))
    panels = figure.add_gridspec(1 + len(asked), 2, height_ratios=[3.0, *[1.0] * len(asked)])
    _trace(figure.add_subplot(panels[:, 0]), found)
    right = figure.add_subplot(panels[0, 1])
    _margins(right, found)
    for k, one in enumerate(asked):
        _bounded(figure.add_subplot(panels[k + 1, 1], sharex=right), found, one)
    figure.suptitle(f"{found.graph.membership.robot.name}: path", color=INK, fontsize=13)
    return figure


def _trace(axes: Axes, found: Path) -> None:
    domain = found.graph.domain
    shown = list(domain.coordinates[:2])
    along = directions(shown, domain.task) if len(shown) == 2 else None
    if along is not None:
        draw_robot(axes, found.graph.membership.robot.mechanism, along, offset_of(shown, domain.task, along))
    points = found.samples() if found.found else np.array([found.start, found.end])
    if len(shown) == 1:
        points = np.c_[points[:, 0], np.zeros(len(points))]
    colour, line = ("#1f4fd6", "-") if found.found else ("#d62728", ":")
    axes.plot(points[:, 0], points[:, 1], line, color=colour, lw=2.0, zorder=5)
    axes.plot(*points[0, :2], "o", color="white", mec=INK, ms=8, zorder=6, label="start")
    axes.plot(*points[-1, :2], "s", color="white", mec=INK, ms=8, zorder=6, label="end")
    label(axes, shown)
    axes.legend(fontsize=8)
    axes.set_title("no path" if not found.found else f"{len(found.waypoints)} waypoints", fontsize=9)


def _bounded(axes: Axes, found: Path, one: Requirement) -> None:
    """Draw the quantity that a requirement bounds along the path, and the bound."""
    gone, poses = _way(found)
    unit = "" if one.quantity.unit == "1" else f" [{one.quantity.unit}]"
    axes.plot(gone, one.quantity.of(found.graph.membership.robot, poses), color=COLOURS[0])
    axes.axhline(one.bound, color="#d62728", lw=1.2, ls="--", label=str(one))
    axes.set_ylabel(f"{one.quantity.name}{unit}", fontsize=9)
    axes.legend(fontsize=8)
    axes.grid(True, color="#d9dfe5", linewidth=0.5)


def _way(found: Path) -> tuple[Array, Array]:
    """Arc lengths [m] and poses (n, 7) of the path's samples (n,)."""
    graph = found.graph
    points = found.samples()
    gone = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points * graph.scale, axis=0), axis=1))])
    return gone, graph.domain.poses(graph.within(points))[0]


def _margins(axes: Axes, found: Path) -> None:
    if not found.found:
        axes.set_axis_off()
        lines = [found.reason, *(f"{100.0 * share:.3g} %: {text}" for text, share in list(found.barrier.items())[:6])]
        axes.text(0.02, 0.95, "\n".join(lines), va="top", wrap=True, fontsize=9, color=INK)
        return
    graph = found.graph
    points = found.samples()
    gone, poses = _way(found)
    type1, type2 = graph.membership.robot.evaluator.numbers(poses, (TYPE1, TYPE2))
    axes.plot(gone, type1, color=COLOURS[0], label="type 1")
    axes.plot(gone, type2, color=COLOURS[1], label="type 2, signed")
    axes.axhline(0.0, color=INK, lw=0.8)
    for k, (c, values) in enumerate(zip(graph.domain.coordinates, points.T, strict=True)):
        axes.plot(gone, values, color=COLOURS[(k + 2) % len(COLOURS)], lw=1.0, ls="--", label=f"{c.label} [{c.unit}]")
    axes.set_xlabel("way [m], angles at the characteristic length")
    axes.set_title("margins of singularities", fontsize=9)
    axes.legend(fontsize=8)
    axes.grid(True, color="#d9dfe5", linewidth=0.5)
