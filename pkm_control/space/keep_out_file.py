# SPDX-License-Identifier: Apache-2.0
"""The file of keep-out places and the tool (YAML). `docs/keep_out.md` has every key."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pkm_control.space.keep_out import MARGIN, KeepOuts, RoundedBox, capsule
from pkm_description.rotations import rotation_from_rpy
from pkm_runtime.yaml_section import Section, read_yaml

_LENGTH = (0.0, 1e6)  # m


@lru_cache(maxsize=4)
def read_keep_outs(path: str) -> KeepOuts | None:
    """Read the file; None for an empty path. Raises `ConfigurationError` where it cannot be read or used."""
    if not path:
        return None
    source, values = read_yaml(path)
    top = Section(source, "", values)
    margin = top.number("margin", MARGIN, (1e-5, 10.0))
    places = {str(name): _box(Section(source, f"keep_outs.{name}", one)) for name, one in _all(top, "keep_outs")}
    tool = [_box(Section(source, f"tool.{name}", one)) for name, one in _all(top, "tool")]
    top.finish()
    if not places:
        raise top.wrong("keep_outs", "names no place", "give at least one, with center and size")
    return KeepOuts(places, tool, margin)


def _all(top: Section, key: str) -> list[tuple[str, object]]:
    return list(top.mapping(key).items())


def _box(section: Section) -> RoundedBox:
    """Read a box (`center`, `size`, `rpy`) or a capsule (`from`, `to`), with its `radius`."""
    radius = section.number("radius", 0.0, _LENGTH)
    if section.has("from"):
        shape = capsule(section.numbers("from", (3,)), section.numbers("to", (3,)), radius)
    else:
        rotation = rotation_from_rpy(np.array(section.numbers("rpy", (3,), [0.0] * 3)))
        x, y, z = section.numbers("center", (3,))
        a, b, c = (0.5 * one for one in section.numbers("size", (3,)))
        shape = RoundedBox((x, y, z), (a, b, c), tuple((r[0], r[1], r[2]) for r in rotation), radius)
    section.finish()
    try:
        shape.row()
    except ValueError as error:
        raise section.wrong("", str(error), "sizes are zero or more") from error
    return shape
