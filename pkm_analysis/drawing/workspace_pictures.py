# SPDX-License-Identifier: Apache-2.0
"""A workspace, and the largest box or cylinder in it, as pictures, with the robot at home to scale.

A border has the colours of what stops the robot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.domain import through
from pkm_analysis.drawing.sheet import COLOURS, INK, draw_robot, frame_of, frame_view, label, shaded, sheet
from pkm_analysis.requirements.membership import SEAM
from pkm_analysis.workspace.largest import Box, Cylinder
from pkm_analysis.workspace.workspace import Workspace
from pkm_description.mechanism import Array
from pkm_description.picture import View, facets
from pkm_runtime.describable import measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 9  # kinds of stops with their own colour


NODES, SLOW_NODES = 121, 25  # along each side of a plane


def workspace_picture(found: Workspace) -> Figure:
    """Draw a workspace of one to three coordinates."""
    colours, legend = _colours(found)
    if found.domain.dimension == 3:
        figure = sheet(11.0, 9.4)
        rows = figure.subplots(2, 2)
        if all(unit == "m" for unit in found.domain.units):
            _view(rows[0, 0], found, colours)
        else:
            _shadow(rows[0, 0], found, colours)
        for axes, cut in zip((rows[0, 1], rows[1, 0], rows[1, 1]), (1, 0, 2), strict=True):
            _slice(axes, found, cut, colours)
    else:
        figure = sheet(8.6, 8.0 if found.domain.dimension == 2 else 3.0)
        axes = figure.subplots()
        _flat(axes, found, colours) if found.domain.dimension == 2 else _line(axes, found, colours)
    size = f"{measure(found.size)} ± {measure(found.error)} {found.unit.replace('^2', '²').replace('^3', '³')}"
    figure.suptitle(f"{found.membership.robot.name}: workspace, {size}", color=INK, fontsize=13)
    _legend(figure, legend)
    return figure


def _colours(found: Workspace) -> tuple[dict[int, str], list[tuple[str, str]]]:
    """Colour of each code, and the entries of the legend."""
    known = {found.membership.stop(int(c)): int(c) for c in np.unique(found.stops) if c}
    colours: dict[int, str] = {}
    legend = []
    for k, (stop, share) in enumerate(found.stopped_by):
        colours[known[stop]] = COLOURS[k] if k < SHOWN else COLOURS[-1]
        if k < SHOWN:
            legend.append((COLOURS[k], f"{stop.text} ({100.0 * share:.{2 if share < 0.995 else 3}g} %)"))
    if len(found.stopped_by) > SHOWN:
        legend.append((COLOURS[-1], "other"))
    if (found.stops == SEAM).any():
        legend.append((COLOURS[-1], f"no border: {found.membership.stop(SEAM).text}"))
    return colours, legend


def _legend(figure: Figure, legend: list[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=text) for colour, text in legend]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False, title="what stops it"
    )


def _facet_codes(found: Workspace) -> NDArray[np.int32]:
    """A code for each facet: that of most of its corners."""
    codes = found.stops[found.simplices]
    if codes.shape[1] == 3:
        return np.where(codes[:, 1] == codes[:, 2], codes[:, 1], codes[:, 0])
    return np.asarray(codes[:, 0])


def _shades(colours: dict[int, str], codes: NDArray[np.int32], light: Array) -> Array:
    from matplotlib.colors import to_rgb

    table = {code: np.array(to_rgb(colour)) for code, colour in colours.items()}
    grey = np.array(to_rgb(COLOURS[-1]))
    rgb = np.array([table.get(int(code), grey) for code in codes]).reshape(-1, 3)
    return np.clip(rgb * light[:, None], 0.0, 1.0)


def _view(axes: Axes, found: Workspace, colours: dict[int, str]) -> None:
    """The border and the robot in parallel projection."""
    from matplotlib.collections import PolyCollection

    frame, offset = frame_of(found.domain)
    points = (found.corners - offset) @ frame
    polygons, robot_colours = facets(found.membership.robot.mechanism)
    view = View(np.vstack([points, *polygons]) if polygons else points)
    triangles = points[found.simplices]
    normal, light = shaded(triangles)
    away = normal @ view.back < 0.0  # only the far half, which leaves the robot visible
    seen = view.seen(triangles)
    rgb = _shades(colours, _facet_codes(found), light)
    order = np.argsort(seen[:, :, 2].mean(axis=1))
    for part, alpha in ((order[away[order]], 0.85), (order[~away[order]], 0.16)):
        if alpha < 0.5 and polygons:
            flat = [view.seen(p) for p in polygons]
            by_depth = np.argsort([p[:, 2].mean() for p in flat])
            shades = [robot_colours[k][:3] for k in by_depth]
            axes.add_collection(
                PolyCollection(
                    [flat[k][:, :2] for k in by_depth], facecolors=shades, edgecolors="none", rasterized=True
                )
            )
        axes.add_collection(
            PolyCollection(
                seen[part][:, :, :2],
                facecolors=np.c_[rgb[part], np.full(len(part), alpha)],
                edgecolors="none",
                rasterized=True,
                antialiaseds=False,
            )
        )
    axes.set_title("border, the near side transparent; robot at home", fontsize=9)
    frame_view(axes, view, frame, [c.label for c in found.domain.coordinates])


def _shadow(axes: Axes, found: Workspace, colours: dict[int, str]) -> None:
    """The border projected along the third coordinate, unless all three are lengths."""
    points = found.corners[:, :2]
    rgb = _shades(colours, _facet_codes(found), np.ones(len(found.simplices)))
    from matplotlib.collections import PolyCollection

    order = np.argsort(found.corners[found.simplices][:, :, 2].mean(axis=1))
    axes.add_collection(PolyCollection(list(points[found.simplices][order]), facecolors=rgb[order], rasterized=True))
    axes.autoscale_view()
    label(axes, found.domain.coordinates[:2])
    axes.set_title(f"seen along {found.domain.coordinates[2].label}", fontsize=9)


def cut_at(found: Workspace, axis: int, value: float) -> tuple[Array, NDArray[np.int32]]:
    """Segments (k, 2, 2) and stop codes (k,) where coordinate `axis` has a value [m, rad] on the border."""
    height = found.corners[:, axis] - value
    height = np.where(height == 0.0, 1e-15, height)
    above = height[found.simplices] > 0.0
    crossed = above.any(axis=1) & ~above.all(axis=1)
    triangles, codes = found.simplices[crossed], _facet_codes(found)[crossed]
    others = [k for k in range(3) if k != axis]
    ends, held = [], []
    for a, b in ((0, 1), (1, 2), (2, 0)):
        p, q = triangles[:, a], triangles[:, b]
        meets = (height[p] > 0.0) != (height[q] > 0.0)
        share = np.where(meets, height[p] / np.where(meets, height[p] - height[q], 1.0), 0.0)
        ends.append(found.corners[p][:, others] + share[:, None] * (found.corners[q] - found.corners[p])[:, others])
        held.append(meets)
    points, on = np.stack(ends, axis=1), np.stack(held, axis=1)
    pick = np.argsort(~on, axis=1, kind="stable")[:, :2]
    return np.take_along_axis(points, pick[:, :, None], axis=1), codes


def _slice(axes: Axes, found: Workspace, cut: int, colours: dict[int, str]) -> None:
    low, high = found.bounds
    value = through(found.domain.coordinates[cut], float(low[cut]), float(high[cut]))
    segments, codes = cut_at(found, cut, value)
    shown = [c for k, c in enumerate(found.domain.coordinates) if k != cut]
    draw_robot(axes, found.membership.robot, shown)
    _segments(axes, segments, codes, colours)
    label(axes, shown)
    held = found.domain.coordinates[cut]
    axes.set_title(f"slice at {held.label} = {value:.4g} {held.unit}", fontsize=9)


def _segments(axes: Axes, segments: Array, codes: NDArray[np.int32], colours: dict[int, str]) -> None:
    from matplotlib.collections import LineCollection

    shades = [colours.get(int(code), COLOURS[-1]) for code in codes]
    axes.add_collection(LineCollection(list(segments), colors=shades, linewidths=2.0, zorder=4))
    axes.autoscale_view()


def _flat(axes: Axes, found: Workspace, colours: dict[int, str]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    shown = list(found.domain.coordinates)
    rings = _rings(found.simplices)
    vertices = np.vstack([found.corners[[*ring, ring[0]]] for ring in rings])
    steps = np.concatenate([[Path.MOVETO, *[Path.LINETO] * len(ring)] for ring in rings])
    axes.add_patch(PathPatch(Path(vertices, steps), facecolor="#dfe9f3", edgecolor="none", zorder=1))
    draw_robot(axes, found.membership.robot, shown)
    _segments(axes, found.corners[found.simplices], _facet_codes(found), colours)
    label(axes, shown)
    axes.set_title(found.domain.in_words(), fontsize=9)


def _rings(sides: NDArray[np.int64]) -> list[list[int]]:
    """Closed polygons of sides (k, 2), each corner the start of one side and the end of one."""
    after = dict(sides.tolist())
    rings = []
    while after:
        start, at = after.popitem()
        ring = [start]
        while at != start and at in after:
            ring.append(at)
            at = after.pop(at)
        rings.append(ring)
    return rings


def _line(axes: Axes, found: Workspace, colours: dict[int, str]) -> None:
    ordered = np.argsort(found.corners[:, 0])
    values = found.corners[ordered, 0]
    for a, b in zip(values[::2], values[1::2], strict=True):
        axes.plot((a, b), (0.0, 0.0), color="#4477aa", lw=8, solid_capstyle="butt")
    for k in ordered:
        axes.plot(found.corners[k, 0], 0.0, "|", ms=24, mew=3, color=colours.get(int(found.stops[k]), INK))
    axes.set_yticks([])
    label(axes, list(found.domain.coordinates))


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    draw_robot(axes, membership.robot, shown)
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
