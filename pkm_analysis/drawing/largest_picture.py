# SPDX-License-Identifier: Apache-2.0
"""The largest box or cylinder as a picture: planes through its centre, the workspace there, the robot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, directions, draw_robot, label, offset_of, sheet, write
from pkm_analysis.workspace.largest import Box, Cylinder
from pkm_description.introduction import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["largest_picture", "write"]

NODES, SLOW_NODES = 121, 25  # along each side of a plane


def largest_picture(found: Box | Cylinder) -> Figure:
    """Draw a box or a cylinder within its workspace."""
    domain = found.membership.domain
    flat = domain.dimension == 2
    figure = sheet(7.2 if flat else 15.0, 6.6 if flat else 6.0)
    panels = [figure.subplots()] if flat else list(figure.subplots(1, 3))
    for axes, cut in zip(panels, (None,) if flat else (2, 1, 0), strict=True):
        _plane(axes, found, cut)
    word = type(found).__name__.lower() if isinstance(found, Box) or not flat else "circle"
    size = f"{measure(found.size)} {found.unit.replace('^2', '²').replace('^3', '³')}"
    figure.suptitle(f"{found.membership.robot.name}: largest {word} inside, {size}", color=INK, fontsize=13)
    figure.supxlabel("shaded: where all conditions hold", fontsize=9)
    return figure


def _plane(axes: Axes, found: Box | Cylinder, cut: int | None) -> None:
    from matplotlib.patches import Circle, Rectangle

    membership = found.membership
    domain = membership.domain
    low, high = found.bounds
    middle = 0.5 * (low + high)
    varying = [k for k in range(domain.dimension) if k != cut]
    nodes = NODES if membership.robot.evaluator.quick else SLOW_NODES
    ticks = [np.linspace(domain.lower[k], domain.upper[k], nodes) for k in varying]
    grid = np.meshgrid(*ticks, indexing="ij")
    points = np.tile(middle, (grid[0].size, 1))
    for k, values in zip(varying, grid, strict=True):
        points[:, k] = values.ravel()
    inside = membership.inside(points).reshape(grid[0].shape)
    axes.contourf(*ticks, inside.T.astype(float), levels=[0.5, 1.5], colors=["#dfe9f3"], zorder=1)
    shown = [domain.coordinates[k] for k in varying]
    along = directions(shown, domain.task)
    if along is not None:
        draw_robot(axes, membership.robot.mechanism, along, offset_of(shown, domain.task, along))
    patch: Circle | Rectangle
    if isinstance(found, Cylinder) and cut in (None, 2):
        patch = Circle((float(middle[0]), float(middle[1])), found.radius)
    else:
        a, b = varying
        patch = Rectangle((low[a], low[b]), high[a] - low[a], high[b] - low[b])
    patch.set(facecolor="none", edgecolor=COLOURS[1], linewidth=2.2, zorder=5)
    axes.add_patch(patch)
    axes.autoscale_view()
    label(axes, shown)
    if cut is not None:
        c = domain.coordinates[cut]
        axes.set_title(f"{c.label} = {measure(middle[cut])} {c.unit}", fontsize=9)
