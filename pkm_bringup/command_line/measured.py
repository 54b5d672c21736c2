# SPDX-License-Identifier: Apache-2.0
"""Messages between a run's process and the node that plays its motion, which is forked from it.

The node says that the motion has been measured, or cut off by the user, and the process why it ends the run where a
node's death is the reason. What is left to do then, a page of pictures, takes seconds in which the other nodes are not
needed; two loops at a kilohertz would keep a small computer busy.
"""

import contextlib
import mmap
import os
import struct
from pathlib import Path

FAULT_FILE = "PKM_FAULT_FILE"  # variable with the path of the file in which a launch writes why it ends
_LONGEST = 500  # bytes of a reason
_WARNING = 2000  # bytes of a warning
_SHARED = mmap.mmap(-1, 2 + _LONGEST + _WARNING + 8)  # shared by all that are forked from this process
_RUN = struct.Struct("<q")  # the number of the run's process, at the end


def say_measured() -> None:
    """Say that the motion has been measured."""
    _SHARED[0] = 1


def is_measured() -> bool:
    """Whether that has been said since `forget_measured`."""
    return _SHARED[0] != 0


def say_cut_off() -> None:
    """Say that the user ended the motion early, which is no fault of the node's."""
    _SHARED[1] = 1


def is_cut_off() -> bool:
    """Whether that has been said since `forget_measured`."""
    return _SHARED[1] != 0


def forget_measured() -> None:
    """Clear all messages before another run, whose process this is."""
    _SHARED[:] = bytes(len(_SHARED) - _RUN.size) + _RUN.pack(os.getpid())


def say_fault(reason: str) -> None:
    """Say why the run ends early, though the user did not ask for it."""
    _put(2, _LONGEST, reason)


def reported_fault() -> str:
    """The fault said since `forget_measured`, or written by a launch; or empty."""
    with contextlib.suppress(OSError):
        return _text(2, _LONGEST) or Path(os.environ.get(FAULT_FILE, "")).read_text(encoding="utf-8")
    return ""


def say_drives_may_be_on(warning: str) -> bool:
    """Say that drives may be on: the last message of a run. Whether a run's process, which began this one, will."""
    _put(2 + _LONGEST, _WARNING, warning)
    return os.getppid() == _RUN.unpack(_SHARED[-_RUN.size :])[0]


def drives_warning() -> str:
    """That warning, if said since `forget_measured`; or empty."""
    return _text(2 + _LONGEST, _WARNING)


def _put(at: int, room: int, text: str) -> None:
    _SHARED[at : at + room] = text.encode()[:room].ljust(room, b"\0")


def _text(at: int, room: int) -> str:
    return _SHARED[at : at + room].rstrip(b"\0").decode(errors="ignore")
