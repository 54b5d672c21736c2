# SPDX-License-Identifier: Apache-2.0
"""From another tool's file to URDF+: which reader takes it, and what the user may name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pkm_description.description_error import DescriptionError
from pkm_description.formats import USD_HEAD, YAML
from pkm_description.formats.bodies_and_joints import Assembly
from pkm_description.formats.mjcf_importer import read_mjcf
from pkm_description.formats.rounding import settled
from pkm_description.formats.sdf import read_sdf
from pkm_description.formats.spanning_tree import tree_text
from pkm_description.formats.urdf_dialects import read_loops_file, read_urdf
from pkm_description.formats.usd import read_usd
from pkm_description.urdf import urdf_plus, xacro_expansion
from pkm_description.urdf.xml_text import read_file, root_tag


def assembly_of(text: str, path: Path | None = None) -> Assembly:
    """Bodies and joints of a text, `path` its file, with as many loops and platforms as it has."""
    tag = root_tag(text)
    if path is not None and path.suffix in YAML:
        return read_loops_file(path, text, _urdf_text)
    if text.lstrip().startswith(USD_HEAD):
        return read_usd(text, path)
    if tag == "mujoco":
        return read_mjcf(text, path)
    return read_sdf(text) if tag == "sdf" else read_urdf(text, str(path or ""))


def plus_text(text: str, arguments: Mapping[str, str] | None = None, path: Path | None = None) -> tuple[str, list[str]]:
    """URDF+ text of a text, `path` its file, and what of it was not taken; `arguments` as `tree_text` has them."""
    try:
        assembly = assembly_of(text, path)
        for tag, number in (
            ("link", len(assembly.bodies) - 1),
            ("joint", len(assembly.joints) - urdf_plus.PARTS["loop"]),
        ):
            urdf_plus.check_number(tag, number)  # before the search for a tree in them, which would take seconds
        plus, notes = settled(tree_text(assembly, arguments))
        return plus, [*assembly.notes, *notes]
    except DescriptionError as error:
        if path is None:
            raise
        raise error.of_file(path) from error.__cause__


def _urdf_text(path: Path) -> str:
    text = read_file(path)
    xacro = path.suffix == ".xacro" or xacro_expansion.needs_expansion(text)
    return xacro_expansion.expand_file(path, {}) if xacro else text
