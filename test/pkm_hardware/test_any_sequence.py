# SPDX-License-Identifier: Apache-2.0
"""Calls and faults in any order, of every driver: the drives are off in the end, by the device's own state."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from pkm_hardware.machine import Lifecycle, LifecycleError

from .benches import BENCHES, Bench, wait_until

SEQUENCES = int(os.environ.get("PKM_SEQUENCES", "3"))  # of each driver, the first by day; a hundred take five minutes
STEPS = 12
UNTOLD = "THE DRIVES COULD NOT BE TOLD"

CALLS = (
    "configure",
    "activate",
    "activate",
    "deactivate",
    "emergency_stop",
    "reset",
    "cleanup",
    "shut_down",
    "step",
    "step",
    "stall",
)
FAULTS = ("mute", "silent", "noise", "frozen", "delay", "garbage", "well", "well", "well", "raise")


def _call(bench: Bench, name: str) -> None:
    machine = bench.machine
    before = machine.lifecycle
    if name == "step":
        bench.pass_periods(3)
    elif name == "stall":
        time.sleep(0.3)
    else:
        try:
            getattr(machine, name)()
        except LifecycleError:
            return
    if name in ("deactivate", "emergency_stop", "shut_down") and not machine.fault:
        assert not bench.on(), f"{bench.on()} after {name}, and no fault"
    if name in ("reset", "configure", "cleanup"):
        assert machine.lifecycle is not Lifecycle.ACTIVE or before is Lifecycle.ACTIVE  # none turns drives on
        if machine.lifecycle is Lifecycle.INACTIVE:
            assert not bench.on(), f"{bench.on()} after {name}"


def _fault(bench: Bench, name: str, chance: random.Random) -> None:
    for device in bench.devices if chance.random() < 0.5 else bench.devices[:1]:
        device.mute = name == "mute"
        device.silent = name == "silent"
        device.frozen = name == "frozen"
        device.noise = 0.2 if name == "noise" else 0.0
        device.delay = 0.2 if name == "delay" else 0.0
        device.garbage = b"\xff\x00*\n%" if name == "garbage" else b""
    driver = bench.machine._driver
    driver.__dict__.pop("exchange", None)
    if name == "raise":

        def fail(positions: object) -> None:
            raise ZeroDivisionError("a bug")

        driver.exchange = fail  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, SEQUENCES))])
@pytest.mark.parametrize("kind", BENCHES)
def test_drives_are_off_in_the_end(kind: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    done: list[str] = []
    with BENCHES[kind](tmp_path) as bench:
        bench.go()
        for _ in range(STEPS):
            if chance.random() < 0.35:
                done.append(name := chance.choice(FAULTS))
                _fault(bench, name, chance)
            else:
                done.append(name := chance.choice(CALLS))
                _call(bench, name)
        pulled = chance.random() < 0.3
        if pulled:
            done.append("unplug")
            for device in bench.devices:
                device.unplug()
        warning = bench.machine.shut_down()
        assert bench.machine.shut_down() == warning
        assert bench.machine.lifecycle in (Lifecycle.UNCONFIGURED, Lifecycle.FAULT)
        if not warning:
            assert not bench.on(), done
        else:
            assert warning.startswith(UNTOLD)
        heard = not pulled and not any(device.silent or device.frozen for device in bench.devices)
        if heard or bench.lets_go:
            assert wait_until(lambda: not bench.on(), 2.0), (done, bench.on())
