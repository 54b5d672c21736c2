# SPDX-License-Identifier: Apache-2.0
"""Chunks over cores: the same numbers in the same order, and no more of them at once than was promised."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator

import pytest

from pkm_runtime.chunks import IN_FLIGHT, map_chunks, slices
from pkm_runtime.errors import ConfigurationError, PkmError, UsageError


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_results_come_in_the_order_of_the_chunks(cores: int) -> None:
    def slow_first(chunk: int) -> int:
        time.sleep(0.02 if chunk == 0 else 0.0)
        return chunk**2

    assert list(map_chunks(slow_first, range(20), cores)) == [k**2 for k in range(20)]


def test_chunks_are_asked_for_as_they_are_needed() -> None:
    asked = 0

    def endless() -> Iterator[int]:
        nonlocal asked
        while True:
            asked += 1
            yield asked

    results = map_chunks(lambda chunk: chunk, endless(), 2)
    assert [next(results) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert asked <= 5 + 2 * IN_FLIGHT
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [UsageError("one", "two", "three"), ConfigurationError("a.yaml", "b", "c", "d", 5)])
def test_errors_come_whole_from_other_processes(error: PkmError) -> None:
    came = pickle.loads(pickle.dumps(error))
    assert (type(came), str(came), vars(came)) == (type(error), str(error), vars(error))


def test_an_error_in_a_chunk_is_the_error_of_the_sweep() -> None:
    def fails(chunk: int) -> int:
        if chunk == 3:
            raise ZeroDivisionError
        return chunk

    before = set(threading.enumerate())  # other tests of this process may have left threads of their own
    with pytest.raises(ZeroDivisionError):
        list(map_chunks(fails, range(10), 2))
    assert not set(threading.enumerate()) - before


def test_slices_cover_everything_once() -> None:
    assert [list(range(10))[part] for part in slices(10, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(slices(0, 4)) == []
