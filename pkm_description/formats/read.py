# SPDX-License-Identifier: Apache-2.0
"""From another tool's file to URDF+: which reader takes it, and what the user may name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pkm_description.description_error import DescriptionError
from pkm_description.formats.bodies_and_joints import Assembly
from pkm_description.formats.sdf_reader import read_sdf
from pkm_description.formats.spanning_tree import tree_text
from pkm_description.mjcf.importer import read_mjcf
from pkm_description.urdf.xml_text import root_tag


def assembly_of(source: str | Path, text: str = "") -> Assembly:
    """Bodies and joints of a text or a file (whose `text` is given), with as many loops and platforms as it has."""
    written, path = text or str(source), Path(source) if text else None
    return read_mjcf(written, path) if root_tag(written) == "mujoco" else read_sdf(written)


def plus_text(source: str | Path, arguments: Mapping[str, str] | None = None, text: str = "") -> tuple[str, list[str]]:
    """URDF+ text of a text or a file (whose `text` is given), and what of it was not taken, in sentences.

    `arguments` may name `platform`, `base` and the `actuated` joints. Raises `DescriptionError` with the file's name.
    """
    try:
        assembly = assembly_of(source, text)
        return tree_text(assembly, arguments), assembly.notes
    except DescriptionError as error:
        if not text:
            raise
        raise DescriptionError(f"{source}: {error.element}", error.problem, error.remedy) from error
