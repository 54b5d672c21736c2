# SPDX-License-Identifier: Apache-2.0
"""What every driver does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TELLING = 1.0  # s, for which drives are told to let go as long as not all of them say that they have


class DeviceError(Exception):
    """A device that does not do what it should; the message says what, which device, and what to look at."""


GIVEN_UP = "it was given up, since the drives are to be off"


class GivenUpError(DeviceError):
    """The drives are to be off, before all of them were on."""

    def __init__(self) -> None:
        super().__init__(GIVEN_UP)


@dataclass(frozen=True, eq=False)
class Reading:
    """What a device says, each (n_actuated,) in its own units; None where it does not measure that.

    `time` [s, `time.monotonic`]: when it was asked for that; of several questions, the oldest. A reading that is handed
    out again keeps its time. `loads` are efforts or currents, for homing to a stop. `switches` and `indices` serve
    homing: closed reference switches, and where the index pulse was seen (NaN: not yet).
    """

    positions: Array
    time: float
    velocities: Array | None = None
    loads: Array | None = None
    switches: NDArray[np.bool_] | None = None
    indices: Array | None = None


class Driver(ABC):
    """Talks to a device, in the device's units. Every call returns within a bounded time, or raises `DeviceError`.

    `notice` says in words what is worth a warning, and is empty where nothing is. `resting`: what the device is to do
    where nobody has commanded for too long, in words; empty: its drives are off. `unwanted` says that drives which are
    being enabled are to be off: a driver asks it between two drives, and between two questions to one.
    """

    notice = ""
    resting = ""

    def __init__(self) -> None:
        self.unwanted: Callable[[], bool] = lambda: False

    def _require_wanted(self) -> None:
        """Give up where the drives are to be off.

        Raises:
            GivenUpError: they are.
        """
        if self.unwanted():
            raise GivenUpError

    @abstractmethod
    def open(self, home: Array) -> None:
        """Make contact; drives are told to be off, and say that they are; the device's settings are read and mended.

        Args:
            home: positions (n_actuated,), taken as true by devices that measure none.

        Raises:
            DeviceError: there is no contact, or the device's own limits are tighter than the machine's.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the line free, without a word to the device."""

    @property
    def where(self) -> str:
        """Where the device is, as a message ends: ` on /dev/ttyUSB0`; empty where there is no port."""
        return ""

    @abstractmethod
    def enable(self, positions: Array) -> None:
        """Drives on, holding positions (n_actuated,), then brakes open.

        Args:
            positions: (n_actuated,), device's units.

        Raises:
            DeviceError: the device refuses or does not answer.
            GivenUpError: they are `unwanted` meanwhile; some may be on.
        """

    @abstractmethod
    def disable(self) -> None:
        """Drives off, brakes closed: every drive is told, whatever the others do, and asked whether it is off.

        Where they do not all say so, they are told again for `TELLING`; a watchdog stays armed until they have. It may
        be called at any time after `open`, in the middle of anything.

        Raises:
            DeviceError: names the drives of which it is not known that they are off.
        """

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
