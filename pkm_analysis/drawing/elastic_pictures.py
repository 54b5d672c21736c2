# SPDX-License-Identifier: Apache-2.0
"""An elastic robot, displacements enlarged: under load, and its vibrations as pictures, as SVG and as a layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pkm_analysis.drawing.sheet import COLOURS, INK, sheet
from pkm_analysis.layer_file import Sheet, write_layer
from pkm_analysis.stiffness.elastic_model import ElasticModel
from pkm_analysis.stiffness.stiffness import Stiffness
from pkm_analysis.stiffness.stiffness_files import ModeShapes
from pkm_description.mechanism import Array
from pkm_description.picture import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LARGE = 0.08  # of the robot's size: the largest displacement that is drawn
POINTS = 13  # along a beam
GREY = "#c3cad2"
PERIOD = 1.6  # s, of the slowest vibration that moves in a page; the others are as much faster, up to three times
FRAMES = 9  # from one end of a vibration to the other
SIDES = 6  # of a beam's tube
PANEL = 420.0  # pixels


def stiffness_picture(found: Stiffness) -> Figure:
    """Draw the robot at rest in grey, and under weight, payload and wrench in colour."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    model, moved = found.model, found.under_load.nodes[:, :, 0]
    places = [np.array([b.piece.start, b.piece.end]) for b in model.beams] + [j.point[None] for j in model.joints]
    points = np.concatenate([*places, model.origin[None]])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    largest = max((np.linalg.norm(d, axis=1).max() for _, d in bent_beams(model, moved)), default=0.0)
    largest = max(largest, float(np.linalg.norm(moved[model.platform, :3])))
    factor = 1.0 if largest == 0.0 else 10.0 ** np.floor(np.log10(LARGE * size / largest))
    factor *= max(k for k in (1.0, 2.0, 5.0) if k == 1.0 or k * factor * largest <= LARGE * size) if largest else 1.0
    view = View(points)
    direction, _ = found.softest
    shares = found.share(direction)
    norm = Normalize(0.0, 100.0 * max([v for (kind, _), v in shares.items() if kind == "link"], default=1.0) or 1.0)
    shade = ScalarMappable(norm, "plasma_r")
    figure = sheet(8.5, 7.0)
    axes = figure.subplots()
    for curve, displacement in rigid_lines(model, moved):
        axes.plot(*view.seen(curve)[:, :2].T, color="#c3cad2", lw=1.0, zorder=1)
        axes.plot(*view.seen(curve + factor * displacement)[:, :2].T, color=INK, lw=1.0, zorder=3)
    for beam, (curve, displacement) in zip(model.beams, bent_beams(model, moved), strict=True):
        axes.plot(*view.seen(curve)[:, :2].T, color="#c3cad2", lw=4.0, zorder=1, solid_capstyle="round")
        colour = shade.to_rgba(np.array(100.0 * shares.get(("link", beam.piece.link), 0.0)))
        axes.plot(*view.seen(curve + factor * displacement)[:, :2].T, color=colour, lw=3.0, zorder=4)
    for spring in model.springs:
        ends = zip(spring.joins, (spring.point, spring.end), strict=True)
        line = np.array([end + factor * _at(moved[node], end, model.origin) for node, end in ends])
        axes.plot(*view.seen(line)[:, :2].T, ":", color=INK, lw=2.0, zorder=3)
    for joint in model.joints:
        at = joint.point + factor * _at(moved[joint.joins[1]], joint.point, model.origin)
        axes.plot(*view.seen(at[None])[:, :2].T, "o", color="white", mec=INK, ms=4, zorder=5)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.margins(0.06)
    figure.colorbar(shade, ax=axes, shrink=0.6, label="share of the link in the softest direction [%]")
    load = "weight" + f", payload {found.payload:g} kg" * bool(found.payload) + ", load" * bool(found.wrench.any())
    moves = 1e6 * np.linalg.norm(moved[model.platform, :3])
    text = f"{found.robot.name} under {load}: the platform moves {moves:.3g} um; drawn {factor:g} times as large"
    axes.set_title(text, fontsize=10, color=INK)
    return figure


def _at(twist: Array, points: Array, origin: Array) -> Array:
    return np.asarray(twist[:3] + np.cross(twist[3:], points - origin))


def bent_beams(model: ElasticModel, moved: Array) -> list[tuple[Array, Array]]:
    """Points (n, 3) of every beam, and their displacements for those of the nodes (n_nodes, 6): cubic across it."""
    curves, origin = [], model.origin
    s = np.linspace(0.0, 1.0, POINTS)[:, None]
    for beam in model.beams:
        start, end = beam.piece.start, beam.piece.end
        (a, b), along = (moved[node] for node in beam.joins), end - start
        first, second = _at(a, start, origin), _at(b, end, origin)
        turned, back = np.cross(a[3:], along), np.cross(b[3:], along)
        cubic = (2 * s**3 - 3 * s**2 + 1) * first + (3 * s**2 - 2 * s**3) * second
        curves.append((start + s * along, cubic + (s**3 - 2 * s**2 + s) * turned + (s**3 - s**2) * back))
    return curves


def rigid_lines(model: ElasticModel, moved: Array) -> list[tuple[Array, Array]]:
    """Lines of every rigid node, from its middle to what it ties together, and their displacements, as `bent_beams`."""
    tied: list[list[Array]] = [[] for _ in model.nodes]
    for beam in model.beams:
        for node, point in zip(beam.joins, (beam.piece.start, beam.piece.end), strict=True):
            tied[node].append(point)
    for joint in model.joints:
        for node in joint.joins:
            tied[node].append(joint.point)
    tied[model.platform].append(model.origin)
    lines = []
    for node, points in enumerate(tied[1:], start=1):
        middle = np.mean(points, axis=0) if points else None
        for point in points:
            line = np.array([middle, point])
            lines.append((line, _at(moved[node], line, model.origin)))
    return lines


class Swing(NamedTuple):
    """What moves in one vibration: lines at rest (n, 3), and how far they go to either side, the largest `LARGE`."""

    beams: list[tuple[Array, Array]]
    rigid: list[tuple[Array, Array]]


def swings(found: ModeShapes) -> tuple[list[Swing], Array, str]:
    """Each vibration, points (n, 3) that hold the robot and all displacements, and how far that is in words."""
    of = found.of
    every: list[Swing] = []
    points = np.concatenate([np.array([b.piece.start, b.piece.end]) for b in of.model.beams] or [np.zeros((0, 3))])
    points = np.concatenate([points, *(j.point[None] for j in of.model.joints), of.model.origin[None]])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    for shape in np.moveaxis(found.shapes, 2, 0):
        beams, rigid = bent_beams(of.model, shape), rigid_lines(of.model, shape)
        factor = LARGE * size / max(float(np.linalg.norm(moved, axis=1).max()) for _, moved in beams + rigid)
        every.append(Swing(*([(line, factor * moved) for line, moved in lines] for lines in (beams, rigid))))
    ends = [line + side * moved for one in every for line, moved in one.beams + one.rigid for side in (-1.0, 1.0)]
    return every, np.concatenate([points, *ends]), f"largest displacement drawn as {1e3 * LARGE * size:.3g} mm"


def mode_picture(found: ModeShapes) -> Figure:
    """Each vibration at one end of its way, in colour, over the robot at rest in grey."""
    every, points, drawn = swings(found)
    view = View(points)
    figure = sheet(9.0, 9.0 if len(every) > 2 else 5.0)
    panels = figure.subplots(2 if len(every) > 2 else 1, 2, squeeze=False).ravel()
    for axes in panels:
        axes.set_axis_off()
    for axes, one, name, colour in zip(panels, every, found.names, COLOURS, strict=False):
        for lines, wide in ((one.rigid, 1.0), (one.beams, 3.0)):
            for line, moved in lines:
                axes.plot(*view.seen(line)[:, :2].T, color=GREY, lw=wide, zorder=1, solid_capstyle="round")
                shade = INK if lines is one.rigid else colour
                axes.plot(*view.seen(line + moved)[:, :2].T, color=shade, lw=wide, zorder=3)
        axes.set_aspect("equal")
        for set_limits, middle in zip((axes.set_xlim, axes.set_ylim), view.middle, strict=True):
            set_limits(middle - 0.5 * view.size, middle + 0.5 * view.size)
        axes.set_title(name, fontsize=10, color=INK)
    figure.suptitle(f"{found.of.robot.name}, drives held: amplitude arbitrary, {drawn}", fontsize=10, color=INK)
    return figure


def moving_picture(found: ModeShapes) -> str:
    """The same as an SVG picture in which each line goes from one end of its way to the other and back."""
    every, points, drawn = swings(found)
    view = View(points)
    scale, panels = PANEL / view.size, []

    def places(line: Array) -> str:
        seen = view.seen(line)[:, :2] - view.middle
        return " ".join(f"{PANEL / 2 + scale * x:.1f},{PANEL / 2 - scale * y:.1f}" for x, y in seen)

    for k, (one, name) in enumerate(zip(every, found.names, strict=True)):
        period = PERIOD / min(3.0, float(found.frequency[k] / found.frequency[0]))
        drawing = [f'<text x="{PANEL / 2}" y="18" text-anchor="middle" fill="{INK}">{name}</text>']
        for colour, wide, lines in ((INK, 1.2, one.rigid), (COLOURS[k], 3.0, one.beams)):
            drawing += [
                f'<polyline points="{places(line)}" stroke="{GREY}" stroke-width="{wide}"/>' for line, _ in lines
            ]
            for line, moved in lines:
                to, back = places(line + moved), places(line - moved)
                drawing.append(
                    f'<polyline points="{to}" stroke="{colour}" stroke-width="{wide}">'
                    f'<animate attributeName="points" values="{to};{back};{to}" dur="{period:.2f}s" '
                    'calcMode="spline" keyTimes="0;.5;1" keySplines=".3642 0 .6358 1;.3642 0 .6358 1" '
                    'repeatCount="indefinite"/></polyline>'
                )  # these splines are a cosine, to a hundredth
        panels.append(f'<g transform="translate({PANEL * (k % 2)},{24 + PANEL * (k // 2)})">{"".join(drawing)}</g>')
    high = 24 + PANEL * ((len(every) + 1) // 2)
    return (
        f'<svg viewBox="0 0 {2 * PANEL} {high}" font-family="system-ui" font-size="13" fill="none" '
        f'stroke-linecap="round"><text x="8" y="16" fill="{INK}">Amplitude and speed are arbitrary: {drawn}</text>'
        f"{''.join(panels)}</svg>"
    )


def write_moving_layer(found: ModeShapes, path: str | Path) -> Path:
    """Write each vibration as `FRAMES` surfaces, tubes of the beams as thick as they are, from one end to the other."""
    every, _, drawn = swings(found)
    radii = [np.sqrt(beam.piece.section.A / np.pi) for beam in found.of.model.beams]
    sheets = []
    for k, (one, name) in enumerate(zip(every, found.names, strict=True)):
        colour = [int(COLOURS[k][i : i + 2], 16) for i in (1, 3, 5)]
        thin = 0.3 * min(radii, default=1e-3)
        lines = [*zip(one.beams, radii, strict=True), *((line, thin) for line in one.rigid)]
        for frame, share in enumerate(np.cos(np.linspace(0.0, np.pi, FRAMES))):
            tubes = [_tube(line + share * moved, radius) for (line, moved), radius in lines]
            tubes = [tube for tube in tubes if len(tube[0])]
            starts = np.cumsum([0, *(len(corners) for corners, _ in tubes)])
            corners = np.concatenate([corners for corners, _ in tubes])
            triangles = np.concatenate([sides + at for (_, sides), at in zip(tubes, starts, strict=False)])
            colours = np.tile(np.array([*colour, 230], dtype=np.uint8), (len(corners), 1))
            sheets.append(Sheet(f"{name} #{frame}", corners, triangles, colours))
    robot = found.of.robot
    title = f"vibrations of {robot.name}, {drawn}"
    return write_layer(path, title, "1", robot.mechanism.base_link, sheets, moving=FRAMES)


def _tube(line: Array, radius: float) -> tuple[Array, Array]:
    """Corners and triangles of a tube around a line (n, 3); none where it has no length."""
    along = np.gradient(line, axis=0)
    length = np.linalg.norm(along, axis=1, keepdims=True)
    if length.min() < 1e-12:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    along = along / length
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along.mean(axis=0)))])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    ring = np.cos(angles)[:, None, None] * across + np.sin(angles)[:, None, None] * np.cross(along, across)
    corners = (line + radius * ring).transpose(1, 0, 2).reshape(-1, 3)
    step, side = np.meshgrid(np.arange(len(line) - 1), np.arange(SIDES), indexing="ij")
    a, b = (SIDES * step + side).ravel(), (SIDES * step + (side + 1) % SIDES).ravel()
    return corners, np.concatenate([np.stack([a, b, a + SIDES], 1), np.stack([b, b + SIDES, a + SIDES], 1)])
