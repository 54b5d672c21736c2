# SPDX-License-Identifier: Apache-2.0
"""What all pictures share: figures that need no screen, axes with units, the robot's outline to scale."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import PICTURES, check_ending
from pkm_analysis.domain import Coordinate, Domain, TaskCoordinates
from pkm_analysis.requirements.grammar import familiar
from pkm_description.mechanism import Array
from pkm_description.picture import View, facets
from pkm_runtime.whole_files import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Polygons

    from pkm_analysis.analysed_robot import AnalysedRobot

DOTS = 130  # per inch
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb5500", "#88aa00", "#7766cc", "#999999")
INK = "#1d2733"
LIGHT = np.array([0.35, -0.5, 0.79])


def sheet(width: float, height: float) -> Figure:
    """An empty figure of matplotlib, size in inches, that needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write(figure: Figure, path: str | Path) -> Path:
    """Write a figure as .png, .svg or .pdf; `AnalysisError` for another extension."""
    path = Path(path)
    check_ending("picture", path, PICTURES)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as part:
        figure.savefig(part, dpi=DOTS)
    return path


def png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS)
    return buffer.getvalue()


def paint(
    axes: Axes, polygons: Sequence[Array], colours: Sequence[Any] | Array, depth: Sequence[float] | Array
) -> None:
    """Fill polygons (k, 2) each, the smallest depth first; of one value for each."""
    from matplotlib.collections import PolyCollection

    order = np.argsort(depth)
    outlines, shades = [polygons[k] for k in order], [colours[k] for k in order]
    axes.add_collection(PolyCollection(outlines, facecolors=shades, edgecolors="none", zorder=3, rasterized=True))


def draw_robot(axes: Axes, robot: AnalysedRobot, coordinates: Sequence[Coordinate]) -> None:
    """Draw a robot at home, to scale, over two coordinates; not at all where one of them rotates the platform."""
    task = robot.coordinates
    polygons, colours = facets(robot.mechanism)
    if any(c.unit != "m" for c in coordinates) or not polygons:
        return
    along = directions(coordinates, task)
    offset = np.array([c.home for c in coordinates]) - along @ task.kinematics.engine.home[:3]
    across = np.cross(along[0], along[1])
    outlines = [polygon @ along.T + offset for polygon in polygons]
    shades = [(*colour[:3], 0.5) for colour in colours]
    paint(axes, outlines, shades, [float((polygon @ across).mean()) for polygon in polygons])
    axes.update_datalim(np.concatenate(outlines))


def directions(coordinates: Sequence[Coordinate], task: TaskCoordinates) -> Array:
    """Directions (n, 3) in the base frame of prismatic coordinates."""
    home = np.array([c.home for c in task.all])
    rows = home + np.eye(len(home))[[task.all.index(c) for c in coordinates]]
    along = task.poses(rows)[0][:, :3] - task.poses(home[None])[0][:, :3]
    return np.asarray(along / np.linalg.norm(along, axis=1, keepdims=True))


def shaded(triangles: Array) -> tuple[Array, Array]:
    """Unit normals (n, 3) of triangles (n, 3, 3), and how bright each is."""
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return normal, 0.72 + 0.28 * np.abs(normal @ LIGHT)


def cut(corners: Array, triangles: NDArray[np.int64], axis: int, value: float) -> tuple[Array, NDArray[np.int64]]:
    """Segments (k, 2, 2) in which the plane where a coordinate has a value meets triangles, and which (k,)."""
    height = corners[:, axis] - value
    height = np.where(height == 0.0, 1e-15, height)
    above = height[triangles] > 0.0
    crossed = np.flatnonzero(above.any(axis=1) & ~above.all(axis=1))
    ends, meet = np.delete(corners, axis, axis=1), np.empty((len(crossed), 3, 2))
    on = np.empty((len(crossed), 3), dtype=bool)
    for side, (a, b) in enumerate(((0, 1), (1, 2), (2, 0))):
        p, q = triangles[crossed, a], triangles[crossed, b]
        on[:, side] = (height[p] > 0.0) != (height[q] > 0.0)
        share = np.where(on[:, side], height[p] / np.where(on[:, side], height[p] - height[q], 1.0), 0.0)
        meet[:, side] = ends[p] + share[:, None] * (ends[q] - ends[p])
    pick = np.argsort(~on, axis=1, kind="stable")[:, :2]
    return np.take_along_axis(meet, pick[:, :, None], axis=1), crossed


def outline(corners: Array, sides: NDArray[np.int64]) -> Polygons:
    """Closed polygons of sides (k, 2), each corner (n, 2) the start of one side and the end of one."""
    from matplotlib.path import Path as Polygons

    after, places, steps = dict(sides.tolist()), list[int](), list[Any]()
    while after:
        start, at = after.popitem()
        ring = [start]
        while at != start and at in after:
            ring.append(at)
            at = after.pop(at)
        places += [*ring, start]
        steps += [Polygons.MOVETO, *[Polygons.LINETO] * len(ring)]
    return Polygons(corners[places], steps)


def label(axes: Axes, coordinates: Sequence[Coordinate], robot: AnalysedRobot | None = None) -> None:
    """Label the axes in mm and deg, and use equal scales for lengths; with the robot at home, if one is given."""
    from matplotlib.ticker import MaxNLocator

    class Degrees(MaxNLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            return np.radians(super().tick_values(float(np.degrees(vmin)), float(np.degrees(vmax))))

    for axis, c in zip((axes.xaxis, axes.yaxis), coordinates, strict=False):
        unit, factor = familiar(c.unit)
        axis.set_label_text(f"{c.label} [{unit}]")
        if unit == "deg":
            axis.set_major_locator(Degrees(7, steps=[1, 2, 3, 4.5, 6, 9, 10]))
        axis.set_major_formatter(partial(_scaled, factor))
    if robot is not None:
        draw_robot(axes, robot, coordinates)
        axes.autoscale_view()
    if len(coordinates) > 1 and coordinates[0].unit == coordinates[1].unit:
        axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelsize=8)
    grid(axes)


def _scaled(factor: float, value: float, _: int | None) -> str:
    return f"{factor * value:.5g}"


def grid(axes: Axes, key: bool = False) -> None:
    """Draw a faint grid behind everything, and a key in the panel if asked for."""
    axes.grid(True, color="#d9dfe5", linewidth=0.5, zorder=0)
    if key:
        axes.legend(fontsize=8, frameon=False)


def legend(figure: Figure, handles: Sequence[Any], columns: int = 3, title: str = "") -> None:
    """A key below all panels."""
    options = {"ncols": columns, "fontsize": 8, "frameon": False, "title": title}
    figure.legend(handles=handles, loc="outside lower center", **options)


class Scene:
    """Three coordinates in parallel projection, with the robot to scale where all are lengths; else by their ranges."""

    def __init__(self, domain: Domain, robot: AnalysedRobot, points: Array) -> None:
        self.names = [c.label for c in domain.coordinates]
        self.lengths = all(unit == "m" for unit in domain.units)
        self.frame = np.diag(1.0 / np.maximum(np.ptp(points, axis=0), 1e-300))
        self.offset, self.robot, self.colours = points.min(axis=0), list[Array](), list[tuple[float, ...]]()
        if self.lengths:
            self.frame = directions(domain.coordinates, domain.task)
            home = np.array([c.home for c in domain.coordinates])
            self.offset = home - self.frame @ domain.task.kinematics.engine.home[:3]
            self.robot, self.colours = facets(robot.mechanism)
        self.view = View(np.vstack([self.placed(points), *self.robot]))

    def placed(self, points: Array) -> Array:
        """Points (..., 3) of the coordinates in the base frame."""
        return np.asarray((points - self.offset) @ self.frame)

    def paint(self, axes: Axes, triangles: Array, colours: Array) -> None:
        """Draw the robot and triangles (n, 3, 3), base frame, of colours (n, 4); arrows of the coordinates; a scale."""
        view, seen = self.view, self.view.seen(triangles)
        bodies = [view.seen(polygon) for polygon in self.robot]
        depth = np.array([*(float(polygon[:, 2].mean()) for polygon in bodies), *seen[:, :, 2].mean(axis=1)])
        shades = [*((*colour[:3], 0.9) for colour in self.colours), *map(tuple, colours)]
        paint(axes, [polygon[:, :2] for polygon in (*bodies, *seen)], shades, depth)
        half, size = 0.5 * view.size, view.size
        axes.set_xlim(view.middle[0] - half, view.middle[0] + half)
        axes.set(ylim=(view.middle[1] - half, view.middle[1] + half), aspect="equal")
        axes.set_axis_off()
        start = view.middle - 0.42 * size
        arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
        text: dict[str, Any] = {"fontsize": 9, "ha": "center", "color": INK}
        for direction, name in zip(self.frame if self.lengths else np.eye(3), self.names, strict=True):
            away = 0.1 * size * view.seen(direction)[:2]
            axes.annotate("", start + away, start, arrowprops=arrow)
            place = start + 1.25 * away
            axes.text(place[0], place[1], name, va="center", **text)
        if self.lengths:
            bar = max(one for one in (d * 10.0**p for p in range(-5, 4) for d in (1, 2, 5)) if one <= 0.25 * size)
            right, low = view.middle[0] + 0.45 * size, view.middle[1] - 0.46 * size
            axes.plot((right - bar, right), (low, low), color=INK, lw=2.5)
            length = f"{bar:g} m" if bar >= 1.0 else f"{1000.0 * bar:g} mm"
            axes.text(right - 0.5 * bar, low + 0.012 * size, length, va="bottom", **text)
