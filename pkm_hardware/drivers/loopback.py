# SPDX-License-Identifier: Apache-2.0
"""No device at all: the reading is the command."""

from __future__ import annotations

import time

from pkm_description.mechanism import Array, Mechanism
from pkm_hardware.drivers.driver import DeviceError, Driver, Reading
from pkm_hardware.machine_file import Drives, MachineFile, Scale


class LoopbackDriver(Driver):
    """Answers with the last command; for tests of everything else, and for robots without masses."""

    def __init__(self) -> None:
        super().__init__()
        self._positions: Array | None = None

    def open(self, home: Array) -> None:
        """Begin at home, or where it was told to be last."""
        self._positions = home.copy() if self._positions is None else self._positions

    def close(self) -> None:
        """Nothing to do."""

    def enable(self, positions: Array) -> None:
        """Begin at the positions."""
        self._positions = positions.copy()

    def disable(self) -> None:
        """Nothing to do."""

    def output_problem(self, name: str) -> str:
        """None: every name is taken."""
        return ""

    def exchange(self, positions: Array | None) -> Reading:
        """The command, or the one before."""
        if positions is not None:
            self._positions = positions.copy()
        if self._positions is None:
            raise DeviceError("the loopback has not been opened")
        return Reading(self._positions.copy(), time.monotonic())


def drives(file: MachineFile | None, mechanism: Mechanism, home: Array) -> Drives:
    """A loopback in the units of the joints, whatever the file says; `home` (n_actuated,) [rad or m]."""
    return Drives(LoopbackDriver(), Scale.one_to_one(len(home)), home)
