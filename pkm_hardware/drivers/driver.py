# SPDX-License-Identifier: Apache-2.0
"""The contract of every driver."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}")
TELLING = 1.0  # s for which disabling is repeated until all drives confirm it


class DeviceError(Exception):
    """A device that does not do what it should; the message says what, which device, and what to look at."""


GIVEN_UP = "it was given up, since the drives are to be off"


class GivenUpError(DeviceError):
    """The drives became unwanted before all of them were on."""

    def __init__(self) -> None:
        super().__init__(GIVEN_UP)


@dataclass(frozen=True, eq=False)
class Reading:
    """A device's answer, each (n_actuated,) in its own units; None where it does not measure that.

    `time` [s, `time.monotonic`]: when it was asked for; of several questions, the oldest. A reading that is returned
    again keeps its time. `loads` are efforts or currents, for homing to a stop. `switches` (closed reference switches)
    and `indices` (where the index pulse was seen, NaN: not yet) serve homing.
    """

    positions: Array
    time: float
    velocities: Array | None = None
    loads: Array | None = None
    switches: NDArray[np.bool_] | None = None
    indices: Array | None = None


def output_name(name: str) -> bool:
    """Whether an output may be called so: letters, digits and _./-, 64 at most, beginning with a letter or _."""
    return _NAME.fullmatch(name) is not None


class Driver(ABC):
    """Talks to a device, in the device's units. Every call returns within a bounded time, or raises `DeviceError`.
    `notice`: what is worth a warning, in words, or empty. `resting`: what the device does when no command came for too
    long, in words; empty: its drives are off. `unwanted`: whether drives that are being enabled are to be off; a driver
    asks it between two drives, and between two questions to one.
    """

    notice = ""
    resting = ""

    def __init__(self) -> None:
        self.unwanted: Callable[[], bool] = lambda: False

    def _require_wanted(self) -> None:
        if self.unwanted():
            raise GivenUpError

    def simulate(self, positions: Array) -> None:
        """Before `open`: speak to a simulated device, which stands at positions (n_actuated,) until it is commanded."""
        raise NotImplementedError

    @abstractmethod
    def open(self, home: Array) -> None:
        """Connect; disable the drives and confirm that they are off; read and correct the device's settings. Devices
        that measure no position are where they were told to be last; the first time `home` (n_actuated,) is taken as
        true. DeviceError: there is no contact, or the device's own limits are tighter than the machine's.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the line without sending anything."""

    @property
    def closed(self) -> bool:
        """Whether a line of it is closed, by `close` or because it was unplugged."""
        return False

    @property
    def where(self) -> str:
        """The end of a message that says where the device is: ` on /dev/ttyUSB0`; empty where there is no port."""
        return ""

    @property
    def missing(self) -> str:
        """Which drives have left a question open, in words, before the silence is a fault; empty where none has."""
        return ""

    @abstractmethod
    def enable(self, positions: Array) -> None:
        """Enable the drives, holding positions (n_actuated,) in the device's units, then open the brakes.
        DeviceError: the device refuses or does not answer. GivenUpError: `unwanted` meanwhile; some drives may be on.
        """

    @abstractmethod
    def disable(self) -> None:
        """Disable the drives and close the brakes: tell every drive, whatever the others do, and ask whether it is off.
        Where not all confirm, they are told again for `TELLING`, then a DeviceError names the drives that may still be
        on; a watchdog stays armed until all have confirmed. Callable any time after `open`, during any other call.
        """

    def output_problem(self, name: str) -> str:
        """Why an output of the device cannot be set; empty where it can. A device without outputs refuses all names."""
        return f"the machine has no output '{name}'"

    def set_output(self, name: str, value: float) -> None:
        """Set an output, one without `output_problem`, with the next exchange."""
        return

    @abstractmethod
    def exchange(self, positions: Array | None) -> Reading:
        """Send targets (n_actuated,), if any; the newest reading. DeviceError: too long silent, gone, an error."""


def disable_anew(driver: Driver, home: Array) -> None:
    """Disable drives with a closed line, by opening it; an exception where they are not known to be off."""
    driver.close()
    try:
        driver.open(home)  # which disables them, and confirms that they are off
    except Exception as error:
        try:
            driver.disable()  # something else is wrong, perhaps
        except Exception:
            raise error from None
    finally:
        driver.close()
