# SPDX-License-Identifier: Apache-2.0
"""Processes that need the same kernel: one compiles it, the others wait and load what it kept.

Without this, the nodes of a robot, or two test workers, that start together would compile each kernel once each. A lock
is one byte of a file in the folder where kernels are kept; it is free again when its process ends, however it ends.
Kernels wait for those that they call, which never call them: nobody waits in a circle.
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


class Turn:
    """Who compiles one kernel. Calls may be nested, as a kernel that is compiled for two signatures is.

    Args:
        folder: where kernels are kept; it exists.
        name: of the kernel, among those of the folder.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._file = _open(folder)
        self._byte = zlib.crc32(name.encode())
        self._held = 0

    def take(self) -> bool:
        """Wait until no other process compiles this kernel.

        Returns:
            Whether another did, who may have kept it.
        """
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
        """Let others."""
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
