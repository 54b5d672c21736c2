# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E402 (the number of threads is set before any library reads it)
"""`python -m bench.workers [ROBOT [QUANTITY [POSES]]]`: a sweep by two Dask workers against one, on this computer.

By turns, so that a computer that slows down does so for both. The workers have one thread each; the scheduler and the
process that asks run beside them. Two processes that share nothing tell what two cores can gain here at most.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

from distributed import LocalCluster

from bench.timing import words
from pkm_analysis import Analysis
from pkm_description import load_mechanism
from pkm_runtime.sweeps import Sweeps

TURNS = 5
_ALONE = 20_000_000  # additions


def _alone(n: int) -> int:
    return sum(range(n))


def sharing_nothing() -> float:
    """Return how many times as fast two processes are than one after the other."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_alone, (10, 10)))
        start = time.perf_counter()
        list(pool.map(_alone, (_ALONE, _ALONE)))
        both = time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(2):
            pool.submit(_alone, _ALONE).result()
        return (time.perf_counter() - start) / both


def main() -> None:
    """Print the seconds of both, and their ratio."""
    given = words(__doc__)
    robot, quantity, poses = [*given, *("delta", "type2", "20000000")[len(given) :]][:3]
    mechanism = load_mechanism(robot)
    took: dict[int, list[float]] = {1: [], 2: []}
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as one,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as two,
    ):
        sweeps = [Sweeps(scheduler=cluster.scheduler_address) for cluster in (one, two)]
        analyses = {n: Analysis(mechanism, sweeps=of) for n, of in enumerate(sweeps, 1)}
        for analysis in analyses.values():
            analysis.sweep(quantity, poses=int(poses) // 20)  # libraries, kernels
        for _ in range(TURNS):
            for n, analysis in analyses.items():
                start = time.perf_counter()
                analysis.sweep(quantity, poses=int(poses))
                took[n].append(time.perf_counter() - start)
        for of in sweeps:
            of.close()
    alone, together = median(took[1]), median(took[2])
    seconds = f"one worker {alone:.2f} s, two {together:.2f} s"
    print(f"{robot}, {quantity}, {int(poses)} poses, medians of {TURNS}: {seconds}")
    print(f"{alone / together:.2f} times as fast; two processes that share nothing: {sharing_nothing():.2f} times")


if __name__ == "__main__":
    main()
