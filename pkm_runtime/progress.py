# SPDX-License-Identifier: Apache-2.0
"""Reports long work while it lasts. Imports nothing heavy, as importing is such work."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

_SILENT_FOR = 2.0  # s; what takes longer says what it is
_AGAIN_AFTER = 10.0  # s


@contextlib.contextmanager
def progress(what: str, more: Callable[[], str] = str) -> Iterator[None]:
    """Report `what` after two seconds and again every ten.

    `more` returns a current addition or nothing; one that begins with `what` replaces it.
    """
    began, done = time.monotonic(), threading.Event()

    def tell() -> None:
        pause = _SILENT_FOR
        while not done.wait(pause):
            with contextlib.suppress(OSError, ValueError):  # nobody reads any more
                aside = more()
                beside = f"{what} ({aside})" if aside and not aside.startswith(what) else aside or what
                print(f"pkm: {beside}: {time.monotonic() - began:.0f} s ...", file=sys.stderr, flush=True)
            pause = _AGAIN_AFTER

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
