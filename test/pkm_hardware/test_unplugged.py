# SPDX-License-Identifier: Apache-2.0
"""A line that is pulled in any phase, with every driver: a fault that names the port; nothing is raised or hangs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pkm_hardware.machine import Lifecycle
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine

from .benches import BENCHES, Bench, wait_until

UNTOLD = "THE DRIVES COULD NOT BE TOLD"


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with BENCHES[request.param](tmp_path) as made:
        yield made


def _pull(bench: Bench) -> None:
    for device in bench.devices:
        device.unplug()


def _pull_after(bench: Bench, count: int) -> None:
    """Pull the line in the middle of what comes: after so many bytes have reached the first device."""
    device = bench.devices[0]
    receive, heard = device.receive, [0]

    def counting(data: bytes) -> bytes:
        heard[0] += len(data)
        if heard[0] >= count:
            device._pull.set()
        return receive(data)

    device.receive = counting  # type: ignore[method-assign]


PHASES: dict[str, Callable[[Bench], object]] = {
    "open": lambda bench: bench.machine.configure(),
    "enable": lambda bench: bench.machine.activate(),
    "exchange": lambda bench: bench.pass_periods(100),
    "disable": lambda bench: bench.machine.deactivate(),
}
BEFORE = {"open": 0, "enable": 1, "exchange": 2, "disable": 2}


@pytest.mark.parametrize(
    "after", [0, pytest.param(10, marks=pytest.mark.slow), 60, pytest.param(300, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("phase", PHASES)
def test_the_line_is_pulled(bench: Bench, phase: str, after: int) -> None:
    if BEFORE[phase] == 2:
        bench.go()
    elif BEFORE[phase] == 1:
        bench.machine.configure()
        assert not bench.machine.fault, bench.machine.fault
    if after:
        _pull_after(bench, after)
    else:
        _pull(bench)
    began = time.monotonic()
    PHASES[phase](bench)
    pulled = bench.devices[0]._pull.is_set()
    if not pulled:  # the phase was over before: so be it later
        _pull(bench)
        bench.pass_periods(100)
    assert time.monotonic() - began < 10.0
    machine = bench.machine
    assert machine.shut_down() == machine.shut_down()
    if pulled and machine.lifecycle is Lifecycle.UNCONFIGURED:
        assert phase == "disable"  # they had said that they are off before
        assert not bench.on()
    elif pulled:
        assert machine.lifecycle is Lifecycle.FAULT
        assert bench.devices[0].port in machine.fault
        if BEFORE[phase] == 2:
            assert UNTOLD in machine.fault
            assert UNTOLD in machine.shut_down()
    if phase == "open" and not after:
        assert UNTOLD not in machine.fault  # nobody has turned them on
    if bench.lets_go or BEFORE[phase] == 0:
        assert wait_until(lambda: not bench.on(), 2.0), bench.on()


@pytest.mark.parametrize("call", ["configure", "activate", "deactivate", "cleanup", "reset", "emergency_stop"])
def test_calls_after_it_raise_nothing_of_the_device(bench: Bench, call: str) -> None:
    bench.go()
    _pull(bench)
    bench.machine.step(bench.period)
    assert bench.machine.lifecycle is Lifecycle.FAULT
    if call != "activate":  # an error of who calls
        getattr(bench.machine, call)()
    assert bench.devices[0].port in bench.machine.fault
    assert bench.machine.shut_down().startswith(UNTOLD)


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("kind", BENCHES)
def test_drives_on_a_line_that_is_plugged_in_again_are_told(kind: str, asked: bool, tmp_path: Path) -> None:
    """By an emergency stop, and without it within seconds; nobody has to reset the machine for that."""
    with BENCHES[kind](tmp_path) as bench:
        file = tmp_path / "machine.yaml"
        links = [tmp_path / f"port{k}" for k in range(len(bench.devices))]
        for link, device in zip(links, bench.devices, strict=True):
            file.write_text(re.sub(rf"{device.port}\b", str(link), file.read_text()))
            link.symlink_to(device.port)
        machine = bench.machine = make_machine(kind, bench.kinematics, read_machine_file(file))
        bench.go()
        _pull(bench)
        assert wait_until(lambda: bench.pass_periods(5) or machine.lifecycle is Lifecycle.FAULT, 5.0)
        assert UNTOLD in machine.fault
        with ExitStack() as on:
            for link, device in zip(links, bench.make(), strict=True):
                on.enter_context(device)
                link.unlink()
                link.symlink_to(device.port)
            bench.leave_on()
            assert len(bench.on()) == bench.drives
            if asked:
                machine.emergency_stop()
                assert not bench.on()
            else:
                assert wait_until(lambda: bench.pass_periods(5) or not bench.on(), 5.0)
            assert UNTOLD not in machine.fault
            assert not machine.drives_may_be_on
            assert machine.lifecycle is Lifecycle.FAULT


@pytest.mark.by_day("odrive")
@pytest.mark.parametrize("kind", BENCHES)
def test_a_stall_of_this_computer_is_no_silence_of_the_device(kind: str, tmp_path: Path) -> None:
    with BENCHES[kind](tmp_path, silence="0.3", watchdog="2.5") as bench:
        bench.go()
        for device in bench.devices:
            device.frozen = True  # as where this process gets no time: what it asked is answered later
        bench.pass_periods(1)
        time.sleep(0.9)
        for device in bench.devices:
            device.frozen = False
        bench.pass_periods(20)
        assert not bench.machine.fault
        for device in bench.devices:
            device.frozen = True
        bench.pass_periods(60)
        assert "answer" in bench.machine.fault
