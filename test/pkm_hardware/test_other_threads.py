# SPDX-License-Identifier: Apache-2.0
"""Ends that come from another thread, or in the middle of a call, while the loop goes on as if nothing were."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pkm_hardware.machine import Lifecycle

from .benches import BENCHES, Bench, wait_until


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with BENCHES[request.param](tmp_path) as made:
        made.contact()
        yield made


class Loop(threading.Thread):
    """Enables the machine and commands it without a pause, whatever it becomes; keeps what was raised."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.stop = threading.Event()
        self.raised: list[BaseException] = []

    def run(self) -> None:
        machine = self.bench.machine
        try:
            machine.activate()
            while not self.stop.is_set():
                machine.write(machine.read().positions)
                machine.step(0.002)
        except BaseException as error:
            self.raised.append(error)


@pytest.mark.parametrize("call", ["shut_down", "emergency_stop", "deactivate"])
@pytest.mark.parametrize("when", [0.0, 0.005, 0.02, 0.3])
def test_from_another_thread(bench: Bench, call: str, when: float) -> None:
    loop = Loop(bench)
    loop.start()
    assert wait_until(lambda: bench.machine.lifecycle is Lifecycle.ACTIVE)
    time.sleep(when + 0.005 * random.random())
    getattr(bench.machine, call)()
    assert not bench.on()
    time.sleep(0.2)  # the loop goes on
    assert not bench.on()
    loop.stop.set()
    loop.join(5.0)
    assert not loop.is_alive()
    assert not loop.raised
    assert bench.machine.lifecycle is not Lifecycle.ACTIVE
    assert bench.machine.shut_down() == ""
    assert not bench.on()


@pytest.mark.parametrize("method", ["enable", "exchange", "disable"])
@pytest.mark.parametrize("writes", [1, 3, 8])
def test_in_the_middle_of_a_call(bench: Bench, method: str, writes: int) -> None:
    """As a signal handler would: what was interrupted goes on afterwards."""
    machine = bench.machine
    if method != "enable":
        machine.activate()
        bench.pass_periods(3)
    left = [writes]
    device = bench.devices[0]
    receive = device.receive
    reached = threading.Event()

    def counting(data: bytes) -> bytes:
        left[0] -= 1
        if left[0] <= 0:
            reached.set()
        return receive(data)

    device.receive = counting  # type: ignore[method-assign]
    driver = machine._driver
    ended: list[str] = []
    # whatever a driver waits with is where a signal finds it
    original = time.monotonic

    def interrupted() -> float:
        if reached.is_set() and not ended:
            ended.append("")
            ended[0] = machine.shut_down()
        return original()

    module = __import__(type(driver).__module__, fromlist=["time"])

    class Clock:
        monotonic = staticmethod(interrupted)
        sleep = staticmethod(time.sleep)

    module.time = Clock  # type: ignore[attr-defined]
    try:
        if method == "enable":
            machine.activate()
        elif method == "exchange":
            bench.pass_periods(10)
        else:
            machine.deactivate()
    finally:
        module.time = time  # type: ignore[attr-defined]
    # other calls may be over before the device has heard so often, or before they look at the clock again
    assert ended == [""] or writes > 1 or method != "exchange"
    assert machine.shut_down() == ""
    assert not bench.on()
    bench.pass_periods(5)
    assert not bench.on()
    assert machine.lifecycle is not Lifecycle.ACTIVE
