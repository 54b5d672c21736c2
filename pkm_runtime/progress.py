# SPDX-License-Identifier: Apache-2.0
"""Reports long work while it lasts. Imports nothing heavy, as importing is such work."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator

_SILENT_FOR = 2.0  # s; what takes longer says what it is
_AGAIN_AFTER = 10.0  # s
_LEAST = 20.0  # %: of less, nothing is to be foretold


def time_left(words: str, spent: float) -> str:
    """An estimate of the rest of work that says how much of it is done, `spent` [s] after its beginning; or nothing."""
    share = re.search(r"\b(\d+) ?% done$", words)
    done = float(share[1]) if share else 0.0
    return f", about {spent * (100.0 - done) / done:.0f} s left" if done > _LEAST else ""


@contextlib.contextmanager
def progress(what: str, more: Callable[[], str] = str) -> Iterator[None]:
    """Report `what` after 2 s and every 10 s, with what `more` returns, or that alone if it begins alike."""
    began, done = time.monotonic(), threading.Event()

    def tell() -> None:
        pause = _SILENT_FOR
        while not done.wait(pause):
            with contextlib.suppress(OSError, ValueError):  # nobody reads any more
                aside = more()
                beside = f"{what} ({aside})" if aside and not aside.startswith(what) else aside or what
                spent = time.monotonic() - began
                print(f"pkm: {beside}: {spent:.0f} s{time_left(aside, spent)} ...", file=sys.stderr, flush=True)
            pause = _AGAIN_AFTER

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
