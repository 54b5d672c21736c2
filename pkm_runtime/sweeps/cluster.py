# SPDX-License-Identifier: Apache-2.0
"""Chunks on the workers of a Dask cluster.

The function travels with each chunk and is unpickled once per worker. A lost worker loses nothing: no chunk depends on
what another worker holds, and the scheduler reassigns its chunks.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from pkm_runtime.errors import UsageError
from pkm_runtime.optional import optional_library
from pkm_runtime.progress import progress
from pkm_runtime.sweeps.chunks import IN_FLIGHT, Pending
from pkm_runtime.sweeps.journal import code_stamp

PACKAGE = '"dask[distributed]"'
PURPOSE = "sweeps over a cluster"
_ANSWERS_WITHIN = 20.0  # s
_GREETING = 1 << 16  # bytes, that a scheduler says first; it says some hundred
_LOOK = 0.5  # s
_SENT = 8  # functions cached pickled here, and unpickled on each worker


_REVIVED: dict[str, Callable[[Any], Any]] = {}  # functions received by this process, by key
_ONE = threading.Lock()


class Cluster:
    """Workers of a Dask scheduler, as tcp://host:8786; `UsageError` where Dask is missing or nobody answers."""

    def __init__(self, address: str) -> None:
        distributed = optional_library("distributed", PACKAGE, PURPOSE)
        self._pickle = optional_library("cloudpickle", PACKAGE, PURPOSE)
        self.address = address
        self._sent: deque[tuple[Any, bytes]] = deque(maxlen=_SENT)
        logging.getLogger("distributed.client").addFilter(_is_no_traceback)
        about, remedy = f"scheduler {address}", "start one: dask scheduler"
        try:
            with progress(f"waiting for the {about}, {_ANSWERS_WITHIN:g} s at most"):
                greeted = _greets(address)
            if not greeted:
                raise UsageError(about, "the program at this address is not a Dask scheduler", remedy)
            self._client = distributed.Client(address, timeout=_ANSWERS_WITHIN, set_as_default=False)
        except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
            raise UsageError(about, "there is no answer", remedy) from error

    @property
    def cores(self) -> int:
        """Threads of all workers; 0 without workers."""
        with self._reached():
            return int(sum(self._client.nthreads().values()))

    def ahead(self) -> int:
        """How many chunks may be started."""
        return IN_FLIGHT * max(self.cores, 2)

    def calls(self, function: Callable[[Any], Any]) -> Callable[[Any], Pending[Any]]:
        """A function that starts a chunk; its result is `function`'s, and the seconds that it took there."""
        sent = next((pickled for known, pickled in self._sent if known == function), None)
        if sent is None:
            sent = self._pickle.dumps(function)
            self._sent.append((function, sent))
        key = hashlib.sha256(sent).hexdigest()

        def begin(chunk: Any) -> Pending[Any]:
            with self._reached():
                future = self._client.submit(_called, key, sent, code_stamp(), chunk, pure=False)
            return _WorkerProgress(future, self.address)

        return begin

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Whatever Dask's client raises once it has given up the scheduler is one error."""
        try:
            yield
        except Exception as error:
            if self._client.status in ("closing", "closed"):
                raise _lost(self.address, "its scheduler does not answer any more") from error
            raise

    def close(self) -> None:
        """Disconnect; the cluster keeps running."""
        self._client.close()


def _is_no_traceback(record: logging.LogRecord) -> bool:
    """Whether a record of Dask's client is to be shown: what it raises is reported as an error of the sweep."""
    return record.exc_info is None


def _greets(address: str) -> bool:
    """Whether a scheduler listens at an address: it speaks first, a short message led by its length.

    Dask believes any length, and waits without end for the rest. Raises OSError where nobody listens, ValueError where
    it is no address. True, without a look, where it is not plain TCP.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme != "tcp":
        return True
    if parts.hostname is None or parts.port is None:
        raise ValueError(address)
    until = time.monotonic() + _ANSWERS_WITHIN
    while True:
        try:
            with socket.create_connection((parts.hostname, parts.port), max(until - time.monotonic(), _LOOK)) as there:
                length = int.from_bytes(_heard(there, 8, until), "little")
                return 0 < length <= _GREETING and len(_heard(there, length, until)) == length
        except ConnectionRefusedError:  # one that is being started is waited for
            if time.monotonic() > until:
                raise
            time.sleep(_LOOK)


def _heard(there: socket.socket, count: int, until: float) -> bytes:
    """So many bytes, or fewer where no more come in time."""
    heard = b""
    while len(heard) < count and (left := until - time.monotonic()) > 0.0:
        there.settimeout(left)
        try:
            more = there.recv(count - len(heard))
        except TimeoutError:
            break
        if not more:
            break
        heard += more
    return heard


def _lost(address: str, why: str) -> UsageError:
    problem = f"the sweep was lost: {why}"
    return UsageError(f"scheduler {address}", problem, "check its workers; with a journal the run continues")


class _WorkerProgress:
    """A future of Dask whose failures are reported as those of the cluster."""

    def __init__(self, future: Any, address: str) -> None:
        self._future, self._address = future, address

    def result(self) -> Any:
        try:
            return self._future.result()
        except ModuleNotFoundError as error:
            about, problem = f"scheduler {self._address}", f"its workers lack a package: {error}"
            raise UsageError(about, problem, "install the suite there") from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] == "distributed" or type(error).__name__ == "CancelledError":
                told = f"{type(error).__name__} {' '.join(str(error).split())}"
                raise _lost(self._address, told) from error
            raise

    def cancel(self) -> object:
        return self._future.cancel()


def _called(key: str, pickled: bytes, stamp: str, chunk: Any) -> tuple[Any, float]:
    """Result and time [s] of a pickled function; `UsageError` where this process has another code version."""
    with _ONE:
        if key not in _REVIVED:
            if code_stamp() != stamp:
                remedy = "install the same version on all workers"
                raise UsageError("worker", "it has other sources of this suite", remedy)
            while len(_REVIVED) >= _SENT:
                _REVIVED.pop(next(iter(_REVIVED)))
            _REVIVED[key] = optional_library("cloudpickle", PACKAGE, PURPOSE).loads(pickled)
        function = _REVIVED[key]
    began = time.perf_counter()
    return function(chunk), time.perf_counter() - began
