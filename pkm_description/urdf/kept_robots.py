# SPDX-License-Identifier: Apache-2.0
"""Robots that were loaded from files, kept from one process to the next by the hash of their description.

To find a robot's home and to count its freedoms takes 40 ms of a Delta, and up to a second of others. What is kept is
read as Python's own bytecode is: from beside the sources, or from the user's cache, and it is trusted as that is.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import pickle
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pkm_description.mechanism import Mechanism, frozen
from pkm_description.urdf import kept_files

MOST = 100  # files that are kept
_KIND = "robot"
_DIGEST = hashlib.sha256().digest_size


class _Frozen(pickle.Pickler):
    """Arrays come back as they went: read-only where they were."""

    def reducer_override(self, value: Any) -> Any:
        """How a value is pickled."""
        if type(value) is np.ndarray and not value.flags.writeable and value.dtype == np.float64:
            return frozen, (value.copy(),)
        return NotImplemented


def find(text: str, source: str) -> Mechanism | None:
    """The robot of a description, if it was kept.

    Args:
        text: expanded URDF+ text.
        source: the file that it came from.

    Returns:
        As `mechanism_from_urdf`; None where it was not kept, or by other sources.
    """
    name = _name(text, source)
    for folder in kept_files.folders():
        with contextlib.suppress(OSError):
            content = kept_files.read(folder / name)
            if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                found = pickle.loads(content[_DIGEST:])
                return found if isinstance(found, Mechanism) else None
    return None


def keep(mechanism: Mechanism) -> None:
    """Keep a robot, where that is possible.

    Args:
        mechanism: as `mechanism_from_urdf` made it, not used yet.
    """
    out = io.BytesIO()
    _Frozen(out, protocol=pickle.HIGHEST_PROTOCOL).dump(mechanism)
    content = out.getvalue()
    for folder in kept_files.folders():
        with contextlib.suppress(OSError):
            _make_room(folder)
            file = folder / _name(mechanism.urdf, mechanism.source)
            kept_files.write(file, hashlib.sha256(content).digest() + content)
            return


def _name(text: str, source: str) -> str:
    digest = hashlib.sha256(f"{_state()}\0{source}\0{text}".encode(errors="surrogatepass"))
    return f"{digest.hexdigest()[:32]}.{_KIND}"


@cache
def _state() -> str:
    """What decides what is made of a description: the sources by time and size, Python and NumPy."""
    package = Path(__file__).resolve().parents[1]
    sources = ((file, file.stat()) for file in sorted(package.rglob("*.py")))
    times = [(str(file), found.st_mtime_ns, found.st_size) for file, found in sources]
    return repr((sys.version, np.__version__, times))


def _make_room(folder: Path) -> None:
    """Remove the oldest of a folder's robots where there are many."""
    kept = sorted(folder.glob(f"*.{_KIND}"), key=lambda file: file.stat().st_mtime)
    for file in kept[: max(0, len(kept) + 1 - MOST)]:
        file.unlink(missing_ok=True)
