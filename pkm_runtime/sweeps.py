# SPDX-License-Identifier: Apache-2.0
"""The one way in which work is distributed over cores or a cluster: grids, maps, borders, proofs, random poses."""

from __future__ import annotations

import hashlib
import io
import logging
import socket
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zipfile import BadZipFile

import numpy as np

from pkm_runtime.chunks import CORES, IN_FLIGHT, Pending, in_order
from pkm_runtime.errors import UsageError
from pkm_runtime.optional import optional_library
from pkm_runtime.progress import progress

_TABLE = "CREATE TABLE IF NOT EXISTS chunks (key TEXT PRIMARY KEY, result BLOB NOT NULL) WITHOUT ROWID"
_PATIENCE = 60.0  # s to wait for another process that writes
PACKAGE = '"dask[distributed]"'
PURPOSE = "sweeps over a cluster"
_ANSWERS_WITHIN = 20.0  # s
_GREETING = 1 << 16  # bytes, that a scheduler says first; it says some hundred
_LOOK = 0.5  # s
_SILENCE = 30.0  # s without a result of a cluster: then a line says so
_SENT = 8  # functions cached pickled here, and unpickled on each worker
_REVIVED: dict[str, Callable[[Any], Any]] = {}  # functions received by this process, by key
_ONE = threading.Lock()
_LOG = logging.getLogger(__name__)  # without a handler, warnings are lines on stderr
WORTH_KEEPING = 0.02  # s: cheaper results are recomputed
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


class Sweeps:
    """Where sweeps run, what is stored of them, and the progress of the running one.

    Results are identical to the last bit for any number of cores or workers: chunks do not depend on it, and results
    are taken in order. Calls from a chunk run in it. A copy in another process is plain: one core, no journal.

    Args:
        cores: how many of this computer are used, all by default.
        scheduler: address of a Dask scheduler, such as tcp://host:8786, whose workers are used instead.
        journal: file in which finished chunks are stored and looked up.

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
        self._stage, self.note = "", ""  # of a search that runs many sweeps: before their words; in place of them

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
        """Results of a function for each chunk, in order; it may be called in several threads or processes.

        `what` describes the work in progress messages, `total` is the number of chunks, 0 where unknown, and `question`
        names this sweep in the journal, whose results are arrays or tuples of these (None: not stored).
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
            return lambda chunk: _ready(timed(chunk))
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
                return _ready((True, (found, 0.0)))
            return _Noted(begin(chunk), journal, key)

        return look

    def begin(self, stage: str) -> None:
        """Put words before those of sweeps that follow."""
        self._stage = stage

    def in_words(self) -> str:
        """Progress of the running sweep, and the time left; between sweeps, what they are for."""
        if self.note or not self._what:
            return self.note or self._stage.rstrip(": ")
        what, fresh, spent = self._stage + self._what, self._done - self._known, time.monotonic() - self._began
        if not self._total:
            return f"{what}, {self._done} chunks done" if self._done else what
        words = f"{what}, {self._done / self._total:.0%} done"
        if not fresh:
            return words
        return f"{words}, {duration(spent * (self._total - self._done) / fresh)} left"

    def close(self) -> None:
        """Disconnect from the cluster, and close the journal."""
        if self.cluster is not None:
            self.cluster.close()
        if self.journal is not None:
            self.journal.close()


def duration(seconds: float) -> str:
    """A time in seconds as text, in the unit that people would use."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} min" if minutes < 99.5 else f"{minutes / 60.0:.1f} h"


# A chunk is identified by a hash of the question and of the function's argument. The file is an SQLite database: each
# chunk is there as a whole or not at all, however the process ends.
class Journal:
    """Results of chunks in a file, created where missing, which several processes may share."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._turn = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, _PATIENCE, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA synchronous = OFF")  # after a power cut a damaged file is recomputed
            self._file.execute(_TABLE)
        except (sqlite3.Error, OSError) as error:
            raise UsageError(f"journal {path}", str(error), "give another file, or delete this one") from error

    def find(self, key: str) -> Any:
        """The stored array or tuple of arrays; None without an entry; `UsageError` where unreadable."""
        with self._turn:
            try:
                row = self._file.execute("SELECT result FROM chunks WHERE key = ?", (key,)).fetchone()
            except sqlite3.Error as error:
                raise UsageError(f"journal {self.path}", str(error), "delete it") from error
        try:
            return None if row is None else _read(row[0])
        except (ValueError, OSError, KeyError, BadZipFile):  # damaged: recomputed
            return None

    def keep(self, key: str, result: Any) -> None:
        """Store an array or a tuple of arrays; `UsageError` where the file cannot be written."""
        with self._turn:
            try:
                self._file.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?)", (key, _written(result)))
            except sqlite3.Error as error:
                raise UsageError(f"journal {self.path}", str(error), "make room for it") from error

    def __len__(self) -> int:
        with self._turn:
            return int(self._file.execute("SELECT COUNT(*) FROM chunks").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._file.close()


# The function travels with each chunk and is unpickled once per worker. A lost worker loses nothing: no chunk depends
# on what another worker holds, and the scheduler reassigns its chunks.
class Cluster:
    """Workers of a Dask scheduler, as tcp://host:8786; `UsageError` where Dask is missing or nobody answers."""

    def __init__(self, address: str) -> None:
        distributed = optional_library("distributed", PACKAGE, PURPOSE)
        self._pickle = optional_library("cloudpickle", PACKAGE, PURPOSE)
        self.address = address
        self._sent: deque[tuple[Any, bytes]] = deque(maxlen=_SENT)
        for name in ("client", "protocol.core"):
            logging.getLogger(f"distributed.{name}").addFilter(_is_no_traceback)
        about, remedy = f"scheduler {address}", "start one: dask scheduler"
        try:
            with progress(f"waiting for the {about}, {_ANSWERS_WITHIN:g} s at most"):
                answers = _answers_as_dask(address)
            if not answers:
                raise UsageError(about, "the program at this address is not a Dask scheduler", remedy)
            self._client = distributed.Client.__new__(distributed.Client)
            self._client.__init__(address, timeout=_ANSWERS_WITHIN, set_as_default=False)
        except UsageError:
            raise
        except Exception as error:  # whatever Dask's client makes of what it hears
            if hasattr(self, "_client"):  # else its end waits for twice as long, and shows a traceback
                self._client.status = "closed"
            raise UsageError(about, "there is no answer that a Dask scheduler gives", remedy) from error

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
            if _is_of_dask(error):
                raise _lost(self.address, _in_words(error)) from error
            raise

    def close(self) -> None:
        """Disconnect; the cluster keeps running."""
        self._client.close()


def key_of(question: str, chunk: Any) -> str:
    """A hash of a question, see `code_stamp`, and a chunk: an array, number, text, slice, or tuple of these."""
    seal = hashlib.sha256(question.encode())
    _add(seal, chunk)
    return seal.hexdigest()


@cache
def code_stamp() -> str:
    """A hash of all sources of these packages, on which the numbers of a sweep depend."""
    seal = hashlib.sha256()
    packages = Path(__file__).resolve().parents[1]
    for name in ("pkm_analysis", "pkm_description", "pkm_dynamics", "pkm_kinematics", "pkm_runtime"):
        for file in sorted((packages / name).rglob("*.py")):
            seal.update(file.relative_to(packages).as_posix().encode())
            seal.update(file.read_bytes())
    return seal.hexdigest()


def _written(result: Any) -> bytes:
    several = isinstance(result, tuple)
    parts = result if several else (result,)
    buffer = io.BytesIO()
    np.savez(buffer, *parts, several=np.array(several))
    return buffer.getvalue()


def _read(blob: bytes) -> Any:
    with np.load(io.BytesIO(blob), allow_pickle=False) as held:
        parts = tuple(held[f"arr_{k}"] for k in range(len(held.files) - 1))
        return parts if held["several"] else parts[0]


def _add(seal: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        seal.update(f"{part.dtype.str}{part.shape}".encode())
        seal.update(np.ascontiguousarray(part).tobytes())
    elif isinstance(part, tuple):
        seal.update(f"({len(part)}".encode())
        for one in part:
            _add(seal, one)
    else:
        seal.update(f"{type(part).__name__} {part!r};".encode())


def _is_no_traceback(record: logging.LogRecord) -> bool:
    """Whether a record of Dask is to be shown: what its client raises is reported as an error of the sweep."""
    return record.exc_info is None


def _answers_as_dask(address: str) -> bool:
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


def _is_of_dask(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] == "distributed" or type(error).__name__ == "CancelledError"


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__} {' '.join(str(error).split())}"


class _WorkerProgress:
    """A future of Dask whose failures are reported as those of the cluster."""

    def __init__(self, future: Any, address: str) -> None:
        self._future, self._address = future, address

    def result(self) -> Any:
        import asyncio  # late: Dask has loaded it; before Python 3.11 its TimeoutError is not the built-in one

        try:
            with suppress(asyncio.TimeoutError):
                return self._future.result(_SILENCE)
            if not self._future.done():
                what = f"no result for {_SILENCE:g} s: its workers are slow or gone, or it hangs; still waiting"
                _LOG.warning("pkm: scheduler %s: %s, until Ctrl-C", self._address, what)
            return self._future.result()
        except ModuleNotFoundError as error:
            about, problem = f"scheduler {self._address}", f"its workers lack a package: {error}"
            raise UsageError(about, problem, "install the suite there") from error
        except Exception as error:
            if _is_of_dask(error):
                raise _lost(self._address, _in_words(error)) from error
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


def _ready(result: Any) -> Pending[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


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
