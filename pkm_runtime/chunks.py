# SPDX-License-Identifier: Apache-2.0
"""Chunks of work: how many are started at once, and the order of their results."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Protocol, TypeVar

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
IN_FLIGHT = 2  # chunks started per core: one waits while the last result is taken

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
Given = TypeVar("Given", covariant=True)


class Pending(Protocol[Given]):
    """A result that is not ready yet."""

    def result(self) -> Given:
        """Wait for it."""
        ...

    def cancel(self) -> object:
        """Discard it."""
        ...


def in_order(
    begin: Callable[[Chunk], Pending[Result]], chunks: Iterable[Chunk], ahead: Callable[[], int]
) -> Iterator[Result]:
    """Results in the order of the chunks, which may be endless; at most `ahead()` are started and not yet taken."""
    waiting = iter(chunks)
    begun: deque[Pending[Result]] = deque()
    try:
        while True:
            begun.extend(begin(chunk) for chunk in islice(waiting, max(1, ahead()) - len(begun)))
            if not begun:
                return
            yield begun.popleft().result()
    finally:
        for one in begun:
            one.cancel()


def map_chunks(
    function: Callable[[Chunk], Result], chunks: Iterable[Chunk], cores: int | None = None
) -> Iterator[Result]:
    """Results in the order of the chunks, which may be endless, on all cores; parallel where code releases the GIL."""
    workers = CORES if cores is None else cores
    if workers <= 1:
        yield from map(function, chunks)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from in_order(lambda chunk: pool.submit(function, chunk), chunks, lambda: IN_FLIGHT * workers)


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover range(n) in order."""
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))
