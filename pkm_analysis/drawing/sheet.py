# SPDX-License-Identifier: Apache-2.0
"""What all pictures share: figures that need no screen, axes with units, the robot's outline to scale."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.analysis_errors import PICTURES, check_ending
from pkm_analysis.domain import Coordinate, Domain, TaskCoordinates
from pkm_description.mechanism import Array
from pkm_description.picture import View, facets
from pkm_runtime.whole_files import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkm_analysis.analysed_robot import Robot

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


def directions(coordinates: Sequence[Coordinate], task: TaskCoordinates) -> Array | None:
    """Directions (2, 3) in the base frame of two prismatic coordinates; None where one rotates the platform."""
    if any(c.unit != "m" for c in coordinates):
        return None
    home = np.array([c.home for c in task.all])
    rows = np.tile(home, (3, 1))
    for k, c in enumerate(coordinates):
        rows[1 + k, task.all.index(c)] += 1.0
    poses, _ = task.poses(rows)
    along = poses[1:, :3] - poses[0, :3]
    return np.asarray(along / np.linalg.norm(along, axis=1, keepdims=True))


def draw_robot(axes: Axes, robot: Robot, coordinates: Sequence[Coordinate]) -> None:
    """Draw a robot at home, to scale, over two coordinates; not at all where one of them rotates the platform."""
    from matplotlib.collections import PolyCollection

    task = robot.coordinates
    along = directions(coordinates, task)
    polygons, colours = facets(robot.mechanism)
    if along is None or not polygons:
        return
    offset = np.array([c.home for c in coordinates]) - along @ task.kinematics.engine.home[:3]
    across = np.cross(along[0], along[1])
    order = np.argsort([float((polygon @ across).mean()) for polygon in polygons])
    outlines = [polygons[k] @ along.T + offset for k in order]
    shades = [(*colours[k][:3], 0.5) for k in order]
    axes.add_collection(PolyCollection(outlines, facecolors=shades, edgecolors="none", zorder=3, rasterized=True))
    axes.update_datalim(np.concatenate(outlines))


def shaded(triangles: Array) -> tuple[Array, Array]:
    """Unit normals (n, 3) of triangles (n, 3, 3), and how bright each is."""
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return normal, 0.72 + 0.28 * np.abs(normal @ LIGHT)


def label(axes: Axes, coordinates: Sequence[Coordinate]) -> None:
    """Label the axes, with units, and use equal scales for lengths."""
    axes.set_xlabel(f"{coordinates[0].label} [{coordinates[0].unit}]")
    if len(coordinates) > 1:
        axes.set_ylabel(f"{coordinates[1].label} [{coordinates[1].unit}]")
        if coordinates[0].unit == coordinates[1].unit:
            axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelsize=8)
    grid(axes)


def grid(axes: Axes) -> None:
    """Draw a faint grid behind everything."""
    axes.grid(True, color="#d9dfe5", linewidth=0.5, zorder=0)


def frame_of(domain: Domain) -> tuple[Array, Array]:
    """Base directions (3, 3) of three lengths, and their values at the origin: `(points - values) @ directions`."""
    pairs = [directions([c, c], domain.task) for c in domain.coordinates]
    frame = np.array([pair[0] for pair in pairs if pair is not None])
    return frame, np.array([c.home for c in domain.coordinates]) - frame @ domain.task.kinematics.engine.home[:3]


def frame_view(axes: Axes, view: View, frame: Array, names: Sequence[str], *, scale: bool = True) -> None:
    """Finish axes of a parallel projection, with arrows of directions (3, 3), and a scale bar if to `scale`."""
    half = 0.5 * view.size
    axes.set_xlim(view.middle[0] - half, view.middle[0] + half)
    axes.set_ylim(view.middle[1] - half, view.middle[1] + half)
    axes.set_aspect("equal")
    axes.set_axis_off()
    length = 0.1 * view.size
    start = view.middle - 0.42 * view.size
    for direction, name in zip(frame, names, strict=True):
        tip = start + length * view.seen(direction)[:2]
        axes.annotate(
            "", tip, start, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
        )
        place = start + 1.25 * (tip - start)
        axes.text(place[0], place[1], name, fontsize=9, ha="center", va="center", color=INK)
    if scale:
        bar = max(one for one in (d * 10.0**p for p in range(-5, 4) for d in (1, 2, 5)) if one <= 0.25 * view.size)
        right, low = view.middle[0] + 0.45 * view.size, view.middle[1] - 0.46 * view.size
        axes.plot((right - bar, right), (low, low), color=INK, lw=2.5)
        text = f"{bar:g} m" if bar >= 1.0 else f"{1000.0 * bar:g} mm"
        axes.text(right - 0.5 * bar, low + 0.012 * view.size, text, fontsize=9, ha="center", va="bottom", color=INK)
