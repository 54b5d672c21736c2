# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of loops says of a computer that it had not for itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from bench import fairness
from bench.fairness import Fairness

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")


def test_processes_that_were_stopped_on_the_way_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(fairness, "time", SimpleNamespace(monotonic=lambda: now[0], process_time=time.process_time))
    look = Fairness(0)
    for step in (0.02, 0.3, 0.02):
        now[0] += step
        look.look()
    assert not look.problem(well=True)
    now[0] += 42.0
    look.look()
    now[0] += 0.02
    look.look()
    assert look.problem(well=True) == "the computer stood still for 42.0 s"


def test_who_looks_on_may_work(monkeypatch: pytest.MonkeyPatch) -> None:
    now, worked = [100.0], [1.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: worked[0])
    monkeypatch.setattr(fairness, "time", clock)
    look = Fairness(0)
    now[0] += 3.0
    worked[0] += 2.5
    look.look()
    assert not look.problem(well=True)


def test_what_others_take_is_told_from_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    now, taken = [100.0], [5000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: 0.0)
    monkeypatch.setattr(fairness, "time", clock)
    monkeypatch.setattr(fairness, "_taken", lambda: taken[0])
    measured = {7: [1.0, 2.0], 0: []}  # s of each process of a session
    monkeypatch.setattr(fairness, "_times_of", lambda session: measured[session])
    look, beside = Fairness(7), Fairness(0)
    now[0] += 2.0
    taken[0] += 2.5
    measured[7] = [1.5, 3.0]  # 1.5 s of the 2.5 s that the computer worked
    assert look.others() == pytest.approx(0.5)
    assert beside.others() == pytest.approx(1.25)
    assert beside.problem(well=False) == f"others took 1.2 of {os.cpu_count()} processors"
    assert not beside.problem(well=True)
    assert not look.problem(well=False)


def test_the_processes_of_a_session_are_found_and_no_others() -> None:
    """With those that they start in other sessions, as a launch does its nodes."""
    work = "import os\nif not os.fork():\n    os.setsid(); os.write(1, b'\\n')\nwhile os.getppid() > 1: pass"
    command = [sys.executable, "-c", work]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as busy:
        try:
            assert busy.stdout is not None
            assert busy.stdout.readline() == b"\n"
            assert len(fairness._times_of(busy.pid)) == 2
            assert not fairness._times_of(-1)
            before = fairness._taken()
            deadline = time.monotonic() + 30.0
            while not sum(fairness._times_of(busy.pid)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert sum(fairness._times_of(busy.pid)) > 0.0
            assert fairness._taken() >= before
        finally:
            busy.kill()
