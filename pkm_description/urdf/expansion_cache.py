# SPDX-License-Identifier: Apache-2.0
"""Disk cache of expanded gallery robots: an expansion takes as long as importing NumPy.

A xacro file may depend on anything that its expressions read, so that users' files are expanded each time. Those of the
gallery depend on their arguments, each other and xacro alone, which a test ensures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from pkm_description.gallery import LIMBS, ROBOTS
from pkm_description.urdf import cache_files
from pkm_description.urdf.xacro_expansion import expand_file


def expand_robot(path: Path, arguments: Mapping[str, str] | None = None) -> str:
    """Plain URDF+ text of a gallery robot's xacro file, with values of `<xacro:arg>` by name."""
    wanted = [_state(), path.name, sorted((name, str(value)) for name, value in (arguments or {}).items())]
    name = f"{hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:24]}.expanded"  # of a kind that no wheel takes
    kept = cache_files.find(name)
    if kept is not None:
        return kept.decode()
    text = expand_file(path, arguments)
    cache_files.keep(name, text.encode())
    return text


def _state() -> str:
    """Digest of everything that expansions depend on."""
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
