# SPDX-License-Identifier: Apache-2.0
"""What every driver does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class DeviceError(Exception):
    """A device that does not do what it should; the message says what, which device, and what to look at."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What a device says, each (n_actuated,) in its own units; None where it does not measure that.

    `loads` are efforts or currents, for homing to a stop. `switches` and `indices` serve homing: closed reference
    switches, and where the index pulse was seen (NaN: not yet).
    """

    positions: Array
    velocities: Array | None = None
    loads: Array | None = None
    switches: NDArray[np.bool_] | None = None
    indices: Array | None = None


class Driver(ABC):
    """Talks to a device, in the device's units. Every call returns within a bounded time, or raises `DeviceError`.

    `notice` says in words what is worth a warning, and is empty where nothing is.
    """

    notice = ""

    @abstractmethod
    def open(self, home: Array) -> None:
        """Make contact; drives stay off.

        Args:
            home: positions (n_actuated,), taken as true by devices that measure none.

        Raises:
            DeviceError: there is no contact.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the line free; drives off where the device can still be told."""

    @abstractmethod
    def enable(self, positions: Array) -> None:
        """Drives on, holding positions (n_actuated,), then brakes open.

        Args:
            positions: (n_actuated,), device's units.

        Raises:
            DeviceError: the device refuses or does not answer.
        """

    @abstractmethod
    def disable(self) -> None:
        """Brakes closed, then drives off.

        Raises:
            DeviceError: the device refuses or does not answer.
        """

    def rest(self) -> None:
        """Nobody has commanded for too long: the device's safe state, drives off unless the driver knows better.

        Raises:
            DeviceError: the device refuses or does not answer.
        """
        self.disable()

    def output_problem(self, name: str) -> str:
        """Why an output of the device cannot be set; empty where it can.

        Args:
            name: of the output.

        Returns:
            The reason; a device without outputs has none of any name.
        """
        return f"the machine has no output '{name}'"

    def set_output(self, name: str, value: float) -> None:
        """Have an output take a value, with the next exchange.

        Args:
            name: of the output, one without `output_problem`.
            value: what it takes.
        """
        return

    @abstractmethod
    def exchange(self, positions: Array | None) -> Reading:
        """Send a command, if there is one, and return the newest reading.

        Args:
            positions: (n_actuated,) that the drives are to take.

        Returns:
            The reading.

        Raises:
            DeviceError: the device has been silent for too long, is gone, or reports an error.
        """
