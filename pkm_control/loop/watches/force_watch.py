# SPDX-License-Identifier: Apache-2.0
"""The force-torque sensor of a law that needs one: the newest reading, and what its silence means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Controller, Measured

Array = NDArray[np.float64]

SILENT = "the force sensor is silent"


class ForceWatch:
    """Adds readings to what is measured, as long as they are fresh.

    `lost` says why forces can no longer be followed, and is empty while they can. It stays until the readings are back
    and `regain` was called, which is for a platform at rest.

    Args:
        controller: whose law feels, or does not.
        max_age: a reading older than that is stale [s].
    """

    def __init__(self, controller: Controller, max_age: float) -> None:
        self._controller = controller
        self._max_age = max_age
        self._reading: Array | None = None
        self._heard = -np.inf
        self.lost = ""

    def hear(self, reading: Array, now: float) -> None:
        """Take a reading; one that is not finite is none.

        Args:
            reading: wrench (6,) done to the platform, in the frame of the sensor [N, N m].
            now: s, on the clock of the caller.
        """
        if np.isfinite(reading).all():
            self._reading, self._heard = np.array(reading, dtype=np.float64), now

    def feel(self, measured: Measured, now: float) -> Measured:
        """What is measured, with the wrench where a law needs it and it is known; the law is told which.

        Args:
            measured: by the actuators.
            now: s, on the clock of `hear`.

        Returns:
            The same, felt.
        """
        controller = self._controller
        if not controller.feels:
            return measured
        age = now - self._heard
        if self._reading is None:
            self.lost = f"{SILENT}: no reading has ever come"
        elif not age <= self._max_age:
            self.lost = f"{SILENT}: the last reading is {1e3 * age:.0f} ms old, more than {1e3 * self._max_age:.0f} ms"
        controller.engage(not self.lost)
        if self._reading is None or self.lost:
            return measured
        return controller.felt_by(measured, self._reading)

    def fresh(self, now: float) -> bool:
        """Whether readings come.

        Args:
            now: s, on the clock of `hear`.
        """
        return now - self._heard <= self._max_age

    def regain(self) -> None:
        """Follow forces again."""
        self.lost = ""
