# SPDX-License-Identifier: Apache-2.0
"""Processes that need the same kernel: one compiles it, the others wait and load it from the cache.

Otherwise the nodes of a robot, or two test workers, that start together would compile each kernel once each. A lock is
one byte of a file in the cache folder; it is free again when its process ends, however it ends. Kernels wait for those
that they call, which never call them: no deadlock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import zlib
from functools import cache

_FILE = "compiling.lock"
_PATIENCE = 60.0  # s; whoever cannot compile a kernel, and lives on, keeps others waiting no longer
_AGAIN_AFTER = 0.02  # s


class CompileLock:
    """Which process compiles the kernel `name` of a cache folder; nests, as a kernel compiled for two signatures."""

    def __init__(self, folder: str, name: str) -> None:
        self._file = _open(folder)
        self._byte = zlib.crc32(name.encode())
        self._held = 0

    def take(self) -> bool:
        """Wait until no other process compiles this kernel; True where another did, and may have cached it."""
        self._held += 1
        if self._held > 1 or self._file is None:
            return False
        end = None
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
                return end is not None
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):  # a file system without locks
                    return False
            now = time.monotonic()
            end = end or now + _PATIENCE
            if now > end:
                return True
            time.sleep(_AGAIN_AFTER)

    def give(self) -> None:
        """Free the lock."""
        self._held = max(0, self._held - 1)
        if self._held == 0 and self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._byte)


@cache
def _open(folder: str) -> int | None:
    """The file of a folder, open as long as the process lives: closing it would free all of its locks."""
    try:
        return os.open(os.path.join(folder, _FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
