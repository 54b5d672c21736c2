# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of loops says of a computer that it had not for itself."""

from __future__ import annotations

import resource
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
    work = [sys.executable, "-c", "while True: pass"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with subprocess.Popen(work, start_new_session=True) as busy:
        measured, beside, began = Fairness(busy.pid), Fairness(0), time.monotonic()
        time.sleep(1.0)
        others, rest, lasted = beside.others(), measured.others(), time.monotonic() - began
        busy.kill()
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert others - rest == pytest.approx(used / lasted, abs=0.15)
    monkeypatch.setattr(fairness, "_MUCH", 0.5 * others)
    assert "processors" in beside.problem(well=False)
    assert not beside.problem(well=True)
