# SPDX-License-Identifier: Apache-2.0
"""A loop that starves others loses its real-time priority, and one that does not keeps it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

from pkm_runtime.child_processes import Child, end_with_parent

LOOP = """
import hashlib, json, os, sys, threading, time
from pkm_runtime.scheduling import LoopScheduling

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # others of this computer keep their processors
os.cpu_count = lambda: 2
said, late, over = [], [0.0], threading.Event()
scheduling = LoopScheduling(40, said.append)

def policy():
    return os.sched_getscheduler(loop.native_id) & ~os.SCHED_RESET_ON_FORK

def run():
    scheduling.request()
    end = time.monotonic() + 4.0
    while time.monotonic() < end and scheduling.granted:
        if sys.argv[1] == "greedy":
            hashlib.pbkdf2_hmac("sha256", b"0", b"0", 20_000)  # some 10 ms without the interpreter's lock
        else:
            time.sleep(1e-3)
    over.wait()

loop = threading.Thread(target=run)
loop.start()
began = time.monotonic()
while time.monotonic() < began + 2.5 and (scheduling.granted or time.monotonic() < began + 0.1):
    time.sleep(0.01)
took = time.monotonic() - began
print(json.dumps([policy(), took, said]))
over.set()
"""


def outcome(manner: str) -> tuple[int, float, list[str]]:
    """Policy of the loop in the end, after how long [s], and what was said."""
    done = subprocess.run(
        [sys.executable, "-c", LOOP, manner], capture_output=True, text=True, timeout=60.0, check=True
    )
    policy, took, said = json.loads(done.stdout.splitlines()[-1])
    return policy, took, said


def permitted() -> bool:
    """Whether a thread here may be raised; asked in one that ends."""
    seen: list[bool] = []

    def ask() -> None:
        try:
            os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            return
        seen.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return bool(seen)


pytestmark = pytest.mark.skipif(not permitted(), reason="real-time priorities are not permitted here")


def test_a_greedy_loop_goes_back_to_ordinary_scheduling() -> None:
    policy, took, said = outcome("greedy")
    assert policy == os.SCHED_OTHER
    assert took < 2.0  # the kernel leaves a twentieth of each second to ordinary threads: the watchdog needs one turn
    assert len(said) == 1
    assert "no real-time priority any more" in said[0]


def test_a_loop_that_sleeps_keeps_its_priority() -> None:
    policy, _, said = outcome("modest")
    assert policy == os.SCHED_FIFO
    assert not said


def test_a_child_ends_with_its_parent_also_where_that_was_sooner() -> None:
    """The kernel tells of a death that comes, not of one that has been."""
    here = os.getpid()

    def live(parent: int) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with_parent(parent)

    assert Child(partial(live, here)).wait(10.0) == 0
    assert Child(partial(live, here + 1)).wait(10.0) == -signal.SIGTERM
