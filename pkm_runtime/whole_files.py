# SPDX-License-Identifier: Apache-2.0
"""Files that are whole or missing, whatever ends the writing process; folders that nobody else writes to."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

_MODE = 0o666  # of a new file, less what the user's mask takes
_OTHERS = 0o022  # write permissions of group and others


@contextlib.contextmanager
def whole(file: str | Path) -> Iterator[Path]:
    """Yields a temporary path of the same ending, which becomes `file` unless an exception comes; OSErrors name it."""
    file = Path(file).resolve()
    mode = _mode(file)
    if mode is None:
        yield file
        return
    part = file
    try:
        handle, name = tempfile.mkstemp(prefix=".", suffix=file.suffix, dir=file.parent)
        os.close(handle)
        part = Path(name)
        yield part
        os.chmod(part, mode)
        os.replace(part, file)
    except BaseException as error:
        if part != file:
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.filename in (None, str(part)) or part == file):
            error.filename = str(file)
        raise


def write_whole(file: str | Path, content: bytes | str) -> None:
    """Write a file whole or not at all; a text is written in UTF-8. An OSError names the file."""
    try:
        with whole(file) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        error.filename = str(file)
        raise


def is_safe(folder: os.stat_result, sources: os.stat_result | None = None) -> bool:
    """Whether a folder's content can only come from this user or group, root, or writers of `sources`."""
    if not stat.S_ISDIR(folder.st_mode):
        return False
    owners, allowed = {0, os.getuid()}, 0
    if sources is not None:
        owners.add(sources.st_uid)
        allowed = sources.st_mode & (_OTHERS if folder.st_gid == sources.st_gid else stat.S_IWOTH)
    if folder.st_gid == os.getgid():
        allowed |= stat.S_IWGRP
    return folder.st_uid in owners and not folder.st_mode & _OTHERS & ~allowed


def safe_folder(folder: Path, sources: Path | None = None) -> Path:
    """A folder, created for this user alone unless it lies in `sources`; `PermissionError` if not safe."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o777 if sources else 0o700, exist_ok=True)
    if not is_safe(folder.lstat(), sources.stat() if sources else None):
        raise PermissionError(f"{folder}: others can write there")
    return folder


def read_safely(folder: Path, name: str, sources: Path | None = None) -> bytes:
    """Content of a file in a folder, which may lie in `sources`; `PermissionError` if the folder is not safe."""
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not is_safe(os.fstat(inside), sources.stat() if sources else None):
            raise PermissionError(f"{folder}: others can write there")
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside), "rb") as file:
            return file.read()
    finally:
        os.close(inside)


def read_small(path: str | Path, most: int, wrong: Callable[[str, str], Exception]) -> str:
    """Text of a UTF-8 file of at most so many bytes; raises what `wrong` makes of the problem and the remedy."""
    try:  # without waiting for what another process may write into a pipe
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            data = file.read(most + 1) or b""
            size = max(len(data), os.fstat(file.fileno()).st_size)
    except (OSError, ValueError) as error:
        problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        raise wrong(problem, "give the path of a file") from error
    if len(data) > most:
        raise wrong(f"has {size} bytes, more than {most}", "give another file: its kind is smaller")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong("is not UTF-8 text", "save it as plain text in UTF-8") from error


def own_status(key: str, base: int, otherwise: int) -> int:
    """A number that Linux tells of this process (proc(5)), `otherwise` on other systems."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(f"{key}:")).split()[1], base)
    return otherwise


def _mode(file: Path) -> int | None:
    """Permissions of a file, or of a new one; None for a device or a pipe, which is written as it is."""
    try:
        found = file.stat().st_mode
    except OSError:
        return _MODE & ~own_status("Umask", 8, 0o022)  # else it can only be read by setting it
    return stat.S_IMODE(found) if stat.S_ISREG(found) else None
