# SPDX-License-Identifier: Apache-2.0
"""Pictures of a workspace, its border in the colours of what stops the robot, of the largest in it, and of tilts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.domain import nodes_of, through
from pkm_analysis.drawing.sheet import COLOURS, INK, Scene, cut, label, legend, outline, shaded, sheet
from pkm_analysis.requirements.conditions import SEAM
from pkm_analysis.requirements.grammar import shown
from pkm_analysis.workspace.largest import Box, Cylinder, Tilt
from pkm_analysis.workspace.workspace import Workspace
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 9  # kinds of stops with their own colour
NODES, SLOW_NODES = 121, 25  # along each side of a plane
INSIDE = "#dfe9f3"


def workspace_picture(found: Workspace) -> Figure:
    """Draw a workspace of one to three coordinates."""
    from matplotlib.patches import Patch

    colours, entries = _colours(found)
    if found.domain.dimension == 3:
        figure = sheet(11.0, 9.4)
        view, *slices = figure.subplots(2, 2).ravel()
        _view(view, found, colours)
        for axes, axis in zip(slices, (1, 0, 2), strict=True):
            _slice(axes, found, axis, colours)
    else:
        figure = sheet(8.6, 8.0 if found.domain.dimension == 2 else 3.0)
        (_flat if found.domain.dimension == 2 else _line)(figure.subplots(), found, colours)
    figure.suptitle(f"{found._summary().replace('^2', '²').replace('^3', '³')}", color=INK, fontsize=13)
    legend(figure, [Patch(color=colour, label=text) for colour, text in entries], 2, "what stops it")
    return figure


def _colours(found: Workspace) -> tuple[dict[int, str], list[tuple[str, str]]]:
    known = {found.membership.stop(int(c)): int(c) for c in np.unique(found.stops) if c}
    colours = {known[stop]: COLOURS[min(k, SHOWN)] for k, (stop, _) in enumerate(found.stopped_by)}
    parts = [
        (COLOURS[k], f"{stop.text} ({100.0 * share:.{2 if share < 0.995 else 3}g} %)")
        for k, (stop, share) in enumerate(found.stopped_by[:SHOWN])
    ]
    if len(found.stopped_by) > SHOWN:
        parts.append((COLOURS[-1], "other"))
    if (found.stops == SEAM).any():
        parts.append((COLOURS[-1], f"no border: {found.membership.stop(SEAM).text}"))
    return colours, parts


def _facet_codes(found: Workspace) -> NDArray[np.int32]:
    codes = found.stops[found.simplices]
    if codes.shape[1] == 3:
        return np.where(codes[:, 1] == codes[:, 2], codes[:, 1], codes[:, 0])
    return np.asarray(codes[:, 0])


def _view(axes: Axes, found: Workspace, colours: dict[int, str]) -> None:
    from matplotlib.colors import to_rgb

    scene = Scene(found.domain, found.membership.robot, found.corners)
    triangles = scene.placed(found.corners)[found.simplices]
    normal, light = shaded(triangles)
    rgb = np.array([to_rgb(colours.get(int(code), COLOURS[-1])) for code in _facet_codes(found)])
    away = normal @ scene.view.back < 0.0  # the far half; the near one leaves the robot visible
    scene.paint(axes, triangles, np.c_[np.clip(rgb * light[:, None], 0.0, 1.0), np.where(away, 0.85, 0.16)])
    what = "robot at home" if scene.lengths else "coordinates by their ranges"
    axes.set_title(f"border, the near side transparent; {what}", fontsize=9)


def _slice(axes: Axes, found: Workspace, axis: int, colours: dict[int, str]) -> None:
    low, high = found.bounds
    held = found.domain.coordinates[axis]
    value = through(held, float(low[axis]), float(high[axis]))
    segments, facets = cut(found.corners, found.simplices, axis, value)
    coordinates = [c for c in found.domain.coordinates if c is not held]
    _segments(axes, segments, _facet_codes(found)[facets], colours)
    label(axes, coordinates, found.membership.robot)
    axes.set_title(f"slice at {held.label} = {shown(value, held.unit)}", fontsize=9)


def _segments(axes: Axes, segments: Array, codes: NDArray[np.int32], colours: dict[int, str]) -> None:
    from matplotlib.collections import LineCollection

    shades = [colours.get(int(code), COLOURS[-1]) for code in codes]
    axes.add_collection(LineCollection(list(segments), colors=shades, linewidths=2.0, zorder=4))


def _flat(axes: Axes, found: Workspace, colours: dict[int, str]) -> None:
    from matplotlib.patches import PathPatch

    axes.add_patch(PathPatch(outline(found.corners, found.simplices), facecolor=INSIDE, edgecolor="none", zorder=1))
    _segments(axes, found.corners[found.simplices], _facet_codes(found), colours)
    label(axes, found.domain.coordinates, found.membership.robot)
    axes.set_title(found.domain.in_words(), fontsize=9)


def _line(axes: Axes, found: Workspace, colours: dict[int, str]) -> None:
    ordered = np.argsort(found.corners[:, 0])
    for ends in found.corners[ordered, 0].reshape(-1, 2):
        axes.plot(ends, (0.0, 0.0), color=COLOURS[0], lw=8, solid_capstyle="butt")
    for k in ordered:
        axes.plot(found.corners[k, 0], 0.0, "|", ms=24, mew=3, color=colours.get(int(found.stops[k]), INK))
    axes.set_yticks([])
    label(axes, found.domain.coordinates)


def largest_picture(found: Box | Cylinder) -> Figure:
    """Draw a box or a cylinder within its workspace."""
    flat = found.domain.dimension == 2
    figure = sheet(7.2 if flat else 15.0, 6.6 if flat else 6.0)
    for axes, axis in zip(figure.subplots(1, 1 if flat else 3, squeeze=False)[0], (2, 1, 0), strict=False):
        _plane(axes, found, None if flat else axis)
    what = "largest circle" if flat and isinstance(found, Cylinder) else found.what
    size = f"{measure(found.size)} {found.unit.replace('^2', '²').replace('^3', '³')}"
    figure.suptitle(f"{found.membership.robot.name}: {what} inside, {size}", color=INK, fontsize=13)
    figure.supxlabel("shaded: where all conditions hold", fontsize=9)
    return figure


def _plane(axes: Axes, found: Box | Cylinder, axis: int | None) -> None:
    from matplotlib.patches import Circle, Rectangle

    membership, domain, (low, high) = found.membership, found.domain, found.bounds
    middle = 0.5 * (low + high)
    a, b = [k for k in range(domain.dimension) if k != axis]
    nodes = NODES if membership.quick else SLOW_NODES
    ticks = [np.linspace(domain.lower[k], domain.upper[k], nodes) for k in (a, b)]
    points = np.tile(middle, (nodes * nodes, 1))
    points[:, [a, b]] = nodes_of(ticks)
    inside = membership.inside(points).reshape(nodes, nodes)
    axes.contourf(*ticks, inside.T.astype(float), levels=[0.5, 1.5], colors=[INSIDE], zorder=1)
    coordinates = [domain.coordinates[k] for k in (a, b)]
    patch: Circle | Rectangle
    if isinstance(found, Cylinder) and axis in (None, 2):
        patch = Circle((float(middle[0]), float(middle[1])), found.radius)
    else:
        patch = Rectangle((low[a], low[b]), high[a] - low[a], high[b] - low[b])
    patch.set(facecolor="none", edgecolor=COLOURS[1], linewidth=2.2, zorder=5)
    axes.add_patch(patch)
    label(axes, coordinates, membership.robot)
    if axis is not None:
        c = domain.coordinates[axis]
        axes.set_title(f"{c.label} = {shown(middle[axis], c.unit)}", fontsize=9)


def tilt_picture(found: Tilt) -> Figure:
    """Draw the largest tilt in every direction."""
    figure = sheet(7.6, 7.6)
    axes = figure.add_subplot(projection="polar")
    to, angles = (np.append(one, one[0]) for one in (found.directions, np.degrees(found.angles)))
    axes.fill(to, angles, facecolor=INSIDE, edgecolor=COLOURS[0], lw=2.0)
    every = float(angles.min())
    axes.plot(
        to, np.full(len(to), every), color=COLOURS[1], lw=1.2, ls="--", label=f"in every direction: {every:.3g} deg"
    )
    axes.set_title("largest tilt [deg], 0 along x of the base, 90 along y", fontsize=9)
    legend(figure, axes.get_legend_handles_labels()[0])
    figure.suptitle(found._summary(), color=INK, fontsize=13)
    return figure
