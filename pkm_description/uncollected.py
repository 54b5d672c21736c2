# SPDX-License-Identifier: Apache-2.0
"""Making much that stays, without looking through it for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """While libraries are imported: objects come by the hundred thousand, and all of them stay.

    Looking through them again and again takes a fifth of the import's time.

    Yields:
        Nothing.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
