# SPDX-License-Identifier: Apache-2.0
"""A still picture of a robot at home, drawn with matplotlib from the primitives of its `<visual>` elements.

`python -m pkm_description.picture delta delta.png` writes one; no screen is needed.
"""

from __future__ import annotations

import itertools
import os
import sys
import xml.etree.ElementTree as ET

import numpy as np

from pkm_description.closure import ClosureModel
from pkm_description.load import load_mechanism
from pkm_description.mechanism import Array, Mechanism
from pkm_description.transforms import rotation_from_rpy, transform

SIDES = 14  # facets around a cylinder
LIGHT = np.array([0.4, -0.5, 0.77])


def link_poses(mechanism: Mechanism, joints: Array | None = None) -> dict[str, Array]:
    """Pose (4, 4) of every link in the base frame, at `joints` in the order of `home_joints` (default: home)."""
    model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
    values = mechanism.home_joints if joints is None else joints
    poses = model.forward(model.reduced(np.asarray(values)))[0]
    return {name: poses[index] for name, index in model.link_index.items()}


def extent(mechanism: Mechanism, joints: Array | None = None) -> tuple[Array, Array]:
    """Lowest and highest x, y, z (3,) of what is drawn, in the base frame; of the link frames where that is nothing.

    Meshes do not count. `joints` are as for `link_poses`.
    """
    poses = link_poses(mechanism, joints)
    polygons, _ = _polygons(mechanism, poses)
    points = np.concatenate(polygons) if polygons else np.array([pose[:3, 3] for pose in poses.values()])
    return points.min(0), points.max(0)


def draw(mechanism: Mechanism, path: str | os.PathLike[str], joints: Array | None = None, size: int = 600) -> None:
    """Write a picture (PNG, SVG, by the ending of `path`) of the robot, about `size` pixels wide.

    `joints` are values in the order of `mechanism.home_joints`; by default the robot stands at home.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    polygons, colours = _polygons(mechanism, link_poses(mechanism, joints))
    figure = pyplot.figure(figsize=(5, 5), dpi=size / 5)
    axes = figure.add_subplot(projection="3d")
    axes.add_collection3d(Poly3DCollection(polygons, facecolors=colours, edgecolors="none"), autolim=False)
    points = np.concatenate(polygons)
    middle, half = 0.5 * (points.max(0) + points.min(0)), 0.5 * float(np.ptp(points, axis=0).max())
    for setter, centre in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), middle, strict=True):
        setter(centre - half, centre + half)
    axes.set_box_aspect((1, 1, 1), zoom=1.2)
    flat = np.ptp(points[:, 2]) < 0.2 * np.ptp(points[:, 0])
    axes.view_init(elev=65.0 if flat else 18.0, azim=-90.0 if flat else -60.0)
    axes.set_axis_off()
    figure.savefig(path, bbox_inches="tight", pad_inches=0.0)
    pyplot.close(figure)


def _polygons(mechanism: Mechanism, poses: dict[str, Array]) -> tuple[list[Array], list[tuple[float, ...]]]:
    root = ET.fromstring(mechanism.urdf.strip())
    palette = {
        material.get("name", ""): _rgb(material)
        for material in root.iter("material")
        if material.find("color") is not None
    }
    polygons: list[Array] = []
    colours: list[tuple[float, ...]] = []
    for link in root.findall("link"):
        for visual in link.findall("visual"):
            material = visual.find("material")
            colour = palette.get(material.get("name", ""), (0.6, 0.6, 0.6)) if material is not None else (0.6, 0.6, 0.6)
            origin = visual.find("origin")
            local = np.eye(4)
            if origin is not None:
                xyz, rpy = (np.array(origin.get(key, "0 0 0").split(), dtype=float) for key in ("xyz", "rpy"))
                local = transform(xyz, rotation_from_rpy(rpy))
            placed = poses[link.get("name", "")] @ local
            for facet in _facets(visual.find("geometry")):
                corners = facet @ placed[:3, :3].T + placed[:3, 3]
                normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
                size = float(np.linalg.norm(normal))
                shade = 0.65 + 0.35 * abs(float(normal @ LIGHT)) / size if size > 0 else 1.0
                polygons.append(corners)
                colours.append(tuple(min(1.0, shade * channel) for channel in colour))
    return polygons, colours


def _rgb(material: ET.Element) -> tuple[float, ...]:
    colour = material.find("color")
    return tuple(float(v) for v in (colour.get("rgba", "0.6 0.6 0.6 1") if colour is not None else "").split()[:3])


def _facets(geometry: ET.Element | None) -> list[Array]:
    if geometry is None:
        return []
    cylinder, sphere, box = (geometry.find(tag) for tag in ("cylinder", "sphere", "box"))
    if cylinder is not None:
        radius, half = float(cylinder.get("radius", "0")), 0.5 * float(cylinder.get("length", "0"))
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
    if sphere is not None:
        radius = float(sphere.get("radius", "0"))
        theta, phi = np.linspace(0.0, np.pi, 7), np.linspace(0.0, 2.0 * np.pi, 11)

        def point(i: int, j: int) -> list[float]:
            return [np.sin(theta[i]) * np.cos(phi[j]), np.sin(theta[i]) * np.sin(phi[j]), np.cos(theta[i])]

        return [
            radius * np.array([point(i, j), point(i + 1, j), point(i + 1, j + 1), point(i, j + 1)])
            for i in range(6)
            for j in range(10)
        ]
    if box is not None:
        extent = 0.5 * np.array(box.get("size", "0 0 0").split(), dtype=float)
        corner = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * extent
        faces = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))
        return [corner[list(face)] for face in faces]
    return []


if __name__ == "__main__":
    draw(load_mechanism(sys.argv[1]), sys.argv[2])
