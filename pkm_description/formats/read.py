# SPDX-License-Identifier: Apache-2.0
"""From another tool's file to URDF+: which reader takes it, and what the user may name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pkm_description.description_error import DescriptionError
from pkm_description.formats.sdf_reader import read_sdf
from pkm_description.formats.spanning_tree import PARTS, tree_text
from pkm_description.mjcf.importer import import_mjcf
from pkm_description.urdf.xml_text import root_tag


def plus_text(source: str | Path, arguments: Mapping[str, str] | None = None, text: str = "") -> tuple[str, list[str]]:
    """URDF+ text of a text or a file (whose `text` is given), and what of it was not taken, in sentences.

    `arguments` may name `platform`, `base` and the `actuated` joints. Raises `DescriptionError` with the file's name.
    """
    given = dict(arguments or {})
    unknown = given.keys() - set(PARTS)
    if unknown:
        problem = f"unknown argument(s) {', '.join(sorted(unknown))}"
        raise DescriptionError("<mujoco>" if root_tag(text or str(source)) == "mujoco" else "arguments", problem,
                               f"other formats take {', '.join(PARTS)}")  # fmt: skip
    written = text or str(source)
    try:
        if root_tag(written) == "mujoco":
            if "actuated" in given:
                raise DescriptionError("<mujoco>", "its <actuator> says what is driven", "leave actuated out")
            return import_mjcf(source, **given), []
        assembly = read_sdf(written)
        return tree_text(assembly, given), assembly.notes
    except DescriptionError as error:
        if not text:
            raise
        raise DescriptionError(f"{source}: {error.element}", error.problem, error.remedy) from error
