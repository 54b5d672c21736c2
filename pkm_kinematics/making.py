# SPDX-License-Identifier: Apache-2.0
"""Progress of work that may compile kernels, whose own messages it replaces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from pkm_runtime.kernels.kernel_cache import COMPILING
from pkm_runtime.progress import progress

KERNELS = "loading kernels"  # and what is compiled of them is told beside


@contextlib.contextmanager
def making(what: str, more: Callable[[], str] = str) -> Iterator[None]:
    """`progress` of `what` is done; `more` gives text to add while no kernels are compiled."""
    COMPILING.quiet = True
    try:
        with progress(what, lambda: COMPILING.in_words() or more()):
            yield
    finally:
        COMPILING.quiet = False
