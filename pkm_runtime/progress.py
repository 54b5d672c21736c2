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
_SHARE = re.compile(r"\b(\d+) ?% done$")


class TimeLeft:
    """Estimates of the rest of work that says how much of it is done, each part by itself where its words change."""

    def __init__(self, now: float) -> None:
        self._part, self._began, self._before = "", now, 0.0
        self._done, self._moved = -1.0, now

    def in_words(self, words: str, now: float) -> str:
        """Of words that end in a share, as `12 % done`, at a time [s]; nothing of too little, or of one that stands."""
        share = _SHARE.search(words)
        if share is None:
            return ""
        part, done = re.sub(r"\d+", "", words[: share.start()]), float(share[1])
        if part != self._part:
            self._began, self._before = (now, done) if self._part else (self._began, 0.0)
            self._part = part
        if done != self._done:
            self._done, self._moved = done, now
        since = done - self._before
        left = (self._moved - self._began) * (100.0 - done) / max(since, 1.0) - (now - self._moved)
        return f", about {left:.0f} s left" if since > _LEAST and left > 0.0 else ""


@contextlib.contextmanager
def progress(what: str, more: Callable[[], str] = str) -> Iterator[None]:
    """Report `what` after 2 s and every 10 s, with what `more` returns, or that alone if it begins alike."""
    began, done = time.monotonic(), threading.Event()

    def tell() -> None:
        pause, left = _SILENT_FOR, TimeLeft(began)
        while not done.wait(pause):
            with contextlib.suppress(OSError, ValueError):  # nobody reads any more
                aside = more()
                beside = f"{what} ({aside})" if aside and not aside.startswith(what) else aside or what
                now = time.monotonic()
                line = f"pkm: {beside}: {now - began:.0f} s{left.in_words(aside, now)} ..."
                print(line, file=sys.stderr, flush=True)
            pause = _AGAIN_AFTER

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
