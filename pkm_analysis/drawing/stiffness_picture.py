# SPDX-License-Identifier: Apache-2.0
"""A robot that gives way, its displacements enlarged: every beam with its bending, in colour by its share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.drawing.sheet import INK, sheet
from pkm_analysis.stiffness.elastic_model import ElasticModel
from pkm_analysis.stiffness.stiffness import Stiffness
from pkm_description.mechanism import Array
from pkm_description.picture import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGE = 0.08  # of the robot's size: the largest displacement that is drawn
POINTS = 13  # along a beam


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
    """Displacements of points (..., 3) of a rigid node."""
    return np.asarray(twist[:3] + np.cross(twist[3:], points - origin))


def bent_beams(model: ElasticModel, moved: Array) -> list[tuple[Array, Array]]:
    """Points (n, 3) of every beam, and their displacements for those of the nodes (n_nodes, 6) at the platform's
    origin: cubic across it, as a beam without a load between bends.
    """
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
