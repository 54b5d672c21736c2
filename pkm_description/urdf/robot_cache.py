# SPDX-License-Identifier: Apache-2.0
"""Disk cache of expanded gallery robots, and of robots loaded from files.

Home and mobility take 40 ms for a Delta, and up to a second for others; an expansion takes as long as importing NumPy.
Files are read from beside the sources or from the user's cache. Those that others can write are ignored: cached robots
are unpickled, as trusted as Python's own bytecode.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pkm_description.gallery import LIMBS, ROBOTS
from pkm_description.mechanism import Mechanism, frozen
from pkm_description.urdf.xacro_expansion import expand_file
from pkm_runtime.whole_files import read_safely, safe_folder, write_whole

MOST = 100  # files of a kind that are kept
_DIGEST = hashlib.sha256().digest_size
HERE = Path(__file__).resolve().parent / "__pycache__"


def folders() -> tuple[Path, Path]:
    """Beside the sources, and the user's own; the first writable one is used."""
    users = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return HERE, Path(users) / "pkm_control"


def cache_folder(folder: Path) -> Path:
    """One of the folders, created where missing; OSError where unusable."""
    return safe_folder(folder, _beside(folder))


def read_cached(file: Path) -> bytes:
    """Content of a file in one of the folders; OSError where it is missing or others may have written it."""
    return read_safely(file.parent, file.name, _beside(file.parent))


def write_cached(file: Path, content: bytes) -> None:
    """Write a file into one of the folders, created where missing, whole or not at all."""
    cache_folder(file.parent)
    write_whole(file, content)


def find_file(name: str) -> bytes | None:
    """What `keep_file` wrote under a name; None where it is missing or not whole."""
    for folder in folders():
        with contextlib.suppress(OSError):
            content = read_cached(folder / name)
            if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                return content[_DIGEST:]
    return None


def keep_file(name: str, content: bytes) -> None:
    """Keep content under a name whose ending says its kind, where that is possible; the oldest of many go."""
    for folder in folders():
        with contextlib.suppress(OSError):
            kept = sorted(folder.glob(f"*{Path(name).suffix}"), key=lambda file: file.stat().st_mtime)
            for file in kept[: max(0, len(kept) + 1 - MOST)]:
                file.unlink(missing_ok=True)
            write_cached(folder / name, hashlib.sha256(content).digest() + content)
            return


def _beside(folder: Path) -> Path | None:
    return HERE.parent if folder == HERE else None


class _Frozen(pickle.Pickler):
    """Pickles arrays with their read-only flag."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is np.ndarray and not value.flags.writeable and value.dtype == np.float64:
            return frozen, (value.copy(),)
        return NotImplemented


def find_mechanism(text: str, source: str) -> Mechanism | None:
    """The cached robot of an expanded text and its source file; None where missing or made by other sources."""
    content = find_file(_robot_name(text, source))
    found = None if content is None else pickle.loads(content)
    return found if isinstance(found, Mechanism) else None


def keep_mechanism(mechanism: Mechanism) -> None:
    """Cache a robot fresh from `mechanism_from_urdf`, not used yet, where that is possible."""
    out = io.BytesIO()
    _Frozen(out, protocol=pickle.HIGHEST_PROTOCOL).dump(mechanism)
    keep_file(_robot_name(mechanism.urdf, mechanism.source), out.getvalue())


def _robot_name(text: str, source: str) -> str:
    digest = hashlib.sha256(f"{_code_state()}\0{source}\0{text}".encode(errors="surrogatepass"))
    return f"{digest.hexdigest()[:32]}.robot"


@cache
def _code_state() -> str:
    """Digest of what decides the result: the sources by time and size, Python and NumPy."""
    package = Path(__file__).resolve().parents[1]
    sources = ((file, file.stat()) for file in sorted(package.rglob("*.py")))
    times = [(str(file), found.st_mtime_ns, found.st_size) for file, found in sources]
    return repr((sys.version, np.__version__, times))


# A xacro file may depend on anything that its expressions read, so that users' files are expanded each time. Those of
# the gallery depend on their arguments, each other and xacro alone, which a test ensures.
def expand_robot(path: Path, arguments: Mapping[str, str] | None = None) -> str:
    """Plain URDF+ text of a gallery robot's xacro file, with values of `<xacro:arg>` by name."""
    wanted = [_xacro_state(), path.name, sorted((name, str(value)) for name, value in (arguments or {}).items())]
    name = f"{hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:24]}.expanded"  # of a kind that no wheel takes
    kept = find_file(name)
    if kept is not None:
        return kept.decode()
    text = expand_file(path, arguments)
    keep_file(name, text.encode())
    return text


def _xacro_state() -> str:
    digest = hashlib.sha256()
    for file in _xacro_files():
        content = file.read_bytes()
        digest.update(f"{file} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _xacro_files() -> Iterator[Path]:
    spec = find_spec("xacro")
    if spec and spec.origin:
        yield Path(spec.origin)
    for folder in (ROBOTS, LIMBS):
        yield from sorted(folder.glob("*.xacro"))
