# SPDX-License-Identifier: Apache-2.0
"""Finished chunks in a file, from which an interrupted sweep is resumed.

A chunk is identified by a hash of the question and of the function's argument. The file is an SQLite database: each
chunk is there as a whole or not at all, however the process ends.
"""

from __future__ import annotations

import hashlib
import io
import sqlite3
import threading
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from pkm_runtime.errors import UsageError

_TABLE = "CREATE TABLE IF NOT EXISTS chunks (key TEXT PRIMARY KEY, result BLOB NOT NULL) WITHOUT ROWID"
_PATIENCE = 60.0  # s to wait for another process that writes


class Journal:
    """Results of chunks in a file, created where missing, which several processes may share."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._turn = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, _PATIENCE, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA synchronous = OFF")  # after a power cut a damaged file is recomputed
            self._file.execute(_TABLE)
        except (sqlite3.Error, OSError) as error:
            raise UsageError(f"journal {path}", str(error), "give another file, or delete this one") from error

    def find(self, key: str) -> Any:
        """The stored array or tuple of arrays; None without an entry; `UsageError` where unreadable."""
        with self._turn:
            try:
                row = self._file.execute("SELECT result FROM chunks WHERE key = ?", (key,)).fetchone()
            except sqlite3.Error as error:
                raise UsageError(f"journal {self.path}", str(error), "delete it") from error
        try:
            return None if row is None else _read(row[0])
        except (ValueError, OSError, KeyError, BadZipFile):  # damaged: recomputed
            return None

    def keep(self, key: str, result: Any) -> None:
        """Store an array or a tuple of arrays; `UsageError` where the file cannot be written."""
        with self._turn:
            try:
                self._file.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?)", (key, _written(result)))
            except sqlite3.Error as error:
                raise UsageError(f"journal {self.path}", str(error), "make room for it") from error

    def __len__(self) -> int:
        """Number of chunks."""
        with self._turn:
            return int(self._file.execute("SELECT COUNT(*) FROM chunks").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._file.close()


def _written(result: Any) -> bytes:
    several = isinstance(result, tuple)
    parts = result if several else (result,)
    buffer = io.BytesIO()
    np.savez(buffer, *parts, several=np.array(several))
    return buffer.getvalue()


def _read(blob: bytes) -> Any:
    with np.load(io.BytesIO(blob), allow_pickle=False) as held:
        parts = tuple(held[f"arr_{k}"] for k in range(len(held.files) - 1))
        return parts if held["several"] else parts[0]


def key_of(question: str, chunk: Any) -> str:
    """A hash of a question, see `code_stamp`, and a chunk: an array, number, text, slice, or tuple of these."""
    seal = hashlib.sha256(question.encode())
    _add(seal, chunk)
    return seal.hexdigest()


def _add(seal: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        seal.update(f"{part.dtype.str}{part.shape}".encode())
        seal.update(np.ascontiguousarray(part).tobytes())
    elif isinstance(part, tuple):
        seal.update(f"({len(part)}".encode())
        for one in part:
            _add(seal, one)
    else:
        seal.update(f"{type(part).__name__} {part!r};".encode())


@cache
def code_stamp() -> str:
    """A hash of all sources of these packages, on which the numbers of a sweep depend."""
    seal = hashlib.sha256()
    packages = Path(__file__).resolve().parents[2]
    for name in ("pkm_analysis", "pkm_description", "pkm_dynamics", "pkm_kinematics", "pkm_runtime"):
        for file in sorted((packages / name).rglob("*.py")):
            seal.update(file.relative_to(packages).as_posix().encode())
            seal.update(file.read_bytes())
    return seal.hexdigest()
