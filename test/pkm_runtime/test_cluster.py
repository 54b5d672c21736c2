# SPDX-License-Identifier: Apache-2.0
"""Sweeps over a Dask cluster of two workers on this computer: the same numbers to the last bit, also when one dies."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_runtime.errors import UsageError
from pkm_runtime.sweeps import Cluster, Sweeps

RANGES = {"x": (-0.4, 0.4), "y": (0.1, 0.6)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Sweeps]:
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with pytest.importorskip("distributed").LocalCluster(**options, host="127.0.0.1") as here:
        sweeps = Sweeps(scheduler=here.scheduler_address)
        yield sweeps
        sweeps.close()


@pytest.fixture(scope="module")
def here() -> Sweeps:
    return Sweeps(1)


def test_maps_and_statistics_are_the_same(cluster: Sweeps, here: Sweeps) -> None:
    robot = load_mechanism("five_bar")
    near, far = Analysis(robot, sweeps=here), Analysis(robot, sweeps=cluster)
    one, other = near.map("type2", RANGES, resolution=160), far.map("type2", RANGES, resolution=160)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.inside, other.inside)
    a, b = (analysis.sweep("type2", RANGES, poses=150_000) for analysis in (near, far))
    assert a.to_dict() == b.to_dict()


def test_proofs_are_the_same(cluster: Sweeps, here: Sweeps) -> None:
    robot, box = load_mechanism("delta"), {"x": (-0.25, 0.25), "y": (-0.25, 0.25), "z": (-1.0, -0.8)}
    one, other = (Analysis(robot, sweeps=sweeps).prove("inside", box) for sweeps in (here, cluster))
    assert one.ok
    assert one.boxes == other.boxes > 128
    for a, b in zip(one.parts[0], other.parts[0], strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(cluster: Sweeps) -> None:
    def numbers(chunk: Array) -> tuple[Array, Array]:
        time.sleep(0.05)
        return np.sin(chunk), np.array(os.getpid())

    chunks = [np.arange(4.0) + k for k in range(30)]
    running = cluster.map(numbers, chunks)
    results = [next(running) for _ in range(3)]
    victim = int(results[0][1])
    os.kill(victim, signal.SIGKILL)
    results += list(running)
    np.testing.assert_array_equal([values for values, _ in results], np.sin(chunks))
    assert any(int(pid) != victim for _, pid in results)


def test_a_cluster_that_says_nothing_for_long_is_told(
    cluster: Sweeps, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def slow(chunk: float) -> float:
        time.sleep(1.0)
        return chunk

    def told() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "pkm_runtime.sweeps"]

    assert list(cluster.map(float, [1.0])) == [1.0]
    assert not told()
    monkeypatch.setattr("pkm_runtime.sweeps._SILENCE", 0.2)
    assert list(cluster.map(slow, [2.0])) == [2.0]
    (line,) = told()
    assert "no result for 0.2 s" in line


def test_an_error_in_a_chunk_is_the_error_of_the_sweep(cluster: Sweeps) -> None:
    def fails(chunk: int) -> int:
        if chunk == 3:
            raise ValueError("three")
        return chunk

    with pytest.raises(ValueError, match="three"):
        list(cluster.map(fails, range(6)))


def test_a_connection_that_breaks_while_work_is_sent_is_the_cluster_s_error() -> None:
    """Dask's is an OSError without a file: a command said `None: None`."""
    comm = pytest.importorskip("distributed.comm")

    def broken() -> None:
        raise comm.CommClosedError("in <TCP>: Stream is closed")

    cluster = Cluster.__new__(Cluster)
    cluster.address = "tcp://127.0.0.1:1"
    cluster._client = SimpleNamespace(status="connecting", nthreads=broken)
    with pytest.raises(UsageError, match=r"the sweep was lost: CommClosedError .* with a journal the run continues"):
        cluster.ahead()


@pytest.mark.slow
def test_a_scheduler_that_is_killed_is_one_error_without_tracebacks() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    told: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = told.append  # type: ignore[method-assign]
    logger = logging.getLogger("distributed.client")
    with subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.DEVNULL) as scheduler:
        sweeps = Sweeps(scheduler=f"tcp://127.0.0.1:{port}")
        logger.addHandler(handler)
        killer = threading.Timer(1.0, scheduler.kill)
        killer.start()
        try:
            with pytest.raises(UsageError, match=r"the sweep was lost: .*; check its workers; with a journal"):
                list(sweeps.map(np.sin, [np.arange(4.0)]))
            time.sleep(1.0)  # Dask looks for the scheduler again
            sweeps.close()  # as Dask does when it has looked long enough
            with pytest.raises(UsageError, match=r"the sweep was lost: .* does not answer any more"):
                list(sweeps.map(np.sin, [np.arange(4.0)]))
        finally:
            killer.join()
            logger.removeHandler(handler)
    assert not [record.getMessage() for record in told if record.exc_info]
