# SPDX-License-Identifier: Apache-2.0
"""Work that goes in chunks over all cores: grids, maps, proofs, random poses.

All sweeps of the package go through `map_chunks`, so that there is one place that decides where they run.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

CORES = os.cpu_count() or 1
IN_FLIGHT = 2  # chunks begun for each core: the next one waits while the last is taken

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def map_chunks(
    function: Callable[[Chunk], Result], chunks: Iterable[Chunk], cores: int | None = None
) -> Iterator[Result]:
    """The results of a function for each chunk, in the order of the chunks, whatever runs first.

    The same numbers come out whatever the number of cores. At most two chunks a core are begun and not yet taken, so
    that memory is bounded by the size of a chunk and of a result; chunks are asked for one by one.

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
    waiting = iter(chunks)
    with ThreadPoolExecutor(workers) as pool:
        begun: deque[Future[Result]] = deque(
            pool.submit(function, chunk) for chunk in islice(waiting, IN_FLIGHT * workers)
        )
        try:
            while begun:
                result = begun.popleft().result()
                begun.extend(pool.submit(function, chunk) for chunk in islice(waiting, 1))
                yield result
        finally:
            for one in begun:
                one.cancel()


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
