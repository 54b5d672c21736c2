# SPDX-License-Identifier: Apache-2.0
"""The robots that ship with the suite: one `robots/<name>.urdf.xacro` each."""

from __future__ import annotations

import difflib
from pathlib import Path

from pkm_description.errors import DescriptionError

ROBOTS = Path(__file__).resolve().parent / "robots"
LIMBS = ROBOTS.with_name("limbs")  # which they are made of
SUFFIX = ".urdf.xacro"


def robot_names() -> tuple[str, ...]:
    """Names of the robots of the gallery, sorted."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in ROBOTS.glob(f"*{SUFFIX}")))


def robot_path(name: str) -> Path:
    """File of a robot of the gallery.

    Args:
        name: one of `robot_names()`.

    Returns:
        Its path.

    Raises:
        DescriptionError: no such robot; the remedy has near names.
    """
    names = robot_names()
    if name in names:
        return ROBOTS / f"{name}{SUFFIX}"
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose one of {', '.join(names)}"
    raise DescriptionError(f"robot {name!r}", "no such robot in the gallery", f"{hint} Or give the path of a file")
