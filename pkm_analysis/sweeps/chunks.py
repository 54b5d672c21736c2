# SPDX-License-Identifier: Apache-2.0
"""Chunks of work: how many are begun at once, in which order their results come."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Protocol, TypeVar

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
IN_FLIGHT = 2  # chunks begun for each core: the next one waits while the last is taken

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
Given = TypeVar("Given", covariant=True)


class Pending(Protocol[Given]):
    """A result that is still to come."""

    def result(self) -> Given:
        """Wait for it."""
        ...

    def cancel(self) -> object:
        """Do without it."""
        ...


def in_order(
    begin: Callable[[Chunk], Pending[Result]], chunks: Iterable[Chunk], ahead: Callable[[], int]
) -> Iterator[Result]:
    """Results of chunks in the order of the chunks, whatever is ready first.

    Memory is bounded by the size of a chunk and of a result: chunks are asked for one by one.

    Args:
        begin: sets one going.
        chunks: may be endless.
        ahead: how many may be begun and not yet taken.

    Yields:
        A result for each chunk.
    """
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
    """The results of a function for each chunk, in their order, over the cores of this computer.

    Args:
        function: of one chunk; compiled code that releases Python's lock runs on all cores.
        chunks: what it is called with; may be endless.
        cores: how many to use, all by default.

    Yields:
        A result for each chunk.
    """
    workers = CORES if cores is None else cores
    if workers <= 1:
        yield from map(function, chunks)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from in_order(lambda chunk: pool.submit(function, chunk), chunks, lambda: IN_FLIGHT * workers)


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover range(n) in order.

    Args:
        n: how many there are.
        size: of a slice.

    Yields:
        The slices.
    """
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))
