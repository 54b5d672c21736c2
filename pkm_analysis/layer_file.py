# SPDX-License-Identifier: Apache-2.0
"""Layers: surfaces in the base frame, with names and units, as GLB files that the browser page and RViz show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError, check_ending
from pkm_analysis.domain import Domain
from pkm_description.mechanism import Array
from pkm_runtime.optional import optional_library
from pkm_runtime.whole_files import write_whole

GAMMA = 2.2  # of sRGB, approximately


class Sheet(NamedTuple):
    """A surface: name, corners (n, 3) [m] in the base frame, triangles (k, 3), colours (n, 4) from 0 to 255."""

    name: str
    corners: Array
    triangles: NDArray[np.int64]
    colours: NDArray[np.uint8]


def write_layer(path: str | Path, title: str, unit: str, frame: str, sheets: Sequence[Sheet], moving: int = 0) -> Path:
    """Write sheets in the frame of link `frame` as a .glb file; title, unit and frame go into its scene extras.

    `unit` is that of colours, "1" for names. Of a layer that moves, `moving` sheets in a row are one thing on its way:
    `NAME #0`, `NAME #1`, ... `AnalysisError` for another extension, nothing to show, or no trimesh.
    """
    path = Path(path)
    check_ending("layer", path, (".glb",))
    if not sheets:
        raise AnalysisError(f"layer {path.name}", f"{title} has no surface", "give other ranges")
    trimesh = optional_library("trimesh", "trimesh", "layers")
    scene = trimesh.Scene()
    scene.metadata.update(layer=title, unit=unit, frame=frame, moving=moving)
    for sheet in sheets:
        mesh = trimesh.Trimesh(sheet.corners, sheet.triangles, process=False)
        mesh.visual = _seen_through(trimesh, sheet.colours)
        scene.add_geometry(mesh, geom_name=sheet.name, node_name=sheet.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, scene.export(file_type="glb"))
    return path


def _seen_through(trimesh: Any, colours: NDArray[np.uint8]) -> Any:
    """Corner colours, two-sided and transparent: without a material files show neither."""
    material = trimesh.visual.material.PBRMaterial(
        alphaMode="BLEND", doubleSided=True, metallicFactor=0.0, roughnessFactor=1.0
    )
    visual = trimesh.visual.TextureVisuals(material=material)
    shades = colours.copy()
    shades[:, :3] = np.round(255.0 * (colours[:, :3] / 255.0) ** GAMMA)  # GLB colours are linear
    visual.vertex_attributes["color"] = shades
    return visual


def in_base_frame(domain: Domain, points: Array) -> Array:
    """Positions (n, 3) [m] in the base frame of points (n, d); `AnalysisError` for coordinates that are no lengths."""
    if any(unit != "m" for unit in domain.units):
        raise AnalysisError("layer", f"{', '.join(domain.labels)} are not three lengths", "vary x, y, z")
    return np.asarray(domain.poses(points)[0][:, :3])


class Layer(NamedTuple):
    """What a file holds: what it shows, unit, frame, and the sheets."""

    title: str
    unit: str
    frame: str
    sheets: list[Sheet]


def read_layer(path: Path) -> Layer:
    """Read a layer, of one that moves the first of its sheets; `AnalysisError`: the file is missing or no layer."""
    trimesh = optional_library("trimesh", "trimesh", "layers")
    try:
        scene = trimesh.load(str(path), force="scene", process=False)
        known = scene.metadata
        sheets = [
            Sheet(name, np.asarray(mesh.vertices), np.asarray(mesh.faces), _colours(mesh.visual))
            for k, (name, mesh) in enumerate(scene.geometry.items())
            if k % (known.get("moving") or 1) == 0
        ]
        return Layer(str(known["layer"]), str(known["unit"]), str(known["frame"]), sheets)
    except Exception as error:  # mesh readers raise arbitrary exceptions
        problem = f"{type(error).__name__}: {str(error)[:200]}"
        raise AnalysisError(f"layer {path.name}", problem, "write one with pkm analyse") from error


def _colours(visual: Any) -> NDArray[np.uint8]:
    if visual.kind == "texture":
        colours = np.array(visual.vertex_attributes["color"])
        colours[:, :3] = np.round(255.0 * (colours[:, :3] / 255.0) ** (1.0 / GAMMA))
        return colours
    return np.asarray(visual.vertex_colors)
