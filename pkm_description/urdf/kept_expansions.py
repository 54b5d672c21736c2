# SPDX-License-Identifier: Apache-2.0
"""Expanded robots of the gallery, kept from one process to the next: to expand one takes as long as to import NumPy.

What a xacro file expands to can depend on anything that its expressions read, so that other people's files are expanded
each time. Those of the gallery depend on their arguments, on each other and on xacro alone, which a test sees to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from pkm_description.gallery import LIMBS, ROBOTS
from pkm_description.urdf import kept_files
from pkm_description.urdf.xacro_expansion import expand_file


def expand_robot(path: Path, arguments: Mapping[str, str] | None = None) -> str:
    """Plain URDF+ text of a robot of the gallery.

    Args:
        path: its xacro file.
        arguments: values of `<xacro:arg>` arguments, by name.

    Returns:
        The text.

    Raises:
        DescriptionError: as of `expand_file`.
    """
    wanted = json.dumps([path.name, sorted((name, str(value)) for name, value in (arguments or {}).items())])
    name = f"{hashlib.sha256(wanted.encode()).hexdigest()[:24]}.expanded"  # of a kind that no wheel takes
    state = _state()
    for folder in kept_files.folders():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            kept_state, _, text = kept_files.read(folder / name).decode().partition("\n")
            if kept_state == state and text.endswith("</robot>\n"):
                return text
    text = expand_file(path, arguments)
    for folder in kept_files.folders():
        with contextlib.suppress(OSError):
            kept_files.write(folder / name, f"{state}\n{text}".encode())
            break
    return text


def _state() -> str:
    """Digest of all that expansions depend on."""
    digest = hashlib.sha256()
    for file in _sources():
        content = file.read_bytes()
        digest.update(f"{file} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    spec = find_spec("xacro")
    if spec and spec.origin:
        yield Path(spec.origin)
    for folder in (ROBOTS, LIMBS):
        yield from sorted(folder.glob("*.xacro"))
