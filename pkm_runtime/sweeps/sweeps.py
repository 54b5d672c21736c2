# SPDX-License-Identifier: Apache-2.0
"""The one way in which work is distributed over cores or a cluster: grids, maps, borders, proofs, random poses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pkm_runtime.sweeps.chunks import CORES, IN_FLIGHT, Pending, in_order
from pkm_runtime.sweeps.cluster import Cluster
from pkm_runtime.sweeps.journal import Journal, code_stamp, key_of

WORTH_KEEPING = 0.02  # s: cheaper results are recomputed

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


class Sweeps:
    """Where sweeps run, what is stored of them, and the progress of the running one.

    Results are identical to the last bit for any number of cores or workers: chunks do not depend on it, and results
    are taken in order. Calls from within a chunk run in that chunk. A copy in another process is plain: one core, no
    journal.

    Args:
        cores: how many of this computer are used, all by default.
        scheduler: address of a Dask scheduler, such as tcp://host:8786, whose workers are used instead.
        journal: file in which finished chunks are stored and looked up.

    Raises:
        UsageError: nobody answers at that address, or the file cannot be used.
    """

    def __init__(
        self, cores: int | None = None, scheduler: str | None = None, journal: str | Path | None = None
    ) -> None:
        self.cores = CORES if cores is None else cores
        self.cluster = None if scheduler is None else Cluster(scheduler)
        self.journal = None if journal is None else Journal(journal)
        self._within = threading.local()
        self._what, self._done, self._known, self._total = "", 0, 0, 0
        self._began = time.monotonic()
        self.note = ""  # progress of a search that runs many sweeps

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process a sweep runs as part of the sender's: there it is a chunk."""
        return Sweeps, (1,)

    @cached_property
    def _stamp(self) -> str:
        return code_stamp()

    def map(
        self,
        function: Callable[[Chunk], Result],
        chunks: Iterable[Chunk],
        what: str = "",
        total: int = 0,
        question: str | None = None,
    ) -> Iterator[Result]:
        """Results of a function for each chunk, in the order of the chunks.

        The function may be called in several threads or other processes; chunks are requested one by one and may be
        endless.

        Args:
            what: description of the work, for progress messages.
            total: number of chunks, 0 where unknown.
            question: distinguishes this sweep from all others in the journal, whose results are arrays or tuples of
                arrays; None: results are not stored.
        """
        if getattr(self._within, "chunk", False):
            yield from map(function, chunks)
            return
        self._what, self._total = what, total
        self._done, self._known, self._began = 0, 0, time.monotonic()
        pool = ThreadPoolExecutor(self.cores) if self.cluster is None and self.cores > 1 else None
        try:
            for kept, (result, _) in in_order(
                self._kept(self._calls(pool, function), question), chunks, self._ahead(pool)
            ):
                self._done += 1
                self._known += kept
                yield result
        finally:
            self._what = ""
            if pool is not None:
                pool.shutdown()

    def _ahead(self, pool: ThreadPoolExecutor | None) -> Callable[[], int]:
        if self.cluster is not None:
            return self.cluster.ahead
        return lambda: 1 if pool is None else IN_FLIGHT * self.cores

    def _calls(
        self, pool: ThreadPoolExecutor | None, function: Callable[[Chunk], Result]
    ) -> Callable[[Chunk], Pending[tuple[Result, float]]]:
        """A function that starts a chunk; its result is `function`'s, and the time that it took."""
        if self.cluster is not None:
            return self.cluster.calls(function)

        def timed(chunk: Chunk) -> tuple[Result, float]:
            began, self._within.chunk = time.perf_counter(), True
            try:
                return function(chunk), time.perf_counter() - began
            finally:
                self._within.chunk = False

        if pool is None:
            return lambda chunk: _Ready(timed(chunk))
        return lambda chunk: pool.submit(timed, chunk)

    def _kept(self, begin: Callable[[Any], Pending[Any]], question: str | None) -> Callable[[Any], Pending[Any]]:
        """The same, looked up in the journal first and stored there after."""
        journal = None if question is None else self.journal
        if journal is None:
            return lambda chunk: _Noted(begin(chunk), None, "")
        asked = f"{self._stamp} {question}"

        def look(chunk: Any) -> Pending[Any]:
            key = key_of(asked, chunk)
            found = journal.find(key)
            if found is not None:
                return _Ready((True, (found, 0.0)))
            return _Noted(begin(chunk), journal, key)

        return look

    def in_words(self) -> str:
        """Progress of the running sweep, and the time left; empty where none runs."""
        if self.note or not self._what:
            return self.note
        fresh, spent = self._done - self._known, time.monotonic() - self._began
        if not self._total:
            return f"{self._what}, {self._done} chunks done" if self._done else self._what
        words = f"{self._what}, {self._done / self._total:.0%} done"
        if not fresh:
            return words
        return f"{words}, {duration(spent * (self._total - self._done) / fresh)} left"

    def close(self) -> None:
        """Disconnect from the cluster, and close the journal."""
        if self.cluster is not None:
            self.cluster.close()
        if self.journal is not None:
            self.journal.close()


class _Ready:
    """A result that is ready."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def result(self) -> Any:
        return self._result

    def cancel(self) -> None:
        return None


class _Noted:
    """A pending result, with whether it was known before; a journal stores it."""

    def __init__(self, pending: Pending[Any], journal: Journal | None, key: str) -> None:
        self._pending, self._journal, self._key = pending, journal, key

    def result(self) -> Any:
        result, took = self._pending.result()
        if self._journal is not None and took >= WORTH_KEEPING:
            self._journal.keep(self._key, result)
        return False, (result, took)

    def cancel(self) -> None:
        self._pending.cancel()


def duration(seconds: float) -> str:
    """A time in seconds as text, in the unit that people would use."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} min" if minutes < 99.5 else f"{minutes / 60.0:.1f} h"
