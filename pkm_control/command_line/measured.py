# SPDX-License-Identifier: Apache-2.0
"""That the motion of a run has been measured: from the node that plays it to the process that it was forked from.

What is left to do then, a page of pictures, takes seconds, in which nobody needs the other nodes; two loops at a
kilohertz would keep a small computer busy.
"""

import mmap

_SAID = mmap.mmap(-1, 1)  # shared by all that are forked from this process


def say_measured() -> None:
    """Say it."""
    _SAID[0] = 1


def is_measured() -> bool:
    """Whether it has been said since `forget_measured`."""
    return _SAID[0] != 0


def forget_measured() -> None:
    """Before another run."""
    _SAID[0] = 0
