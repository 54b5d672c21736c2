# SPDX-License-Identifier: Apache-2.0
"""Folders that nobody else writes to: their files are executed or trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS = 0o022  # write permissions of group and others


def is_safe(folder: os.stat_result, sources: os.stat_result | None = None) -> bool:
    """Whether a folder's content can only come from this user, root, or the writers of `sources`, which it lies in.

    The user's own group counts: on many systems it is theirs alone, elsewhere they have chosen to share what they
    write.
    """
    if not stat.S_ISDIR(folder.st_mode):
        return False
    owners, allowed = {0, os.getuid()}, 0
    if sources is not None:
        owners.add(sources.st_uid)
        allowed = sources.st_mode & (_OTHERS if folder.st_gid == sources.st_gid else stat.S_IWOTH)
    if folder.st_gid == os.getgid():
        allowed |= stat.S_IWGRP
    return folder.st_uid in owners and not folder.st_mode & _OTHERS & ~allowed


def made(folder: Path, sources: Path | None = None) -> Path:
    """A folder, created for this user alone unless it lies in `sources`; `PermissionError` if not safe."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o777 if sources else 0o700, exist_ok=True)
    if not is_safe(folder.lstat(), sources.stat() if sources else None):
        raise PermissionError(f"{folder}: others can write there")
    return folder


def read(folder: Path, name: str, sources: Path | None = None) -> bytes:
    """Content of a file in a folder, which may lie in `sources`; `PermissionError` if the folder is not safe."""
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not is_safe(os.fstat(inside), sources.stat() if sources else None):
            raise PermissionError(f"{folder}: others can write there")
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside), "rb") as file:
            return file.read()
    finally:
        os.close(inside)
