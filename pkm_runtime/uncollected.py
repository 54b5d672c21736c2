# SPDX-License-Identifier: Apache-2.0
"""Times without garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """For loops that keep their time, and for imports of libraries, of whose time a fifth goes into collecting their
    hundred thousands of permanent objects.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
