# SPDX-License-Identifier: Apache-2.0
"""Homing that is broken off, in whatever way, ends with drives off; a reading that jumps is no stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pkm_hardware.drivers.driver import Reading
from pkm_hardware.homing import STOP, AxisHoming, Homing
from pkm_hardware.machine import Lifecycle

from .benches import Bench, DynamixelBench, ODriveBench, wait_until

HOMING = "homing: {method: stop, direction: -1, speed: 0.05, at: 0.02, travel: 0.4, back_off: 0.01, lag: 0.02}"
BENCHES = {
    "dynamixel": (DynamixelBench, "id1"),
    "odrive": (ODriveBench, "axis0"),
}


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    make, key = BENCHES[request.param]
    with make(tmp_path, **{key: f", {HOMING}"}) as made:
        made.machine.configure()
        assert not made.machine.fault, made.machine.fault
        made.machine.activate()
        for _ in range(10):
            _period(made)
        assert "homing" in made.machine.notice
        assert len(made.on()) == made.drives
        yield made


def _period(bench: Bench) -> None:
    bench.machine.step(bench.period)
    time.sleep(bench.period)


def _exception(bench: Bench) -> None:
    bench.machine._homing.observe = None  # type: ignore[union-attr, assignment, method-assign]


def _mute(bench: Bench) -> None:
    for device in bench.devices:
        device.mute = True


def _silent(bench: Bench) -> None:
    for device in bench.devices:
        device.silent = True


def _unplug(bench: Bench) -> None:
    for device in bench.devices:
        device.unplug()


ENDS: dict[str, Callable[[Bench], object]] = {
    "deactivate": lambda bench: bench.machine.deactivate(),
    "emergency_stop": lambda bench: bench.machine.emergency_stop(),
    "shut_down": lambda bench: bench.machine.shut_down(),
    "exception": _exception,
    "answers lost": _mute,
    "silent": _silent,
    "unplugged": _unplug,
}


@pytest.mark.parametrize("end", ENDS)
def test_drives_are_off_in_the_end(bench: Bench, end: str) -> None:
    ENDS[end](bench)
    began = time.monotonic()
    while bench.machine.lifecycle is Lifecycle.ACTIVE and time.monotonic() - began < 5.0:
        _period(bench)
    assert bench.machine.lifecycle is not Lifecycle.ACTIVE
    assert not bench.machine.readable
    if bench.lets_go or end not in ("silent", "unplugged"):
        assert wait_until(lambda: not bench.on(), 2.0), bench.on()
    else:
        assert "THE DRIVES COULD NOT BE TOLD" in bench.machine.fault
    for _ in range(5):  # nothing takes it up again
        _period(bench)
    if bench.lets_go:
        assert not bench.on()


def test_a_reading_that_jumps_is_no_stop(bench: Bench) -> None:
    before = bench.machine.read().positions
    bench.jump(1.0 if bench.kind == "dynamixel" else 0.1)
    for _ in range(20):
        _period(bench)
    assert not bench.machine.fault, bench.machine.fault
    assert "looks for its reference" in bench.machine.notice
    assert np.abs(bench.machine.read().positions - before).max() < 0.05


@pytest.mark.parametrize("late", [False, True], ids=["a reading alone", "a late period alone"])
def test_one_reading_is_no_stop(late: bool) -> None:
    """After a late period the axis can have moved as far as a wrong reading says: only the next one refutes it."""
    axis = AxisHoming(0, "slider", STOP, -1, speed=0.05, at=0.0, travel=0.4, lag=0.02)
    homing, units, place = Homing([axis]), np.ones(1), np.full(1, 0.3)
    for k in range(200):
        strange = k == 50
        targets = homing.targets(place, units, 1.0 if late and strange else 0.01)
        homing.observe(Reading(place + (0.1 if strange and not late else 0.0), 0.01 * k), units)
        place = np.maximum(targets, 0.25)
        if "backs off" in homing.doing:
            break
    assert homing.found[axis] == 0.25


def test_it_waits_while_no_reading_comes(bench: Bench) -> None:
    """Else an axis would be sent on and on without anybody seeing where it is."""

    def goal() -> float:
        return bench.bus.value(1, 116, 4) if bench.kind == "dynamixel" else bench.boards[0].axes[0].target

    _mute(bench)
    _period(bench)
    _period(bench)
    before = goal()
    for _ in range(2):
        _period(bench)
    assert goal() == before
