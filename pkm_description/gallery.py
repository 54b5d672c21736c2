# SPDX-License-Identifier: Apache-2.0
"""The robots that ship with the suite: one `robots/<name>.urdf.xacro` each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from pkm_description.description_error import DescriptionError

ROBOTS = Path(__file__).resolve().parent / "robots"
LIMBS = ROBOTS.with_name("limbs")  # which they are made of
EXAMPLES = ROBOTS.parents[1] / "docs" / "examples"  # of a clone of the repository
SUFFIX = ".urdf.xacro"


def robot_names() -> tuple[str, ...]:
    """Names of the robots of the gallery, sorted."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in ROBOTS.glob(f"*{SUFFIX}")))


def robot_path(name: str) -> Path:
    """File of a robot of the gallery; `DescriptionError` with near names where there is none."""
    names = robot_names()
    if name in names:
        return ROBOTS / f"{name}{SUFFIX}"
    hint = f"`pkm run --help` lists all {len(names)}, and docs/gallery.md shows them; or give the path of a file"
    near = near_names(name, (*names, *_examples()))
    if near:
        hint = f"did you mean {' or '.join(_examples().get(one, one) for one in near)}? {hint[0].upper()}{hint[1:]}"
    raise DescriptionError(f"robot {name!r}", "no such robot in the gallery", hint)


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """At most three names that a mistyped one may mean, nearest first: equal, containing it, similarly spelt."""
    known = list(dict.fromkeys(names))
    wanted = name.lower().replace("-", "_")
    parts = [one for one in known if len(wanted) > 2 and wanted in one]
    alike = difflib.get_close_matches(wanted, known, n=3, cutoff=0.6)
    return list(dict.fromkeys(sorted(parts, key=len) + alike))[:3]


def _examples() -> dict[str, str]:
    return {path.name.removesuffix(SUFFIX): f"docs/examples/{path.name}" for path in EXAMPLES.glob(f"*{SUFFIX}")}
