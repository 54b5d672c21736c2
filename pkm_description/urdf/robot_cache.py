# SPDX-License-Identifier: Apache-2.0
"""Disk cache of robots loaded from files, by the hash of their description.

Home and mobility take 40 ms for a Delta, and up to a second for others. Files are read from beside the sources or from
the user's cache, and trusted as Python's own bytecode is.
"""

from __future__ import annotations

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


class _Frozen(pickle.Pickler):
    """Pickles arrays with their read-only flag."""

    def reducer_override(self, value: Any) -> Any:
        """How a value is pickled."""
        if type(value) is np.ndarray and not value.flags.writeable and value.dtype == np.float64:
            return frozen, (value.copy(),)
        return NotImplemented


def find(text: str, source: str) -> Mechanism | None:
    """The cached robot of an expanded text and its source file; None where missing or made by other sources."""
    content = cache_files.find(_name(text, source))
    found = None if content is None else pickle.loads(content)
    return found if isinstance(found, Mechanism) else None


def keep(mechanism: Mechanism) -> None:
    """Cache a robot fresh from `mechanism_from_urdf`, not used yet, where that is possible."""
    out = io.BytesIO()
    _Frozen(out, protocol=pickle.HIGHEST_PROTOCOL).dump(mechanism)
    cache_files.keep(_name(mechanism.urdf, mechanism.source), out.getvalue())


def _name(text: str, source: str) -> str:
    digest = hashlib.sha256(f"{_state()}\0{source}\0{text}".encode(errors="surrogatepass"))
    return f"{digest.hexdigest()[:32]}.robot"


@cache
def _state() -> str:
    """Digest of what decides the result: the sources by time and size, Python and NumPy."""
    package = Path(__file__).resolve().parents[1]
    sources = ((file, file.stat()) for file in sorted(package.rglob("*.py")))
    times = [(str(file), found.st_mtime_ns, found.st_size) for file, found in sources]
    return repr((sys.version, np.__version__, times))
