# SPDX-License-Identifier: Apache-2.0
"""No device at all: what is commanded is what is read."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pkm_control.hardware.drivers.driver import Driver, Reading
from pkm_control.hardware.drives import Drives
from pkm_control.hardware.machine_file import MachineFile
from pkm_control.hardware.scale import Scale
from pkm_description.mechanism import Mechanism

Array = NDArray[np.float64]


class LoopbackDriver(Driver):
    """Answers with the last command; for tests of everything else, and for robots without masses."""

    def __init__(self) -> None:
        super().__init__()
        self._positions = np.zeros(0)

    def open(self, home: Array) -> None:
        """Be at home."""
        self._positions = home.copy()

    def close(self) -> None:
        """Nothing to do."""

    def enable(self, positions: Array) -> None:
        """Be where it is said."""
        self._positions = positions.copy()

    def disable(self) -> None:
        """Nothing to do."""

    def output_problem(self, name: str) -> str:
        """None: every name is taken."""
        return ""

    def exchange(self, positions: Array | None) -> Reading:
        """Return the command, or the one before."""
        if positions is not None:
            self._positions = positions.copy()
        return Reading(self._positions.copy(), time.monotonic())


def drives(file: MachineFile | None, mechanism: Mechanism, home: Array) -> Drives:
    """Return a loopback in the units of the joints, whatever the file says.

    Args:
        file: of the machine, if there is one.
        mechanism: the robot.
        home: positions of the actuators at home (n_actuated,) [rad or m].

    Returns:
        Driver and scale.
    """
    return Drives(LoopbackDriver(), Scale.one_to_one(len(home)), home)
