# SPDX-License-Identifier: Apache-2.0
"""Shapes of the `<visual>` elements of a description, and reasons for those that cannot be drawn.

A visual is no part of the model: a wrong one is left out. Files come from packages (`package://name/path`) and from the
description's own folder, from nowhere else.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.mechanism import Array, Described, Mechanism
from pkm_description.urdf.elements import numbers_of, origin_of
from pkm_description.urdf.xacro_expansion import PACKAGE
from pkm_description.urdf.xml_text import read_xml

GREY = (0.6, 0.6, 0.6, 1.0)
MOST = 2000  # visuals of a robot
MESH_BYTES = 50_000_000
_SCHEME = "package://"
_NUMBERS = {"box": ("size", 3), "sphere": ("radius", 1)}


@dataclass(frozen=True, eq=False)
class Visual:
    """A shape on a link: `shape` is box, cylinder, sphere or mesh, at `frame` (4, 4) in the link's frame.

    `size` [m]: edges of a box (3,); radius and length of a cylinder along z (2,); radius of a sphere (1,); for a mesh
    scale factors (3,) along x, y, z of the file `mesh`. `colour` is red, green, blue, opacity, 0 to 1.
    """

    link: str
    frame: Array
    shape: str
    size: Array
    colour: tuple[float, float, float, float]
    mesh: Path | None = None


def visuals_of(mechanism: Described) -> tuple[list[Visual], list[str]]:
    """Visuals of a robot, link by link, and a sentence for each one left out."""
    return shapes_of(read_xml(mechanism.urdf, "URDF text"), "visual", mechanism.source)


def collisions_of(mechanism: Mechanism) -> tuple[list[Visual], list[str]]:
    """Shapes of a robot's `<collision>` elements, as in `visuals_of`."""
    return shapes_of(read_xml(mechanism.urdf, "URDF text"), "collision", mechanism.source)


def shapes_of(root: ET.Element, kind: str, source: str) -> tuple[list[Visual], list[str]]:
    """Shapes of the elements `kind` of a URDF text that came from the file `source`, as in `visuals_of`."""
    palette = {
        material.get("name", ""): material for material in root.iter("material") if material.find("color") is not None
    }
    found: list[Visual] = []
    left_out: list[str] = []
    for link in root.findall("link"):
        name = link.get("name", "")
        for element in link.findall(kind):
            if len(found) == MOST:
                left_out.append(f"all but {MOST} {kind}s")
                return found, left_out
            try:
                found.append(_visual(name, element, palette, source))
            except DescriptionError as error:
                left_out.append(f"a {kind} of link {name!r}: {error.problem}")
    return found, left_out


def mesh_path(filename: str, source: str) -> Path:
    """File of a `<mesh filename>`, existing or not; `ValueError` outside packages and the description's folder."""
    text = filename.strip()
    package, separator, rest = text.removeprefix(_SCHEME).partition("/")
    if text.startswith(_SCHEME) and separator:
        folder, path = package_folder(package), rest
    elif "://" in text or ":" in text.split("/")[0]:
        raise ValueError(f"mesh {text[:80]!r} is not in a package: write package://name/path")
    elif not source:
        raise ValueError(f"mesh {text[:80]!r} has no package; a text has no folder, so write package://name/path")
    else:
        folder, path = Path(source).parent, text
    parts = PurePosixPath(path)
    if not path or parts.is_absolute() or ".." in parts.parts or "\\" in path or "\0" in path:
        raise ValueError(f"mesh {text[:80]!r} is outside its package or folder")
    return folder / parts


def package_folder(package: str) -> Path:
    """Share folder of an installed ROS package, or of this one wherever it is; `ValueError` if not installed."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        index = Path(prefix, "share", "ament_index", "resource_index", "packages")
        if prefix and package and Path(package).name == package and (index / package).is_file():
            return Path(prefix, "share", package)
    if package == PACKAGE:
        return Path(__file__).resolve().parents[2]
    raise ValueError(f"package {package[:80]!r} is not installed")


def _visual(link: str, element: ET.Element, palette: dict[str, ET.Element], source: str) -> Visual:
    shape = element.find("geometry/*")
    if shape is None:
        raise _unusable("it has no geometry")
    frame = origin_of(element, "")
    colour = _colour(element.find("material"), palette)
    if shape.tag == "mesh":
        try:
            path = mesh_path(shape.get("filename", ""), source)
            size = path.stat().st_size
        except FileNotFoundError as error:
            raise _unusable(f"mesh {shape.get('filename', '')!r} is not there: put the file there") from error
        except (ValueError, OSError) as error:
            raise _unusable(str(error)) from error
        if size > MESH_BYTES:
            raise _unusable(f"{path} has {size} bytes, more than {MESH_BYTES}")
        return Visual(link, frame, "mesh", numbers_of(shape.get("scale", "1 1 1"), "", "scale", 3), colour, path)
    if shape.tag == "cylinder":
        extent = np.concatenate([numbers_of(shape.get(key, ""), "", key, 1) for key in ("radius", "length")])
    elif shape.tag in _NUMBERS:
        key, count = _NUMBERS[str(shape.tag)]
        extent = numbers_of(shape.get(key, ""), "", key, count)
    else:
        raise _unusable(f"<{str(shape.tag)[:80]}> is not a URDF shape")
    if not (extent > 0.0).all():
        raise _unusable(f"the size of its {shape.tag} is not greater than zero")
    return Visual(link, frame, str(shape.tag), extent, colour)


def _unusable(problem: str) -> DescriptionError:
    return DescriptionError("", problem, "it is not drawn")


def _colour(material: ET.Element | None, palette: dict[str, ET.Element]) -> tuple[float, float, float, float]:
    if material is None:
        return GREY
    colour = material.find("color")
    if colour is None and material.get("name", "") in palette:
        colour = palette[material.get("name", "")].find("color")
    if colour is None:
        return GREY
    try:
        red, green, blue, opacity = np.clip(numbers_of(colour.get("rgba", ""), "", "rgba", 4), 0.0, 1.0)
    except DescriptionError:
        return GREY
    return float(red), float(green), float(blue), float(opacity)
