# SPDX-License-Identifier: Apache-2.0
"""A picture of a robot along parallel rays: `python -m pkm_description.picture delta delta.png`."""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING

import numpy as np

from pkm_description.joint_geometry import child_frame
from pkm_description.load import load_mechanism
from pkm_description.mechanism import Array, Mechanism
from pkm_description.urdf.visuals import Visual, visuals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDES = 14  # facets around a cylinder
CUTS = 6  # of the edges of a box
LIGHT = np.array([0.4, -0.5, 0.77])


def link_poses(mechanism: Mechanism, joints: Array | None = None) -> dict[str, Array]:
    """Poses (4, 4) of all links in the base frame, by name, at joints (n,) [m, rad] in the order of `home_joints`."""
    values = mechanism.home_joints if joints is None else np.asarray(joints, dtype=np.float64)
    poses = {mechanism.base_link: np.eye(4)}
    at = 0
    for joint in mechanism.joints:
        position = values[at : at + joint.type.dof]
        poses[joint.child] = poses[joint.parent] @ joint.origin @ child_frame(joint, position)
        at += joint.type.dof
    return poses


def facets(mechanism: Mechanism, joints: Array | None = None) -> tuple[list[Array], list[tuple[float, ...]]]:
    """Corners (4, 3) [m] in the base frame of each facet of a robot's visuals, and their colours."""
    return _polygons(mechanism, link_poses(mechanism, joints))


def extent(mechanism: Mechanism, joints: Array | None = None) -> tuple[Array, Array]:
    """Lowest and highest x, y, z (3,) [m], base frame, of the visuals without meshes, else of the link frames."""
    poses = link_poses(mechanism, joints)
    polygons, _ = _polygons(mechanism, poses)
    points = np.concatenate(polygons) if polygons else np.array([pose[:3, 3] for pose in poses.values()])
    return points.min(0), points.max(0)


class View:
    """A view along parallel rays that holds `points` (n, 3) [m]; flat robots are seen from above."""

    def __init__(self, points: Array) -> None:
        spans = np.ptp(points, axis=0)
        flat = spans[2] < 0.2 * max(spans[0], spans[1])
        height, turn = np.radians((65.0, -90.0) if flat else (20.0, -60.0))
        self.right = np.array([-np.sin(turn), np.cos(turn), 0.0])
        self.back = np.array([np.cos(height) * np.cos(turn), np.cos(height) * np.sin(turn), np.sin(height)])
        self.up = np.cross(self.back, self.right)
        seen = self.seen(points)[:, :2]
        self.size = 1.12 * float(np.ptp(seen, axis=0).max()) or 1.0
        self.middle = 0.5 * (seen.max(0) + seen.min(0))

    def seen(self, points: Array) -> Array:
        """Right, up and towards the eye (..., 3) [m], of points (..., 3) in the base frame."""
        return np.stack((points @ self.right, points @ self.up, points @ self.back), axis=-1)


def held(mechanism: Mechanism, joints: Array | None = None) -> Array:
    """Corners (n, 3) [m], base frame, of the visuals and of the frames of base and platform."""
    poses = link_poses(mechanism, joints)
    polygons, _ = _polygons(mechanism, poses)
    return np.concatenate([*polygons, *(poses[link][None, :3, 3] for link in _framed(mechanism))])


def paint(axes: Axes, mechanism: Mechanism, view: View, joints: Array | None = None) -> None:
    """Draw visuals, frames of base and platform, and a scale bar into square axes."""
    from matplotlib.collections import PolyCollection

    poses = link_poses(mechanism, joints)
    polygons, colours = _polygons(mechanism, poses)
    seen = [view.seen(polygon) for polygon in polygons]
    order = np.argsort([polygon[:, 2].mean() for polygon in seen])  # the farthest first
    shades = [colours[k] for k in order]
    axes.add_collection(
        PolyCollection([seen[k][:, :2] for k in order], facecolors=shades, edgecolors=shades, linewidths=0.3)
    )
    base, platform = (poses[link] for link in _framed(mechanism))
    together = float(np.linalg.norm(view.seen(platform[:3, 3] - base[:3, 3])[:2])) < 0.05 * view.size
    _draw_frame(axes, view, base, "" if together else "base")
    _draw_frame(axes, view, platform, "base, platform" if together else "platform")
    _draw_scale(axes, view)
    axes.set_xlim(view.middle[0] - 0.5 * view.size, view.middle[0] + 0.5 * view.size)
    axes.set_ylim(view.middle[1] - 0.5 * view.size, view.middle[1] + 0.5 * view.size)
    axes.set_aspect("equal")
    axes.set_axis_off()


def draw(mechanism: Mechanism, path: str | os.PathLike[str], joints: Array | None = None, size: int = 840) -> None:
    """Write a square picture of a robot, PNG or SVG by its ending, `size` in pixels."""
    figure, axes = canvas(size)
    paint(axes, mechanism, View(held(mechanism, joints)), joints)
    figure.savefig(path)


def canvas(size: int, inches: float = 6.0) -> tuple[Figure, Axes]:
    """Figure and axes of an empty square picture of `size` pixels; fewer `inches` enlarge text and lines."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(inches, inches), dpi=size / inches, facecolor="white")
    FigureCanvasAgg(figure)
    return figure, figure.add_axes((0.0, 0.0, 1.0, 1.0))


def _framed(mechanism: Mechanism) -> tuple[str, str]:
    return mechanism.base_link, mechanism.platform_link


def _draw_frame(axes: Axes, view: View, pose: Array, name: str) -> None:
    origin = view.seen(pose[:3, 3])
    length = 0.11 * view.size
    for letter, colour, axis in zip("xyz", ("#d62728", "#1f9d2c", "#1f4fd6"), pose[:3, :3].T, strict=True):
        tip = view.seen(pose[:3, 3] + length * axis)
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.6, "shrinkA": 0.0, "shrinkB": 0.0, "mutation_scale": 9.0}
        axes.annotate("", (tip[0], tip[1]), (origin[0], origin[1]), arrowprops=arrow, zorder=5)
        place = origin[:2] + 1.18 * (tip[:2] - origin[:2])
        axes.text(place[0], place[1], letter, color=colour, fontsize=9, ha="center", va="center", zorder=6)
    axes.text(
        origin[0], origin[1] - 0.03 * view.size, name, fontsize=10, ha="center", va="top", zorder=6, color="#222222"
    ).set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1.0})


def _draw_scale(axes: Axes, view: View) -> None:
    """A bar of a round length, a fifth of the picture at most, in its lower left corner."""
    rounds = [digit * 10.0**power for power in range(-5, 4) for digit in (1, 2, 5)]
    length = max(one for one in rounds if one <= 0.22 * view.size)
    left = view.middle[0] - 0.47 * view.size
    low = view.middle[1] - 0.46 * view.size
    axes.plot((left, left + length), (low, low), color="#222222", lw=2.5, solid_capstyle="butt", zorder=6)
    for end in (left, left + length):
        axes.plot((end, end), (low, low + 0.012 * view.size), color="#222222", lw=1.2, zorder=6)
    text = f"{length:g} m" if length >= 1.0 else f"{1000.0 * length:g} mm"
    axes.text(left + 0.5 * length, low + 0.018 * view.size, text, fontsize=10, ha="center", va="bottom", zorder=6)


def _polygons(mechanism: Mechanism, poses: dict[str, Array]) -> tuple[list[Array], list[tuple[float, ...]]]:
    polygons: list[Array] = []
    colours: list[tuple[float, ...]] = []
    for visual in visuals_of(mechanism)[0]:
        placed = poses[visual.link] @ visual.frame
        for facet in _facets(visual):
            corners = facet @ placed[:3, :3].T + placed[:3, 3]
            normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
            size = float(np.linalg.norm(normal))
            shade = 0.65 + 0.35 * abs(float(normal @ LIGHT)) / size if size > 0 else 1.0
            polygons.append(corners)
            colours.append(tuple(min(1.0, shade * channel) for channel in visual.colour[:3]))
    return polygons, colours


def _facets(visual: Visual) -> list[Array]:
    """Quadrilaterals (4, 3) of a shape in its own frame; none of a mesh."""
    if visual.shape == "cylinder":
        radius, half = float(visual.size[0]), 0.5 * float(visual.size[1])
        angles = np.linspace(0.0, 2.0 * np.pi, SIDES + 1)
        ring = radius * np.stack((np.cos(angles), np.sin(angles)), axis=1)
        low, high = (np.column_stack((ring, np.full(len(ring), level))) for level in (-half, half))
        # Long bars are cut across so that the painter's algorithm of matplotlib sorts them right.
        cuts = np.linspace(0.0, 1.0, max(2, min(12, int(half / max(radius, 1e-6) / 2) + 2)))
        # All facets are quadrilaterals, those of the caps with two corners in one: matplotlib dislikes a mixture.
        # Caps of wide discs are cut into rings for the same reason.
        shares = np.linspace(0.0, 1.0, 2 if radius < 2.0 * half else CUTS + 1)
        circles = [[end * (share, share, 1.0) for share in shares] for end in (low, high)]
        rings = [pair for cap in circles for pair in itertools.pairwise(cap)]
        facets = [np.array([x[i], x[i + 1], y[i + 1], y[i]]) for y, x in rings for i in range(SIDES)]
        for lower, upper in itertools.pairwise(cuts):
            first, second = low + lower * (high - low), low + upper * (high - low)
            facets += [np.array([first[i], first[i + 1], second[i + 1], second[i]]) for i in range(SIDES)]
        return facets
    if visual.shape == "sphere":
        radius = float(visual.size[0])
        theta, phi = np.linspace(0.0, np.pi, 7), np.linspace(0.0, 2.0 * np.pi, 11)

        def point(i: int, j: int) -> list[float]:
            return [np.sin(theta[i]) * np.cos(phi[j]), np.sin(theta[i]) * np.sin(phi[j]), np.cos(theta[i])]

        return [
            radius * np.array([point(i, j), point(i + 1, j), point(i + 1, j + 1), point(i, j + 1)])
            for i in range(6)
            for j in range(10)
        ]
    if visual.shape == "box":
        corner = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.5 * visual.size
        faces = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))
        return [tile for face in faces for tile in _tiles(corner[list(face)])]
    return []


def _tiles(face: Array) -> Array:
    """A quadrilateral (4, 3) cut into (n, 4, 3), small enough to be sorted by depth."""
    u, v = np.meshgrid(*2 * (np.linspace(0.0, 1.0, CUTS + 1),), indexing="ij")
    a, b, c, d = face
    grid = a + u[..., None] * (b - a) + v[..., None] * (d - a) + (u * v)[..., None] * (a - b + c - d)
    corners = np.stack((grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]), axis=2)
    return np.asarray(corners.reshape(-1, 4, 3))


if __name__ == "__main__":
    draw(load_mechanism(sys.argv[1]), sys.argv[2])
