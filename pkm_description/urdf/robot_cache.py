# SPDX-License-Identifier: Apache-2.0
"""Disk cache of robots loaded from files, by the hash of their description.

Home and mobility take 40 ms for a Delta, and up to a second for others. Files are read from beside the sources or from
the user's cache, and trusted as Python's own bytecode is.
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
from pkm_description.urdf import cache_files

MOST = 100  # files that are kept
_KIND = "robot"
_DIGEST = hashlib.sha256().digest_size


class _Frozen(pickle.Pickler):
    """Pickles arrays with their read-only flag."""

    def reducer_override(self, value: Any) -> Any:
        """How a value is pickled."""
        if type(value) is np.ndarray and not value.flags.writeable and value.dtype == np.float64:
            return frozen, (value.copy(),)
        return NotImplemented


def find(text: str, source: str) -> Mechanism | None:
    """The cached robot of an expanded text and its source file; None where missing or made by other sources."""
    name = _name(text, source)
    for folder in cache_files.folders():
        with contextlib.suppress(OSError):
            content = cache_files.read(folder / name)
            if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                found = pickle.loads(content[_DIGEST:])
                return found if isinstance(found, Mechanism) else None
    return None


def keep(mechanism: Mechanism) -> None:
    """Cache a robot fresh from `mechanism_from_urdf`, not used yet, where that is possible."""
    out = io.BytesIO()
    _Frozen(out, protocol=pickle.HIGHEST_PROTOCOL).dump(mechanism)
    content = out.getvalue()
    for folder in cache_files.folders():
        with contextlib.suppress(OSError):
            _make_room(folder)
            file = folder / _name(mechanism.urdf, mechanism.source)
            cache_files.write(file, hashlib.sha256(content).digest() + content)
            return


def _name(text: str, source: str) -> str:
    digest = hashlib.sha256(f"{_state()}\0{source}\0{text}".encode(errors="surrogatepass"))
    return f"{digest.hexdigest()[:32]}.{_KIND}"


@cache
def _state() -> str:
    """Digest of what decides the result: the sources by time and size, Python and NumPy."""
    package = Path(__file__).resolve().parents[1]
    sources = ((file, file.stat()) for file in sorted(package.rglob("*.py")))
    times = [(str(file), found.st_mtime_ns, found.st_size) for file, found in sources]
    return repr((sys.version, np.__version__, times))


def _make_room(folder: Path) -> None:
    """Remove the oldest of a folder's robots if there are many."""
    kept = sorted(folder.glob(f"*.{_KIND}"), key=lambda file: file.stat().st_mtime)
    for file in kept[: max(0, len(kept) + 1 - MOST)]:
        file.unlink(missing_ok=True)
