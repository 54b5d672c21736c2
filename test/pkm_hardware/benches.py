# SPDX-License-Identifier: Apache-2.0
"""A machine of each driver beside its simulated device, whose own state says which drives are on."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from pkm_description import load_mechanism
from pkm_hardware.driven_machine import DrivenMachine
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_machine
from pkm_kinematics import Kinematics

from .failing_devices import FailingDevice, SimulatedDynamixels, SimulatedODrive, SimulatedServoBoard

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TURN = 2.0 * math.pi


@cache
def robot(name: str) -> Kinematics:
    return Kinematics(load_mechanism(str(EXAMPLES / f"{name}.urdf.xacro")))


class Bench(ABC):
    """One machine and its devices, from `with` to its end.

    `period` [s] of its loop; `lets_go`: by their own watchdogs the drives are off where nobody speaks to the devices;
    `measures`: where the drives are.
    """

    kind = ""
    period = 0.01
    lets_go = True
    measures = True

    def __init__(self, folder: Path, **keys: str) -> None:
        self.devices: Sequence[FailingDevice] = self.make()
        path = folder / "machine.yaml"
        path.write_text(self.file(keys), encoding="utf-8")
        self.machine: DrivenMachine = make_machine(self.kind, self.kinematics, read_machine_file(path))
        self._on = ExitStack()

    def __enter__(self) -> Bench:
        for device in self.devices:
            self._on.enter_context(device)
        return self

    def __exit__(self, *why: object) -> None:
        self._on.close()

    def contact(self) -> None:
        """The machine is inactive; on a computer that is busy the simulated device may answer too late at first."""
        for _ in range(5):
            self.machine.configure()
            if not self.machine.fault:
                return
        raise AssertionError(self.machine.fault)

    def go(self) -> None:
        """The machine is active, and has been for some periods."""
        self.contact()
        assert not self.on(), "drives are on before anybody enabled them"
        self.machine.activate()
        self.pass_periods(5)

        def all_on() -> bool:
            self.pass_periods(1)  # drives that hear nothing for the time of their watchdog go off
            return len(self.on()) == self.drives

        assert wait_until(all_on), f"not every drive is on: {self.machine.fault}"
        assert not self.machine.fault, self.machine.fault

    def pass_periods(self, n: int) -> None:
        """Periods in real time, with the command to stay."""
        for _ in range(n):
            self.machine.write(self.machine.read().positions)
            self.machine.step(self.period)
            time.sleep(self.period)

    @property
    @abstractmethod
    def drives(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def kinematics(self) -> Kinematics:
        """Of its robot."""

    @abstractmethod
    def make(self) -> Sequence[FailingDevice]:
        """Its devices."""

    @abstractmethod
    def file(self, keys: dict[str, str]) -> str:
        """The text of the machine's file."""

    @abstractmethod
    def on(self) -> list[str]:
        """The drives that are on, by the devices' own state."""

    @abstractmethod
    def silence_one(self) -> list[str]:
        """One device hears and says nothing any more; return its drives."""

    @abstractmethod
    def hear_again(self) -> None:
        """The end of `silence_one`."""

    @abstractmethod
    def leave_on(self) -> None:
        """The drives are on, as those of new devices where somebody else had enabled them."""

    def jump(self, angle: float) -> None:
        """The next reading of the first actuator is wrong by that [rad or m]."""
        raise NotImplementedError

    def places(self) -> list[float]:
        """Where the drives are, by the devices' own state [rad or m]."""
        raise NotImplementedError

    def stand(self, k: int, place: float) -> None:
        """Place an actuator [rad or m from the device's zero], as a hand does."""
        raise NotImplementedError


class DynamixelBench(Bench):
    kind = "dynamixel"
    lets_go = False  # the bus watchdog stops a drive, and leaves it its torque

    def make(self) -> Sequence[FailingDevice]:
        # dynamixel-sdk may be missing: nothing of it is needed before
        pytest.importorskip("dynamixel_sdk")
        pytest.importorskip("serial")
        self.bus = SimulatedDynamixels(range(1, 7))
        return [self.bus]

    @property
    def drives(self) -> int:
        return 6

    @property
    def kinematics(self) -> Kinematics:
        return robot("hobby_hexapod")

    def file(self, keys: dict[str, str]) -> str:
        keys = {"silence": "0.3"} | keys
        head = "".join(f"{key}: {value}\n" for key, value in keys.items() if not key.startswith("id"))
        rows = [f"  limb{k}_arm: {{id: {k}{keys.get(f'id{k}', '')}}}\n" for k in range(1, 7)]
        return f"machine: dynamixel\nport: {self.bus.port}\nbaud: 1000000\nrate: 100\n{head}actuators:\n{''.join(rows)}"

    def on(self) -> list[str]:
        return [f"drive {one}" for one in self.bus.tables if self.bus.torque(one)]

    def silence_one(self) -> list[str]:
        self.bus.gone.add(3)
        return ["drive 3"]

    def hear_again(self) -> None:
        self.bus.gone.clear()

    def leave_on(self) -> None:
        for one in self.bus.tables:
            self.bus.put(one, 64, 1, 1)

    def jump(self, angle: float) -> None:
        self.bus.jumps[1] = round(angle * 4096 / TURN)

    def places(self) -> list[float]:
        return [(self.bus.position(one) - 2048) * TURN / 4096 for one in range(1, 7)]

    def stand(self, k: int, place: float) -> None:
        self.bus.stand(k + 1, 2048 + round(place * 4096 / TURN))


class ODriveBench(Bench):
    kind = "odrive"

    def make(self) -> Sequence[FailingDevice]:
        self.boards = [SimulatedODrive(), SimulatedODrive()]
        return self.boards

    @property
    def drives(self) -> int:
        return 2

    @property
    def kinematics(self) -> Kinematics:
        return robot("biglide")

    def file(self, keys: dict[str, str]) -> str:
        keys = {"silence": "0.3"} | keys
        head = "".join(f"{key}: {value}\n" for key, value in keys.items() if not key.startswith("axis"))
        home = self.kinematics.inverse(self.kinematics.home).actuated
        rows = [
            f"  {name}: {{port: {board.port}, axis: {k}, gear: 500, offset: {at}{keys.get(f'axis{k}', '')}}}\n"
            for k, (name, board, at) in enumerate(zip(self.kinematics.actuated_names, self.boards, home, strict=True))
        ]
        return f"machine: odrive\nrate: 100\n{head}actuators:\n{''.join(rows)}"

    def on(self) -> list[str]:
        states = [self.boards[k].axes[k].state for k in range(2)]
        return [f"{self.boards[k].port}: axis{k}" for k, state in enumerate(states) if state != 1]

    def silence_one(self) -> list[str]:
        self.boards[1].silent = True
        return [f"{self.boards[1].port}: axis1"]

    def hear_again(self) -> None:
        self.boards[1].silent = False

    def leave_on(self) -> None:
        for k in range(2):
            self.boards[k].axes[k].state = 8

    def jump(self, angle: float) -> None:
        self.boards[0].jumps[0] = angle * 500 / TURN

    def places(self) -> list[float]:
        return [self.boards[k].axes[k].place * TURN / 500 for k in range(2)]

    def stand(self, k: int, place: float) -> None:
        self.boards[k].axes[k].place = place * 500 / TURN


class ServoBench(Bench):
    kind = "servos"
    period = 0.02
    measures = False

    def make(self) -> Sequence[FailingDevice]:
        self.board = SimulatedServoBoard()
        return [self.board]

    @property
    def drives(self) -> int:
        return 6

    @property
    def kinematics(self) -> Kinematics:
        return robot("hobby_hexapod")

    def file(self, keys: dict[str, str]) -> str:
        text = (EXAMPLES / "hobby_hexapod_machine.yaml").read_text(encoding="utf-8")
        for key, value in keys.items():
            old = next(line for line in text.splitlines() if line.startswith(f"{key}:"))
            text = text.replace(old, f"{key}: {value}")
        return text.replace("/dev/ttyUSB0", self.board.port)

    def on(self) -> list[str]:
        return [f"channel {k}" for k, pulse in enumerate(self.board.pulses) if pulse]

    def silence_one(self) -> list[str]:
        self.board.silent = True
        return self.on()

    def hear_again(self) -> None:
        self.board.silent = False

    def leave_on(self) -> None:
        self.board.pulses[:6], self.board.watchdog = [1500] * 6, 30.0


BENCHES: dict[str, type[Bench]] = {bench.kind: bench for bench in (DynamixelBench, ODriveBench, ServoBench)}


def wait_until(condition: Callable[[], bool], seconds: float = 2.0) -> bool:
    """Whether a condition comes true in time."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()
