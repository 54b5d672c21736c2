# SPDX-License-Identifier: Apache-2.0
"""A still picture of a robot at home, drawn with matplotlib from the primitives of its `<visual>` elements.

`python -m pkm_description.picture delta delta.png` writes one; no screen is needed.
"""

from __future__ import annotations

import itertools
import os
import sys

import numpy as np

from pkm_description.joint_geometry import child_frame
from pkm_description.load import load_mechanism
from pkm_description.mechanism import Array, Mechanism
from pkm_description.urdf.visuals import Visual, visuals_of

SIDES = 14  # facets around a cylinder
LIGHT = np.array([0.4, -0.5, 0.77])


def link_poses(mechanism: Mechanism, joints: Array | None = None) -> dict[str, Array]:
    """Where every link stands.

    Args:
        mechanism: the robot.
        joints: positions (n,) [m, rad] in the order of `mechanism.home_joints`; home by default.

    Returns:
        Pose (4, 4) of every link in the base frame, by name.
    """
    values = mechanism.home_joints if joints is None else np.asarray(joints, dtype=np.float64)
    poses = {mechanism.base_link: np.eye(4)}
    at = 0
    for joint in mechanism.joints:
        position = values[at : at + joint.type.dof]
        poses[joint.child] = poses[joint.parent] @ joint.origin @ child_frame(joint, position)
        at += joint.type.dof
    return poses


def extent(mechanism: Mechanism, joints: Array | None = None) -> tuple[Array, Array]:
    """How far a robot reaches in the picture. Meshes do not count.

    Args:
        mechanism: the robot.
        joints: as for `link_poses`.

    Returns:
        Lowest and highest x, y, z [m], (3,) each, in the base frame, of what is drawn; of the link frames where that is
        nothing.
    """
    poses = link_poses(mechanism, joints)
    polygons, _ = _polygons(mechanism, poses)
    points = np.concatenate(polygons) if polygons else np.array([pose[:3, 3] for pose in poses.values()])
    return points.min(0), points.max(0)


def draw(mechanism: Mechanism, path: str | os.PathLike[str], joints: Array | None = None, size: int = 600) -> None:
    """Write a picture of a robot.

    Args:
        mechanism: the robot.
        path: the file, PNG or SVG by its ending.
        joints: as for `link_poses`.
        size: width in pixels, about.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    polygons, colours = _polygons(mechanism, link_poses(mechanism, joints))
    figure = pyplot.figure(figsize=(5, 5), dpi=size / 5)
    axes = figure.add_subplot(projection="3d")
    if polygons:
        axes.add_collection3d(Poly3DCollection(polygons, facecolors=colours, edgecolors="none"), autolim=False)
    points = np.array(extent(mechanism, joints))
    middle, half = 0.5 * (points.max(0) + points.min(0)), 0.5 * float(np.ptp(points, axis=0).max()) or 1.0
    for setter, centre in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), middle, strict=True):
        setter(centre - half, centre + half)
    axes.set_box_aspect((1, 1, 1), zoom=1.2)
    flat = np.ptp(points[:, 2]) < 0.2 * np.ptp(points[:, 0])
    axes.view_init(elev=65.0 if flat else 18.0, azim=-90.0 if flat else -60.0)
    axes.set_axis_off()
    figure.savefig(path, bbox_inches="tight", pad_inches=0.0)
    pyplot.close(figure)


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
        caps = ((ring, np.array([0.0, 0.0, level])) for ring, level in ((low, -half), (high, half)))
        facets = [np.array([ring[i], ring[i + 1], c, c]) for ring, c in caps for i in range(SIDES)]
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
        return [corner[list(face)] for face in faces]
    return []


if __name__ == "__main__":
    draw(load_mechanism(sys.argv[1]), sys.argv[2])
